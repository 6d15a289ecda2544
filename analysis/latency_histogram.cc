#include "analysis/latency_histogram.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace blktape {

LatencyHistogram& LatencyHistogram::operator=(const LatencyHistogram& other) {
  if (this != &other) *this = LatencyHistogram(other);
  return *this;
}

int LatencyHistogram::BucketOf(int64_t ns) {
  const uint64_t value = static_cast<uint64_t>(ns);
  if (value < (1u << kSubBits)) return static_cast<int>(value);
  const int exponent = 63 - std::countl_zero(value);
  const int sub = static_cast<int>(value >> (exponent - kSubBits)) & ((1 << kSubBits) - 1);
  return ((exponent - kSubBits + 1) << kSubBits) + sub;
}

int64_t LatencyHistogram::MiddleOf(int bucket) {
  if (bucket < (1 << kSubBits)) return bucket;
  const int shift = (bucket >> kSubBits) - 1;
  const uint64_t mantissa = static_cast<uint64_t>(bucket & ((1 << kSubBits) - 1)) | 1u << kSubBits;
  const uint64_t lowest = mantissa << shift;
  return static_cast<int64_t>(lowest + ((uint64_t{1} << shift) - 1) / 2);
}

void LatencyHistogram::SwitchToBuckets() {
  buckets_ = std::make_unique<std::vector<uint64_t>>(kBuckets, 0);
  for (const int64_t ns : samples_) ++(*buckets_)[BucketOf(ns)];
  samples_ = {};
}

void LatencyHistogram::Add(int64_t ns) {
  BLKTAPE_CHECK(ns >= 0);
  if (count_ == 0) {
    min_ns_ = max_ns_ = ns;
  } else {
    min_ns_ = std::min(min_ns_, ns);
    max_ns_ = std::max(max_ns_, ns);
  }
  ++count_;
  sum_ns_ += ns;
  if (buckets_ != nullptr) {
    ++(*buckets_)[BucketOf(ns)];
    return;
  }
  samples_.push_back(ns);
  if (samples_.size() > exact_samples_) SwitchToBuckets();
}

void LatencyHistogram::AddAll(std::span<const int64_t> ns) {
  if (buckets_ == nullptr) {
    while (!ns.empty() && buckets_ == nullptr) {
      Add(ns.front());
      ns = ns.subspan(1);
    }
  }
  if (ns.empty()) return;
  int64_t least_ns = min_ns_, most_ns = max_ns_;  // there are samples, as there are buckets
  __int128 sum_ns = 0;
  uint64_t* const buckets = buckets_->data();
  for (const int64_t one_ns : ns) {
    BLKTAPE_CHECK(one_ns >= 0);
    least_ns = std::min(least_ns, one_ns);
    most_ns = std::max(most_ns, one_ns);
    sum_ns += one_ns;
    ++buckets[BucketOf(one_ns)];
  }
  min_ns_ = least_ns;
  max_ns_ = most_ns;
  sum_ns_ += sum_ns;
  count_ += ns.size();
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  min_ns_ = count_ == 0 ? other.min_ns_ : std::min(min_ns_, other.min_ns_);
  max_ns_ = count_ == 0 ? other.max_ns_ : std::max(max_ns_, other.max_ns_);
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  if (buckets_ == nullptr && (other.buckets_ != nullptr || count_ > exact_samples_)) {
    SwitchToBuckets();
  }
  if (buckets_ == nullptr) {
    samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
  } else if (other.buckets_ == nullptr) {
    for (const int64_t ns : other.samples_) ++(*buckets_)[BucketOf(ns)];
  } else {
    for (int i = 0; i < kBuckets; ++i) (*buckets_)[i] += (*other.buckets_)[i];
  }
}

std::optional<int64_t> LatencyHistogram::min_ns() const {
  if (count_ == 0) return std::nullopt;
  return min_ns_;
}

std::optional<int64_t> LatencyHistogram::max_ns() const {
  if (count_ == 0) return std::nullopt;
  return max_ns_;
}

std::optional<double> LatencyHistogram::mean_ns() const {
  if (count_ == 0) return std::nullopt;
  return static_cast<double>(static_cast<long double>(sum_ns_) / static_cast<long double>(count_));
}

std::optional<int64_t> LatencyHistogram::PercentileNs(uint32_t ppm) const {
  constexpr uint32_t kMillion = 1'000'000;
  BLKTAPE_CHECK(ppm > 0 && ppm <= kMillion);
  if (count_ == 0) return std::nullopt;
  const uint64_t rank = static_cast<uint64_t>(
      (static_cast<unsigned __int128>(count_) * ppm + kMillion - 1) / kMillion);
  if (buckets_ == nullptr) {
    std::vector<int64_t> sorted = samples_;
    const auto nth = sorted.begin() + static_cast<int64_t>(rank - 1);
    std::nth_element(sorted.begin(), nth, sorted.end());
    return *nth;
  }
  uint64_t seen = 0;
  for (int i = 0; i < kBuckets; ++i) {
    seen += (*buckets_)[i];
    if (seen >= rank) return std::clamp(MiddleOf(i), min_ns_, max_ns_);
  }
  return max_ns_;
}

int64_t LatencyHistogram::LowOf(int bucket) {
  constexpr int kSub = 1 << kSubBits;
  if (bucket < kSub) return bucket;
  const auto low = static_cast<unsigned __int128>(kSub + bucket % kSub) << (bucket / kSub - 1);
  return low > INT64_MAX ? INT64_MAX : static_cast<int64_t>(low);
}

std::vector<LatencyHistogram::Row> LatencyHistogram::Rows() const {
  constexpr int kFold = kSubBits - 3;
  std::vector<uint64_t> counts((kBuckets >> kFold) + 1);
  if (buckets_ != nullptr) {
    for (size_t i = 0; i < buckets_->size(); ++i) counts[i >> kFold] += (*buckets_)[i];
  } else {
    for (const int64_t ns : samples_) ++counts[static_cast<size_t>(BucketOf(ns)) >> kFold];
  }
  std::vector<Row> rows;
  uint64_t left = count_;
  for (size_t i = 0; i < counts.size() && left > 0; ++i) {
    if (counts[i] == 0 && rows.empty()) continue;
    left -= counts[i];
    const int first = static_cast<int>(i) << kFold;
    rows.push_back({LowOf(first), LowOf(first + (1 << kFold)), counts[i],
                    static_cast<double>(left) / static_cast<double>(count_)});
  }
  return rows;
}

uint64_t LatencyHistogram::SamplesNeeded(uint32_t ppm) {
  constexpr uint32_t kMillion = 1'000'000;
  if (ppm >= kMillion) return 1;
  return (kMillion + (kMillion - ppm) - 1) / (kMillion - ppm);
}

std::optional<int64_t> LatencyHistogram::MeaningfulPercentileNs(uint32_t ppm) const {
  if (count_ < SamplesNeeded(ppm)) return std::nullopt;
  return PercentileNs(ppm);
}

}  // namespace blktape
