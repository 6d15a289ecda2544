#include "analysis/footprint_meter.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace blktape {
namespace {

// Bits [first, last] of a word.
uint64_t Bits(uint64_t first, uint64_t last) {
  const uint64_t upto = last == 63 ? ~uint64_t{0} : (uint64_t{1} << (last + 1)) - 1;
  return upto & ~((uint64_t{1} << first) - 1);
}

// Chunks are below 2^46, blocks below 2^52: devices beyond 2^12 would share keys, and no trace has
// so many.
uint64_t KeyOf(uint32_t device, uint64_t chunk) {
  return (uint64_t{device} << 46 | chunk) & ~(uint64_t{1} << 63);
}

}  // namespace

FootprintMeter::Chunk* FootprintMeter::Find(uint64_t key) {
  if (table_.empty()) table_.resize(1024);
  const uint64_t mask = table_.size() - 1;
  for (uint64_t at = Mix64(key) & mask;; at = (at + 1) & mask) {
    if (table_[at].key == key) return &table_[at];
    if (table_[at].key != kEmpty) continue;
    if (used_ >= max_chunks_) return nullptr;
    if (2 * (used_ + 1) > table_.size()) {
      Grow();
      return Find(key);
    }
    ++used_;
    table_[at].key = key;
    return &table_[at];
  }
}

void FootprintMeter::Grow() {
  std::vector<Chunk> old(table_.size() * 2);
  old.swap(table_);
  const uint64_t mask = table_.size() - 1;
  for (const Chunk& chunk : old) {
    if (chunk.key == kEmpty) continue;
    uint64_t at = Mix64(chunk.key) & mask;
    while (table_[at].key != kEmpty) at = (at + 1) & mask;
    table_[at] = chunk;
  }
}

void FootprintMeter::SwitchToEstimate() {
  estimate_ = std::make_unique<Estimate>();
  for (const Chunk& chunk : table_) {
    if (chunk.key != kEmpty) MoveToEstimate(chunk.key, chunk.read, chunk.written);
  }
  table_ = {};
}

void FootprintMeter::AddToEstimate(uint64_t first_block, uint64_t blocks, bool write) {
  DistinctCounter& any = estimate_->any;
  DistinctCounter& of_op = write ? estimate_->written : estimate_->read;
  for (uint64_t block = first_block; block < first_block + blocks; ++block) {
    const uint64_t hash = Mix64(block);
    if (any.IsBelowAll(hash) && of_op.IsBelowAll(hash)) continue;
    any.AddHash(hash);
    of_op.AddHash(hash);
  }
}

void FootprintMeter::MoveToEstimate(uint64_t key, uint64_t read, uint64_t written) {
  for (uint64_t left = read | written; left != 0; left &= left - 1) {
    const int bit = std::countr_zero(left);
    const uint64_t hash = Mix64(key * kBlocksPerChunk + static_cast<uint64_t>(bit));
    if (estimate_->any.IsBelowAll(hash) && estimate_->read.IsBelowAll(hash) &&
        estimate_->written.IsBelowAll(hash)) {
      continue;
    }
    estimate_->any.AddHash(hash);
    if (read >> bit & 1) estimate_->read.AddHash(hash);
    if (written >> bit & 1) estimate_->written.AddHash(hash);
  }
}

void FootprintMeter::Add(uint32_t device, uint64_t offset_bytes, uint64_t bytes, bool write) {
  if (bytes == 0) return;
  const uint64_t length = std::min({bytes, kLongestBytes, ~uint64_t{0} - offset_bytes});
  if (length == 0) return;
  uint64_t last = (offset_bytes + length - 1) / kBlockBytes;
  const uint64_t first_chunk = offset_bytes / kBlockBytes / kBlocksPerChunk;
  chunks_left_ += kChunksPerRequest;
  if (const uint64_t chunks = last / kBlocksPerChunk - first_chunk; chunks <= chunks_left_) {
    chunks_left_ -= chunks;
  } else {
    last = first_chunk * kBlocksPerChunk + kBlocksPerChunk - 1;
    cut_ = true;
  }
  for (uint64_t block = offset_bytes / kBlockBytes; block <= last;) {
    const uint64_t chunk = block / kBlocksPerChunk;
    const uint64_t first_bit = block % kBlocksPerChunk;
    const uint64_t last_bit =
        std::min(last - chunk * kBlocksPerChunk, kBlocksPerChunk - uint64_t{1});
    const uint64_t bits = Bits(first_bit, last_bit);
    const uint64_t key = KeyOf(device, chunk);
    if (estimate_ == nullptr) {
      if (Chunk* found = Find(key); found != nullptr) {
        (write ? found->written : found->read) |= bits;
      } else {
        SwitchToEstimate();
      }
    }
    if (estimate_ != nullptr) {
      const uint64_t first_block = key * kBlocksPerChunk + first_bit;
      AddToEstimate(first_block, last_bit - first_bit + 1, write);
    }
    block = (chunk + 1) * kBlocksPerChunk;
  }
}

void FootprintMeter::Prefetch(uint32_t device, uint64_t offset_bytes) const {
  if (table_.empty()) return;
  const uint64_t key = KeyOf(device, offset_bytes / kBlockBytes / kBlocksPerChunk);
  __builtin_prefetch(&table_[Mix64(key) & (table_.size() - 1)], /*rw=*/1);
}

FootprintMeter::Sizes FootprintMeter::Measure() const {
  if (estimate_ != nullptr) {
    const auto bytes = [](const DistinctCounter& counter) {
      return static_cast<uint64_t>(std::llround(counter.Estimate())) * kBlockBytes;
    };
    return {.bytes = bytes(estimate_->any),
            .read_bytes = bytes(estimate_->read),
            .write_bytes = bytes(estimate_->written),
            .exact = false};
  }
  Sizes sizes;
  sizes.exact = !cut_;
  for (const Chunk& chunk : table_) {
    if (chunk.key == kEmpty) continue;
    sizes.bytes += static_cast<uint64_t>(std::popcount(chunk.read | chunk.written)) * kBlockBytes;
    sizes.read_bytes += static_cast<uint64_t>(std::popcount(chunk.read)) * kBlockBytes;
    sizes.write_bytes += static_cast<uint64_t>(std::popcount(chunk.written)) * kBlockBytes;
  }
  return sizes;
}

}  // namespace blktape
