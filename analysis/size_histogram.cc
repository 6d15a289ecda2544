#include "analysis/size_histogram.h"

#include <algorithm>
#include <bit>

namespace blktape {
namespace {

// The k for which 2^(k-1) < bytes <= 2^k.
int PowerOf(uint64_t bytes) { return bytes <= 1 ? 0 : 64 - std::countl_zero(bytes - 1); }

}  // namespace

void SizeHistogram::AddLarge(uint64_t bytes, uint64_t count) {
  const auto found = large_.find(bytes);
  if (found != large_.end()) {
    found->second += count;
  } else if (large_.size() < kDistinctSizes - small_.size()) {
    large_.emplace(bytes, count);
  } else {
    other_ += count;
    other_by_power_[PowerOf(bytes)] += count;
  }
}

void SizeHistogram::Merge(const SizeHistogram& other) {
  for (size_t i = 0; i < small_.size(); ++i) small_[i] += other.small_[i];
  for (const auto& [bytes, count] : other.large_) AddLarge(bytes, count);
  for (size_t i = 0; i < other_by_power_.size(); ++i)
    other_by_power_[i] += other.other_by_power_[i];
  other_ += other.other_;
  total_ += other.total_;
}

uint64_t SizeHistogram::CountOf(uint64_t bytes) const {
  if (IsUsual(bytes)) return small_[bytes / kSector];
  const auto found = large_.find(bytes);
  return found == large_.end() ? 0 : found->second;
}

std::vector<SizeHistogram::Row> SizeHistogram::Exact() const {
  std::vector<Row> rows;
  for (size_t i = 0; i < small_.size(); ++i) {
    if (small_[i] != 0) rows.push_back({i * kSector, small_[i]});
  }
  for (const auto& [bytes, count] : large_) rows.push_back({bytes, count});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.bytes < b.bytes; });
  return rows;
}

std::vector<SizeHistogram::Row> SizeHistogram::PowersOfTwo() const {
  std::array<uint64_t, 65> powers = other_by_power_;
  for (const Row& row : Exact()) {
    if (row.bytes != 0) powers[PowerOf(row.bytes)] += row.count;
  }
  std::vector<Row> rows;
  for (size_t k = 0; k < powers.size(); ++k) {
    if (powers[k] == 0 && rows.empty()) continue;
    // 2^64 does not fit: the topmost row is named by the largest number there is.
    rows.push_back({k < 64 ? uint64_t{1} << k : ~uint64_t{0}, powers[k]});
  }
  while (!rows.empty() && rows.back().count == 0) rows.pop_back();
  return rows;
}

}  // namespace blktape
