#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "report/page.h"

namespace blktape {

// Makes a table of a page row by row: first the columns, then the rows.
class TableMaker {
 public:
  TableMaker(std::string id, std::string caption) {
    table_.id = std::move(id);
    table_.caption = std::move(caption);
  }
  TableMaker& Column(std::string key, std::string label, Unit unit) {
    table_.columns.push_back({std::move(key), std::move(label), unit, {}});
    return *this;
  }
  // A cell for each column.
  void Row(std::vector<Cell> cells) {
    BLKTAPE_CHECK(cells.size() == table_.columns.size());
    for (size_t i = 0; i < cells.size(); ++i)
      table_.columns[i].cells.push_back(std::move(cells[i]));
  }
  void MostShown(size_t rows) { table_.most_shown = rows; }
  size_t rows() const { return table_.rows(); }
  // Call once, last.
  DataTable Take() { return std::move(table_); }

 private:
  DataTable table_;
};

// An absent value is an empty cell.
template <typename T>
Cell CellOf(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell();
}

// Of nothing: 0.
inline double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }
inline double Share(uint64_t part, uint64_t whole) {
  return Share(static_cast<double>(part), static_cast<double>(whole));
}
// "65.2 %".
inline std::string Percent(double share) { return CellText(share, Unit::kShare); }

}  // namespace blktape
