#pragma once

#include <string>
#include <string_view>

namespace blktape {

bool IsUtf8(std::string_view text);

// `text` with every byte that belongs to no well-formed UTF-8 character replaced by U+FFFD. The
// kernel's names (processes, devices) may hold any byte.
std::string ToUtf8(std::string_view text);

// `text` with every control character replaced by "?": safe on a terminal.
std::string ToPrintable(std::string_view text);
// The same of several lines: line breaks stay.
std::string ToPrintableLines(std::string_view text);

}  // namespace blktape
