#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "base/utf8.h"

namespace blktape {

// Appends `text` as a JSON string. Names come from kernels and foreign files, so bytes that are not
// UTF-8 are replaced and control characters are escaped.
inline void AppendJsonString(std::string_view text, fmt::memory_buffer* out) {
  out->push_back('"');
  for (const char c : ToUtf8(text)) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

}  // namespace blktape
