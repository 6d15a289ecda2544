#include "analysis/distinct_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace blktape {

void DistinctCounter::Add(uint64_t key) {
  const uint64_t hash = Mix64(key);
  // The set bit below the rest keeps the run of zeroes within what the rest can show.
  const uint64_t rest = hash << kIndexBits | uint64_t{1} << (kIndexBits - 1);
  uint8_t& kept = registers_[hash >> (64 - kIndexBits)];
  kept = std::max(kept, static_cast<uint8_t>(std::countl_zero(rest) + 1));
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
