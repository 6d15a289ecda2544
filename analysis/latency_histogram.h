#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace blktape {

// A percentile in parts per million, so that ranks are whole-number arithmetic.
inline constexpr uint32_t kP50 = 500'000;
inline constexpr uint32_t kP95 = 950'000;
inline constexpr uint32_t kP99 = 990'000;
inline constexpr uint32_t kP999 = 999'000;
inline constexpr uint32_t kP9999 = 999'900;

// Durations in ns, none negative. Count, minimum, maximum and mean are always exact.
//
// Percentiles are by nearest rank (the sample number ceil(p * n) of the sorted samples) and exact
// up to kExactSamples samples, which are kept as they are. From then on samples are counted in
// log-linear buckets: every power of two [2^e, 2^(e+1)) is divided into 2^kSubBits buckets of equal
// width 2^(e - kSubBits), values below 2^kSubBits have a bucket each. A percentile is then the
// middle of the bucket that holds the sample of that rank, so it is off by at most half a width,
// that is 2^(e - kSubBits - 1) <= value / 2^(kSubBits + 1): at most 1/256 of the value (0.4 %).
//
// Memory: at most 512 KiB of samples, or 57 KiB of buckets once there are more. Not thread-safe.
class LatencyHistogram {
 public:
  static constexpr uint64_t kExactSamples = 65'536;
  static constexpr int kSubBits = 7;
  static constexpr double kRelativeErrorBound = 1.0 / (1 << (kSubBits + 1));

  // With `exact_samples` fewer are kept as they are. Fewer than 7,296 save no memory.
  explicit LatencyHistogram(uint64_t exact_samples = kExactSamples)
      : exact_samples_(exact_samples) {}
  LatencyHistogram(LatencyHistogram&&) = default;
  LatencyHistogram& operator=(LatencyHistogram&&) = default;
  LatencyHistogram(const LatencyHistogram& other) : exact_samples_(other.exact_samples_) {
    Merge(other);
  }
  LatencyHistogram& operator=(const LatencyHistogram& other);
  ~LatencyHistogram() = default;

  void Add(int64_t ns);
  void AddAll(std::span<const int64_t> ns);
  // The result is what adding the samples of both would have given, whatever the order.
  void Merge(const LatencyHistogram& other);

  uint64_t count() const { return count_; }
  // Absent without samples.
  std::optional<int64_t> min_ns() const;
  std::optional<int64_t> max_ns() const;
  std::optional<double> mean_ns() const;
  // Absent without samples. `ppm` in (0, 1,000,000].
  std::optional<int64_t> PercentileNs(uint32_t ppm) const;
  // How many samples lie in [from_ns, to_ns), each an eighth of a power of two (below 128 ns: 16
  // ns). Counts are exact. From the first bucket with a sample to the last.
  struct Row {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    uint64_t count = 0;
    double share_slower = 0;  // of all samples, those of to_ns and more
  };
  std::vector<Row> Rows() const;

  // Whether percentiles are exact.
  bool exact() const { return buckets_ == nullptr; }

  // A percentile says something of its own only from this many samples on (100 for p99, 1,000 for
  // p99.9): with fewer its nearest rank is the maximum.
  static uint64_t SamplesNeeded(uint32_t ppm);
  // PercentileNs, absent too where there are fewer than SamplesNeeded: what people are shown.
  std::optional<int64_t> MeaningfulPercentileNs(uint32_t ppm) const;

 private:
  static constexpr int kBuckets = (63 - kSubBits + 1) << kSubBits;
  static int BucketOf(int64_t ns);
  static int64_t MiddleOf(int bucket);
  static int64_t LowOf(int bucket);
  void SwitchToBuckets();

  uint64_t exact_samples_;
  uint64_t count_ = 0;
  __int128 sum_ns_ = 0;
  int64_t min_ns_ = 0;
  int64_t max_ns_ = 0;
  std::vector<int64_t> samples_;                    // while exact
  std::unique_ptr<std::vector<uint64_t>> buckets_;  // afterwards
};

}  // namespace blktape
