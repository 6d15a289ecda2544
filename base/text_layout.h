#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace blktape {

// Text in columns of a terminal. A character of UTF-8 counts as one column.

// How many columns `text` takes.
size_t ColumnsOf(std::string_view text);

// The part of `text` that fits `columns`, without cutting a character in two.
std::string_view FitColumns(std::string_view text, size_t columns);

// `text` after `first`, broken at blanks within so many columns, each line after the first indented
// by `indent`; with a line break at its end. A word that is longer than a line stays whole.
std::string Wrapped(std::string_view first, std::string_view indent, std::string_view text,
                    size_t columns = 79);

}  // namespace blktape
