#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/distinct_counter.h"

namespace blktape {

// Which 4 KiB blocks of which device were touched: the working set. A block counts once however
// often and however partly it was touched.
//
// Exact as long as the blocks lie in at most kChunks chunks of 256 KiB (that is 128 GiB if each is
// touched whole, 2 GiB if each is touched in one block only); from then on estimated with a
// standard error of DistinctCounter::kStandardError, and `exact` is false. Memory: at most 24 MiB
// whatever the trace. Not thread-safe.
class FootprintMeter {
 public:
  static constexpr uint64_t kBlockBytes = 4096;
  static constexpr size_t kChunks = 524'288;
  // Drives take no longer data requests. Of one that says so only the beginning is looked at, so
  // that a few bytes of a file cannot cost millions of blocks.
  static constexpr uint64_t kLongestBytes = uint64_t{64} << 20;
  // Nor do they on average: once all requests so far have touched more chunks than
  // kFreeChunks and 8 (2 MiB) each, of the next only its first chunk counts, and `exact` is false.
  static constexpr uint64_t kFreeChunks = uint64_t{1} << 20;
  static constexpr uint64_t kChunksPerRequest = 8;

  struct Sizes {
    uint64_t bytes = 0;        // touched at all
    uint64_t read_bytes = 0;   // read at least once
    uint64_t write_bytes = 0;  // written at least once
    bool exact = true;
  };

  explicit FootprintMeter(size_t max_chunks = kChunks) : max_chunks_(max_chunks) {}
  void Add(uint32_t device, uint64_t offset_bytes, uint64_t bytes, bool write);
  // Tells that Add() will be called for this place soon: the table is larger than a cache.
  void Prefetch(uint32_t device, uint64_t offset_bytes) const;
  Sizes Measure() const;

 private:
  static constexpr uint64_t kBlocksPerChunk = 64;
  struct Chunk {
    uint64_t key = kEmpty;
    uint64_t read = 0;     // a bit for each block
    uint64_t written = 0;  // likewise
  };
  struct Estimate {
    DistinctCounter any, read, written;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  Chunk* Find(uint64_t key);
  void Grow();
  void SwitchToEstimate();
  void MoveToEstimate(uint64_t key, uint64_t read, uint64_t written);
  void AddToEstimate(uint64_t first_block, uint64_t blocks, bool write);

  size_t max_chunks_;
  size_t used_ = 0;
  uint64_t chunks_left_ = kFreeChunks;  // to be touched by long requests
  bool cut_ = false;
  std::vector<Chunk> table_;  // open addressing, a power of two in size, at most half full
  std::unique_ptr<Estimate> estimate_;
};

}  // namespace blktape
