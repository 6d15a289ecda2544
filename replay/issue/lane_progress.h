#pragma once

#include <atomic>
#include <cstdint>

namespace blktape {

// Several threads may issue one replay. Each is a lane: an issuer with an engine of its own, which
// gets a part of the plan's I/Os.
inline constexpr uint32_t kMaxLanes = 8;

// How far a lane has come. Written by its thread, read by any.
struct LaneProgress {
  // Of the I/Os that the lane was given, counted from 1: this one and all before it are complete.
  alignas(64) std::atomic<uint64_t> complete_through = 0;
};

}  // namespace blktape
