#include "analysis/reuse_distance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/distinct_counter.h"
#include "base/saturating.h"

namespace blktape {
namespace {

constexpr int kMostHalvings = 63;

}  // namespace

double ReuseDistance::HitShare(size_t k) const {
  const auto* const end = again.begin() + k + 1;
  const uint64_t hits = std::accumulate(again.begin(), end, uint64_t{0});
  const uint64_t touches = std::accumulate(end, again.end(), hits + first_touches);
  return touches == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(touches);
}

ReuseDistanceBuilder::ReuseDistanceBuilder(size_t most) : most_(most), tree_(4 * most + 1) {}

void ReuseDistanceBuilder::Mark(size_t place, int32_t change) {
  for (; place < tree_.size(); place += place & (0 - place)) tree_[place] += change;
}

uint64_t ReuseDistanceBuilder::MarkedUpTo(size_t place) const {
  int64_t marked = 0;
  for (; place > 0; place &= place - 1) marked += tree_[place];
  return static_cast<uint64_t>(marked);
}

void ReuseDistanceBuilder::Compact() {
  std::vector<std::pair<size_t, uint64_t>> by_place;
  by_place.reserve(places_.size());
  for (const auto& [hash, place] : places_) by_place.emplace_back(place, hash);
  std::sort(by_place.begin(), by_place.end());
  std::fill(tree_.begin(), tree_.end(), 0);
  next_ = 1;
  for (const auto& [place, hash] : by_place) {
    places_[hash] = next_;
    Mark(next_++, 1);
  }
}

void ReuseDistanceBuilder::Halve() {
  ++halvings_;
  std::erase_if(places_,
                [this](const auto& entry) { return entry.first >> (64 - halvings_) != 0; });
  Compact();
}

void ReuseDistanceBuilder::Touch(uint64_t hash) {
  if (next_ == tree_.size()) Compact();
  const uint64_t stands_for = uint64_t{1} << halvings_;
  const auto [found, is_new] = places_.try_emplace(hash, next_);
  if (is_new) {
    result_.first_touches = SaturatingAdd(result_.first_touches, stands_for);
  } else {
    const uint64_t between = places_.size() - MarkedUpTo(found->second);
    const auto of_class = static_cast<size_t>(std::bit_width(between));
    uint64_t& count = result_.again[of_class == 0 ? 0 : of_class + static_cast<size_t>(halvings_)];
    count = SaturatingAdd(count, stands_for);
    Mark(found->second, -1);
    found->second = next_;
  }
  Mark(next_++, 1);
  while (places_.size() > most_ && halvings_ < kMostHalvings) Halve();
}

void ReuseDistanceBuilder::Add(uint32_t device, uint64_t offset_bytes, uint64_t bytes) {
  if (bytes == 0) return;
  const uint64_t end_bytes = SaturatingAdd(offset_bytes, std::min(bytes, kLongestBytes));
  for (uint64_t block = offset_bytes / kBlockBytes; block <= (end_bytes - 1) / kBlockBytes;
       ++block) {
    // 52 bits of block, 12 of device: no two of a real machine meet.
    const uint64_t hash = Mix64(block ^ uint64_t{device} << 52);
    if (halvings_ == 0 || hash >> (64 - halvings_) == 0) Touch(hash);
  }
}

ReuseDistance ReuseDistanceBuilder::Finish() const {
  ReuseDistance result = result_;
  result.sampled_share = std::ldexp(1.0, -halvings_);
  return result;
}

}  // namespace blktape
