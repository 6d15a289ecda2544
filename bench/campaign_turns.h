#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace blktape {

// Lets several campaigns on one machine measure one at a time, cycle by cycle: all do their first
// cycle, in random order, before one does its second, in another order. So a machine that warms up,
// or an hour that is noisier, meets all drives alike. Campaigns come in rounds, for instance one
// for each trace: a round begins when the one before has ended. Thread-safe; each campaign has a
// thread.
class CampaignTurns {
 public:
  // Equal seeds give equal orders. Campaign i is of round i / per_round; per_round > 0.
  CampaignTurns(size_t campaigns, size_t per_round, uint64_t seed);

  // Blocks until it is the turn of `campaign` (from 0) to work on its target in `cycle` (from 1).
  // It keeps the turn, also between two calls of one cycle, until it begins a later cycle or
  // leaves. Nobody gets a turn before every campaign has come or left: what they compute first
  // would disturb a run. False, at once or later: there is no turn for anybody, as one of the
  // campaigns failed before the first of all turns.
  bool Begin(size_t campaign, uint64_t cycle);

  // The campaign has ended, with its cycles done or not. `failed`: it could not go on.
  void Leave(size_t campaign, bool failed);

 private:
  struct Place {
    uint64_t cycle = 0;  // 0: it has not come yet
    bool left = false;
  };
  bool IsBefore(size_t first, size_t second) const;
  bool MayGo(size_t campaign) const;
  uint64_t RankOf(size_t campaign, uint64_t cycle) const;

  const size_t per_round_;
  const uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<Place> places_;
  bool begun_ = false;  // somebody has had a turn
  bool called_off_ = false;
};

}  // namespace blktape
