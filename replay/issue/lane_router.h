#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay/issue/lane_progress.h"
#include "replay/plan/plan.h"

namespace blktape {

// Gives every I/O of a plan to a lane, so that I/Os that conflict keep their order: they go to the
// same lane, whose issuer orders them; where one conflicts with I/Os out in several lanes, its lane
// waits until the others have completed theirs. Two I/Os conflict if they touch the same 64 KiB of
// a target and one of them changes it; regions that share a bucket of the table are taken for one.
// One thread, the one that plans.
class LaneRouter {
 public:
  // `lanes`: at most kMaxLanes; must outlive the router. Without `keep_order` nothing conflicts.
  LaneRouter(std::span<const LaneProgress> lanes, bool keep_order);

  struct Route {
    uint32_t lane = 0;
    // By lane: how far it must have come before this I/O may be issued; 0: no matter.
    std::array<uint64_t, kMaxLanes> after{};
  };
  // The lane of the plan's next I/O. `roomiest`: the one to take where the choice is free.
  Route Place(const PlannedIo& io, uint32_t roomiest);

 private:
  // By lane: the last I/O that touched a region, and the last that changed it, 0 for none.
  struct Touched {
    std::array<uint64_t, kMaxLanes> any{};
    std::array<uint64_t, kMaxLanes> changing{};
  };
  static constexpr uint32_t kRegionShift = 16;
  static constexpr uint64_t kMaxRegions = 32;  // an I/O over more of them conflicts with everything
  static constexpr uint32_t kBucketBits = 14;

  static uint32_t Bucket(uint32_t target, uint64_t region);
  uint32_t Choose(const std::array<uint64_t, kMaxLanes>& after, uint32_t roomiest) const;

  const std::span<const LaneProgress> lanes_;
  const bool keep_order_;
  std::array<uint64_t, kMaxLanes> placed_{};
  Touched wide_;        // the I/Os over many regions
  Touched everything_;  // all I/Os
  std::vector<Touched> table_;
};

}  // namespace blktape
