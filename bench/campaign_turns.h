#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace blktape {

// Lets several campaigns on one machine measure one at a time, cycle by cycle: all do their first
// cycle, in random order, before one does its second, in another order. So a machine that warms up,
// or an hour that is noisier, meets all drives alike. Thread-safe; each campaign has a thread.
class CampaignTurns {
 public:
  // Equal seeds give equal orders.
  CampaignTurns(size_t campaigns, uint64_t seed);

  // Blocks until it is the turn of `campaign` (from 0) to work on its target in `cycle` (from 1).
  // It keeps the turn, also between two calls of one cycle, until it begins a later cycle or
  // leaves. Nobody gets a turn before every campaign has come or left: what they compute first
  // would disturb a run.
  void Begin(size_t campaign, uint64_t cycle);

  // The campaign has ended, with its cycles done or not.
  void Leave(size_t campaign);

 private:
  struct Place {
    uint64_t cycle = 0;  // 0: it has not come yet
    bool left = false;
  };
  bool IsBefore(size_t first, size_t second) const;
  bool MayGo(size_t campaign) const;
  uint64_t RankOf(size_t campaign, uint64_t cycle) const;

  const uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<Place> places_;
};

}  // namespace blktape
