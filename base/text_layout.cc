#include "base/text_layout.h"

#include <algorithm>
#include <cstdint>

namespace blktape {
namespace {

bool BeginsCharacter(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }

}  // namespace

size_t ColumnsOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::string_view FitColumns(std::string_view text, size_t columns) {
  size_t end = 0;
  for (size_t used = 0; end < text.size() && used < columns; ++used) {
    ++end;
    while (end < text.size() && !BeginsCharacter(text[end])) ++end;
  }
  return text.substr(0, end);
}

std::string Wrapped(std::string_view first, std::string_view indent, std::string_view text,
                    size_t columns) {
  std::string wrapped(first);
  size_t column = ColumnsOf(first);
  size_t begin = 0;
  bool line_is_empty = true;
  while (begin < text.size()) {
    size_t end = text.find_first_of(" \n", begin);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view word = text.substr(begin, end - begin);
    const size_t length = ColumnsOf(word);
    if (!line_is_empty && column + 1 + length > columns) {
      wrapped += '\n';
      wrapped += indent;
      column = ColumnsOf(indent);
      line_is_empty = true;
    }
    if (!line_is_empty) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += length;
    line_is_empty = false;
    begin = end + 1;
  }
  return wrapped + "\n";
}

}  // namespace blktape
