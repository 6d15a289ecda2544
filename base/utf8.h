#pragma once

#include <string>
#include <string_view>

namespace blktape {

bool IsUtf8(std::string_view text);

// `text` with every byte that is not part of a well-formed UTF-8 character replaced by U+FFFD. The
// kernel's names of processes and devices may contain any byte.
std::string ToUtf8(std::string_view text);

// `text` with every control character replaced by "?": safe on a terminal.
std::string ToPrintable(std::string_view text);
// The same for text of several lines: line breaks are kept.
std::string ToPrintableLines(std::string_view text);

}  // namespace blktape
