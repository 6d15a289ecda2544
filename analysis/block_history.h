#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "analysis/latency_sketch.h"

namespace blktape {

// What became of single 4 KiB blocks: docs/metrics.md, "Blocks over time".
struct BlockHistory {
  static constexpr size_t kClasses = 33;
  double sampled_share = 1;  // of all blocks, chosen by their hash; 1: all of them
  // Of the sampled blocks:
  uint64_t blocks = 0;
  uint64_t written_blocks = 0;
  uint64_t read_blocks = 0;
  uint64_t read_first_blocks = 0;  // read before the trace wrote them, or never written
  uint64_t block_writes = 0;
  uint64_t overwrites = 0;  // of those, of a block that the trace had written before
  // Written blocks by how often: [k] counts 2^(k-1) < times <= 2^k; [0] once.
  std::array<uint64_t, kClasses> blocks_by_writes{};
  LatencySketch overwrite_distance;  // from a write of a block to the next one, by issue
};

// Feed data requests in order of issue. Follows at most `most` blocks: whenever there are more,
// half of all blocks, chosen by hash, are no longer followed, which keeps the sample fair whatever
// the order. Memory: some 64 B a block, 4 MiB. Not thread-safe.
class BlockHistoryBuilder {
 public:
  static constexpr uint64_t kBlockBytes = 4096;
  static constexpr size_t kMost = 65'536;
  // Of a longer request only the beginning is looked at, as FootprintMeter does.
  static constexpr uint64_t kLongestBytes = uint64_t{64} << 20;

  explicit BlockHistoryBuilder(size_t most = kMost) : most_(most) {}
  void Add(int64_t at_ns, uint32_t device, uint64_t offset_bytes, uint64_t bytes, bool write);
  BlockHistory Finish() const;

 private:
  struct Block {
    int64_t written_ns = 0;
    uint32_t writes = 0;
    uint32_t overwrites = 0;
    bool read = false;
    bool read_first = false;
  };
  void Halve();

  // Salted anew in each process, so that no file can make the table slow. The result does not
  // depend on it.
  struct Salted {
    size_t operator()(uint64_t hash) const { return (hash ^ kSalt) * 0x9e3779b97f4a7c15 >> 7; }
    static const uint64_t kSalt;
  };

  size_t most_;
  int halvings_ = 0;
  std::unordered_map<uint64_t, Block, Salted> blocks_;  // by hash, which is one to one
  LatencySketch distance_;
};

}  // namespace blktape
