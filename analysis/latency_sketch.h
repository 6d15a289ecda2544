#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>

namespace blktape {

// Durations in ns in little memory (1.3 KiB), where there are many histograms: one for each step of
// time, size, flag or process. Count, minimum, maximum and mean are exact. Percentiles are by
// nearest rank and the middle of the bucket: every power of two is cut into 2^kSubBits buckets of
// equal width, so they are off by at most 1 / 2^(kSubBits + 1) of the value (1/16, 6.25 %); from
// 2^41 ns (37 min) on all durations share the last bucket. LatencyHistogram is the exact one. Not
// thread-safe.
class LatencySketch {
 public:
  static constexpr int kSubBits = 3;
  static constexpr double kRelativeErrorBound = 1.0 / (1 << (kSubBits + 1));
  static constexpr int kBuckets = (41 - kSubBits + 1) << kSubBits;

  void Add(int64_t ns) {
    if (count_ == 0 || ns < min_ns_) min_ns_ = ns;
    if (count_ == 0 || ns > max_ns_) max_ns_ = ns;
    ++count_;
    sum_ns_ += static_cast<double>(ns);
    ++buckets_[static_cast<size_t>(BucketOf(ns))];
  }

  LatencySketch& operator+=(const LatencySketch& other) {
    if (other.count_ == 0) return *this;
    min_ns_ = count_ == 0 ? other.min_ns_ : std::min(min_ns_, other.min_ns_);
    max_ns_ = count_ == 0 ? other.max_ns_ : std::max(max_ns_, other.max_ns_);
    count_ += other.count_;
    sum_ns_ += other.sum_ns_;
    for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    return *this;
  }

  uint64_t count() const { return count_; }
  std::optional<int64_t> min_ns() const {
    return count_ == 0 ? std::nullopt : std::optional(min_ns_);
  }
  std::optional<int64_t> max_ns() const {
    return count_ == 0 ? std::nullopt : std::optional(max_ns_);
  }
  std::optional<double> mean_ns() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ns_ / static_cast<double>(count_));
  }
  // Absent where fewer samples are there than a percentile of its own needs: 1 / (1 - p).
  std::optional<int64_t> PercentileNs(uint32_t ppm) const {
    constexpr uint64_t kMillion = 1'000'000;
    const uint64_t needed =
        ppm >= kMillion ? 1 : (kMillion + (kMillion - ppm) - 1) / (kMillion - ppm);
    if (count_ < needed) return std::nullopt;
    const auto rank = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(count_) * ppm + kMillion - 1) / kMillion);
    uint64_t seen = 0;
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      seen += buckets_[static_cast<size_t>(bucket)];
      if (seen < rank) continue;
      const int64_t low_ns = LowNs(bucket);
      const int64_t middle_ns = low_ns + (LowNs(bucket + 1) - low_ns) / 2;
      return std::clamp(middle_ns, min_ns_, max_ns_);
    }
    return max_ns_;
  }

  uint64_t of_bucket(int bucket) const { return buckets_[static_cast<size_t>(bucket)]; }
  // `ns` >= 0.
  static int BucketOf(int64_t ns) {
    const auto value = static_cast<uint64_t>(ns);
    if (value < (1u << kSubBits)) return static_cast<int>(value);
    const int power = static_cast<int>(std::bit_width(value)) - 1;
    const int bucket = ((power - kSubBits + 1) << kSubBits) +
                       static_cast<int>((value >> (power - kSubBits)) & ((1u << kSubBits) - 1));
    return std::min(bucket, kBuckets - 1);
  }
  // The least duration that bucket counts.
  static int64_t LowNs(int bucket) {
    constexpr int kSub = 1 << kSubBits;
    if (bucket < kSub) return bucket;
    return static_cast<int64_t>(kSub + bucket % kSub) << (bucket / kSub - 1);
  }

 private:
  uint64_t count_ = 0;
  double sum_ns_ = 0;  // off by less than 2^-52 of it an I/O
  int64_t min_ns_ = 0;
  int64_t max_ns_ = 0;
  std::array<uint32_t, kBuckets> buckets_{};
};

}  // namespace blktape
