#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace blktape {

// How many I/Os of each size. Exact: each distinct size is counted on its own, up to kDistinctSizes
// of them; a size met after that is counted as `other` and in its power of two. Memory: at most
// some 2 MiB. Not thread-safe.
class SizeHistogram {
 public:
  static constexpr size_t kDistinctSizes = 65'536;

  struct Row {
    uint64_t bytes = 0;
    uint64_t count = 0;
    bool operator==(const Row&) const = default;
  };

  void Add(uint64_t bytes, uint64_t count = 1) {
    total_ += count;
    if (IsUsual(bytes)) [[likely]] {
      small_[bytes / kSector] += count;
    } else {
      AddLarge(bytes, count);
    }
  }

  // The result is what adding the sizes of both would have given; of more than kDistinctSizes in
  // all, those of `other` came last.
  void Merge(const SizeHistogram& other);
  // Whole sectors up to 2 MiB: such a size always has a row, whatever came before.
  static bool IsUsual(uint64_t bytes) {
    return bytes % kSector == 0 && bytes / kSector < kSmallSizes;
  }

  uint64_t count() const { return total_; }
  uint64_t CountOf(uint64_t bytes) const;
  // Exact sizes, ascending.
  std::vector<Row> Exact() const;
  // I/Os whose size is in no row of Exact().
  uint64_t other() const { return other_; }
  // By power of two, ascending, from the first to the last that is not empty: a row counts the
  // sizes above half of row.bytes and up to row.bytes. Size 0 is in no row.
  std::vector<Row> PowersOfTwo() const;

 private:
  static constexpr uint64_t kSector = 512;
  static constexpr uint64_t kSmallSizes = 4097;
  void AddLarge(uint64_t bytes, uint64_t count);

  uint64_t total_ = 0;
  uint64_t other_ = 0;
  std::array<uint64_t, kSmallSizes> small_{};  // of usual sizes, by sectors: nearly all there is
  std::unordered_map<uint64_t, uint64_t> large_;
  std::array<uint64_t, 65> other_by_power_{};
};

}  // namespace blktape
