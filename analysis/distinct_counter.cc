#include "analysis/distinct_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace blktape {

void DistinctCounter::Keep(uint64_t hash) {
  constexpr uint32_t kLookAgain = 16'384;
  // The set bit below the rest keeps the run of zeroes within what the rest can show.
  const uint64_t rest = hash << kIndexBits | uint64_t{1} << (kIndexBits - 1);
  uint8_t& kept = registers_[hash >> (64 - kIndexBits)];
  const auto rank = static_cast<uint8_t>(std::countl_zero(rest) + 1);
  if (rank <= kept) return;
  kept = rank;
  if (++raised_ < kLookAgain) return;
  raised_ = 0;
  const int least = std::min<int>(*std::ranges::min_element(registers_), 64 - kIndexBits);
  below_all_ = least == 0 ? 0 : ~uint64_t{0} << (64 - least);
}

void DistinctCounter::Merge(const DistinctCounter& other) {
  for (size_t i = 0; i < registers_.size(); ++i) {
    registers_[i] = std::max(registers_[i], other.registers_[i]);
  }
}

void DistinctCounter::Clear() {
  std::ranges::fill(registers_, uint8_t{0});
  below_all_ = 0;
  raised_ = 0;
}

double DistinctCounter::Estimate() const {
  const double m = static_cast<double>(registers_.size());
  double sum = 0;
  double zeroes = 0;
  for (const uint8_t rank : registers_) {
    sum += std::ldexp(1.0, -rank);
    if (rank == 0) ++zeroes;
  }
  const double alpha = 0.7213 / (1 + 1.079 / m);
  const double raw = alpha * m * m / sum;
  if (raw <= 2.5 * m && zeroes > 0) return m * std::log(m / zeroes);
  return raw;
}

}  // namespace blktape
