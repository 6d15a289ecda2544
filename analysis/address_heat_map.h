#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/step_series.h"

namespace blktape {

// Where on a device data requests began, and when. Columns of column_ns from the first arrival on,
// rows of row_bytes from address 0 on. reads[column * rows + row], likewise writes.
struct AddressHeatMap {
  int64_t column_ns = 0;
  uint64_t row_bytes = 0;
  size_t columns = 0;
  size_t rows = 0;
  std::vector<uint64_t> reads, writes;
};

// Both time and address begin fine; what lies beyond doubles the length of a column or the height
// of a row. Memory: at most 80 KiB. Not thread-safe.
class AddressMapBuilder {
 public:
  static constexpr size_t kMostColumns = 160;
  static constexpr size_t kRows = 64;

  // As far as is known: how long it will be, and where the last request ends.
  AddressMapBuilder(int64_t length_ns, uint64_t end_bytes);
  void Add(int64_t at_ns, uint64_t offset_bytes, bool write);
  AddressHeatMap Finish(int64_t observed_ns);

 private:
  struct Column {
    std::array<uint32_t, kRows> reads{}, writes{};
    Column& operator+=(const Column& other);
  };
  void DoubleRows();

  StepSeries<Column> columns_;
  int row_bits_;
  size_t highest_row_ = 0;
};

}  // namespace blktape
