#include "replay/issue/lane_router.h"

#include <algorithm>

#include "base/check.h"

namespace blktape {
namespace {

using ByLane = std::array<uint64_t, kMaxLanes>;

void RaiseTo(const ByLane& other, ByLane* mine) {
  for (uint32_t lane = 0; lane < kMaxLanes; ++lane) {
    (*mine)[lane] = std::max((*mine)[lane], other[lane]);
  }
}

}  // namespace

LaneRouter::LaneRouter(std::span<const LaneProgress> lanes, bool keep_order)
    : lanes_(lanes), keep_order_(keep_order), table_(size_t{1} << kBucketBits) {
  BLKTAPE_CHECK(!lanes.empty() && lanes.size() <= kMaxLanes);
}

uint32_t LaneRouter::Bucket(uint32_t target, uint64_t region) {
  const uint64_t mixed = (region + target * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(mixed >> (64 - kBucketBits));
}

// Of the lanes that must come somewhere first, the one that is furthest from it: the others are
// waited for.
uint32_t LaneRouter::Choose(const ByLane& after, uint32_t roomiest) const {
  uint32_t chosen = roomiest;
  uint64_t furthest = 0;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const uint64_t through = lanes_[lane].complete_through.load(std::memory_order_acquire);
    const uint64_t missing = after[lane] > through ? after[lane] - through : 0;
    if (missing <= furthest) continue;
    furthest = missing;
    chosen = lane;
  }
  return chosen;
}

LaneRouter::Route LaneRouter::Place(const PlannedIo& io, uint32_t roomiest) {
  Route route{.lane = roomiest};
  if (!keep_order_ || io.bytes == 0) {
    ++placed_[roomiest];
    return route;
  }
  const bool changes = io.op != Op::kRead;
  const uint64_t first = io.offset_bytes >> kRegionShift;
  const uint64_t last = (io.offset_bytes + io.bytes - 1) >> kRegionShift;
  const bool wide = last - first >= kMaxRegions;
  const auto for_each_region = [&](auto&& use) {
    for (uint64_t region = first; region <= last; ++region) use(table_[Bucket(io.target, region)]);
  };

  const auto come_after = [&](const Touched& touched) {
    RaiseTo(changes ? touched.any : touched.changing, &route.after);
  };
  come_after(wide ? everything_ : wide_);
  if (!wide) for_each_region(come_after);
  route.lane = Choose(route.after, roomiest);
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const uint64_t through = lanes_[lane].complete_through.load(std::memory_order_acquire);
    if (lane == route.lane || route.after[lane] <= through) route.after[lane] = 0;
  }

  const uint64_t number = ++placed_[route.lane];
  const auto touch = [&](Touched& touched) {
    touched.any[route.lane] = number;
    if (changes) touched.changing[route.lane] = number;
  };
  touch(everything_);
  if (wide) {
    touch(wide_);
  } else {
    for_each_region(touch);
  }
  return route;
}

}  // namespace blktape
