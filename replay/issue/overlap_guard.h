#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/io_record.h"

namespace blktape {

// Knows the requests that are out and tells whether a new one conflicts with an earlier one of
// them: the same target, a common sector, and at least one of the two changes data. A flush
// conflicts with nothing. Usually answered by a small table of counts by region; only a hit there
// looks at the requests themselves. Nothing is allocated after construction. Not thread-safe.
class OverlapGuard {
 public:
  // Slots are 0 .. `slots` - 1.
  explicit OverlapGuard(uint32_t slots);

  // Whether `sequence`'s request conflicts with one that is out and has a lower sequence.
  bool Conflicts(uint32_t target, Op op, uint64_t begin_bytes, uint64_t bytes,
                 uint64_t sequence) const;
  void Add(uint32_t slot, uint32_t target, Op op, uint64_t begin_bytes, uint64_t bytes,
           uint64_t sequence);
  void Remove(uint32_t slot);
  // Of two slots in use: whether the request in `later` conflicts with the one in `earlier`.
  bool Hinders(uint32_t earlier, uint32_t later) const;

 private:
  // 1 MiB of address a region; a request over more regions than this counts as everywhere.
  static constexpr int kRegionShift = 20;
  static constexpr uint64_t kMaxRegions = 16;
  static constexpr uint32_t kTableSize = 4096;

  struct Out {
    uint64_t begin_bytes = 0;
    uint64_t end_bytes = 0;  // 0: slot not in use
    uint64_t sequence = 0;
    uint32_t target = 0;
    uint32_t place = 0;  // in used_
    bool changes = false;
  };
  struct Counts {
    uint16_t any = 0;
    uint16_t changing = 0;
  };
  static uint32_t Bucket(uint32_t target, uint64_t region);
  void Count(const Out& out, int by);

  std::vector<Out> out_;
  std::vector<uint32_t> used_;  // slots in use, in no order
  std::array<Counts, kTableSize> table_{};
  uint32_t wide_ = 0;      // requests that count as everywhere
  uint32_t changing_ = 0;  // requests that change data
};

}  // namespace blktape
