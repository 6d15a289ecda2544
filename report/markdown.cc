#include "report/markdown.h"

#include <cstddef>

namespace blktape {

std::string MarkdownText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      escaped += ' ';
    } else if (c == '<' || c == '>' || c == '&') {
      escaped += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
    } else {
      if (std::string_view("\\`*_[]|!#~").find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string MarkdownTable(const DataTable& table) {
  std::string text = "|";
  for (const Column& column : table.columns) text += " " + MarkdownText(column.label) + " |";
  text += "\n|";
  for (const Column& column : table.columns) text += column.unit == Unit::kText ? "---|" : "---:|";
  text += "\n";
  for (size_t row = 0; row < table.rows(); ++row) {
    text += "|";
    for (const Column& column : table.columns) {
      text += " " + MarkdownText(CellText(column.cells[row], column.unit)) + " |";
    }
    text += "\n";
  }
  return text;
}

}  // namespace blktape
