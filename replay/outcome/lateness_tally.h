#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>

namespace blktape {

// Counts durations for quantiles in constant memory. Buckets are 1/32 of a power of two wide. A
// quantile is reported as its bucket's upper edge: at most 1/32 too high and never too low.
class LatenessTally {
 public:
  void Add(int64_t ns) {
    ++buckets_[BucketOf(ns < 0 ? 0 : static_cast<uint64_t>(ns))];
    ++count_;
  }
  void Add(const LatenessTally& other) {
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      buckets_[bucket] += other.buckets_[bucket];
    }
    count_ += other.count_;
  }
  uint64_t count() const { return count_; }

  // Nearest rank: the smallest bucket edge that at least `share` (0..1) of the values do not
  // exceed.
  std::optional<int64_t> Quantile(double share) const {
    if (count_ == 0) return std::nullopt;
    const double rank = share * static_cast<double>(count_);
    uint64_t seen = 0;
    for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      seen += buckets_[bucket];
      if (seen > 0 && static_cast<double>(seen) >= rank) {
        return static_cast<int64_t>(UpperEdge(bucket));
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr uint32_t kSteps = 32;  // buckets per power of two
  static constexpr uint32_t kBuckets = 60 * kSteps;

  // Each value below 64 has its own bucket; above, the top six bits choose the bucket.
  static uint32_t BucketOf(uint64_t value) {
    if (value < 2 * kSteps) return static_cast<uint32_t>(value);
    const uint32_t shift = std::bit_width(value) - 6;
    return shift * kSteps + static_cast<uint32_t>(value >> shift);
  }
  static uint64_t UpperEdge(uint32_t bucket) {
    if (bucket < 2 * kSteps) return bucket;
    const uint32_t shift = bucket / kSteps - 1;
    return ((uint64_t{bucket} % kSteps + kSteps + 1) << shift) - 1;
  }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
};

}  // namespace blktape
