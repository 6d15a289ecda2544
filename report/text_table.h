#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace blktape {

// What text is made for. The default suits a file or a pipe.
struct TextLook {
  size_t columns = 79;   // of the terminal, at least 40
  bool colour = false;   // only where a terminal shows it
  bool unicode = false;  // blocks in bars and lines of activity; else '#' and none
};

// A name of a foreign file within so many columns (3 or more): nothing that would steer a terminal.
std::string Plain(std::string_view text, size_t columns);

// `text` in bold, in red, where the look has colour.
std::string Strong(std::string_view text, const TextLook& look);
std::string Bad(std::string_view text, const TextLook& look);

// A row of blocks, each as high as its value: at least a little where it is not 0. "" without
// unicode.
std::string Sparkline(const std::vector<double>& values, const TextLook& look);

// A table within the look's columns, under headings, indented by two. Where it is too wide the
// columns of the least worth go first, then the first column is cut. Cells are plain text.
class TextTable {
 public:
  struct Column {
    std::string heading;
    bool left = false;
    int worth = 9;  // 9: always there
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The same with a bar after the cells, as long as the room left allows for the largest value.
  void Row(std::vector<std::string> cells, double bar) {
    bars_.resize(rows_.size());
    bars_.push_back(bar);
    Row(std::move(cells));
  }
  bool empty() const { return rows_.empty(); }
  // "" without rows.
  std::string Text(const TextLook& look) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<double> bars_;
};

}  // namespace blktape
