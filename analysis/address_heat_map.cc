#include "analysis/address_heat_map.h"

#include <algorithm>
#include <bit>

namespace blktape {
namespace {

constexpr int kFinestBits = 16;  // 64 KiB a row

}  // namespace

AddressMapBuilder::Column& AddressMapBuilder::Column::operator+=(const Column& other) {
  for (size_t row = 0; row < kRows; ++row) {
    reads[row] += other.reads[row];
    writes[row] += other.writes[row];
  }
  return *this;
}

AddressMapBuilder::AddressMapBuilder(int64_t length_ns, uint64_t end_bytes)
    : columns_(kMostColumns, NiceStepNs(length_ns, kMostColumns)),
      row_bits_(
          end_bytes == 0
              ? kFinestBits
              : std::max(kFinestBits, static_cast<int>(std::bit_width((end_bytes - 1) / kRows)))) {}

void AddressMapBuilder::Add(int64_t at_ns, uint64_t offset_bytes, bool write) {
  while ((offset_bytes >> row_bits_) >= kRows) DoubleRows();
  const auto row = static_cast<size_t>(offset_bytes >> row_bits_);
  highest_row_ = std::max(highest_row_, row);
  Column& column = columns_.At(at_ns);
  ++(write ? column.writes : column.reads)[row];
}

void AddressMapBuilder::DoubleRows() {
  ++row_bits_;
  highest_row_ /= 2;
  for (Column& column : columns_.steps()) {
    for (auto* rows : {&column.reads, &column.writes}) {
      for (size_t row = 0; row < kRows / 2; ++row) {
        (*rows)[row] = (*rows)[2 * row] + (*rows)[2 * row + 1];
      }
      std::fill(rows->begin() + kRows / 2, rows->end(), 0);
    }
  }
}

AddressHeatMap AddressMapBuilder::Finish(int64_t observed_ns) {
  if (observed_ns > 0) columns_.At(observed_ns - 1);
  AddressHeatMap map;
  map.column_ns = columns_.step_ns();
  map.row_bytes = uint64_t{1} << row_bits_;
  map.columns = columns_.steps().size();
  map.rows = highest_row_ + 1;
  for (const Column& column : columns_.steps()) {
    map.reads.insert(map.reads.end(), column.reads.begin(),
                     column.reads.begin() + static_cast<std::ptrdiff_t>(map.rows));
    map.writes.insert(map.writes.end(), column.writes.begin(),
                      column.writes.begin() + static_cast<std::ptrdiff_t>(map.rows));
  }
  return map;
}

}  // namespace blktape
