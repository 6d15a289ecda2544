#include "bench/campaign_turns.h"

#include <tuple>

namespace blktape {

CampaignTurns::CampaignTurns(size_t campaigns, size_t per_round, uint64_t seed)
    : per_round_(per_round), seed_(seed), places_(campaigns) {}

// A number drawn for this campaign and cycle (splitmix64 by Vigna, public domain): their order is a
// random one, another in each cycle.
uint64_t CampaignTurns::RankOf(size_t campaign, uint64_t cycle) const {
  uint64_t z = seed_ + 0x9e3779b97f4a7c15u * (cycle * places_.size() + campaign + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool CampaignTurns::IsBefore(size_t first, size_t second) const {
  const auto place = [this](size_t campaign) {
    const uint64_t cycle = places_[campaign].cycle;
    // Who has not come yet is before all.
    return std::tuple(cycle > 0, campaign / per_round_, cycle, RankOf(campaign, cycle), campaign);
  };
  return place(first) < place(second);
}

bool CampaignTurns::MayGo(size_t campaign) const {
  for (size_t other = 0; other < places_.size(); ++other) {
    if (other != campaign && !places_[other].left && IsBefore(other, campaign)) return false;
  }
  return true;
}

bool CampaignTurns::Begin(size_t campaign, uint64_t cycle) {
  std::unique_lock lock(mutex_);
  places_[campaign].cycle = cycle;
  moved_.notify_all();
  moved_.wait(lock, [&] { return called_off_ || MayGo(campaign); });
  begun_ = begun_ || !called_off_;
  return !called_off_;
}

void CampaignTurns::Leave(size_t campaign, bool failed) {
  const std::lock_guard lock(mutex_);
  places_[campaign].left = true;
  if (failed && !begun_) called_off_ = true;
  moved_.notify_all();
}

}  // namespace blktape
