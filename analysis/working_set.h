#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "analysis/distinct_counter.h"
#include "base/units.h"

namespace blktape {

// How much was touched in a window of time: distinct 4 KiB blocks of data requests, by issue. A
// window of a minute, ten or sixty follows the other from the first request on.
struct WorkingSet {
  struct Window {
    int64_t window_ns = 0;
    uint64_t windows = 0;     // in which anything was touched
    uint64_t peak_bytes = 0;  // the most of one
    double mean_bytes = 0;    // of those windows
  };
  std::array<Window, 3> windows{};
};

// Estimates by DistinctCounter, with its error. Memory: 192 KiB. Not thread-safe.
class WorkingSetBuilder {
 public:
  static constexpr uint64_t kBlockBytes = 4096;
  // Of a longer request only the beginning is looked at, as FootprintMeter does.
  static constexpr uint64_t kLongestBytes = uint64_t{64} << 20;

  // In order of issue; one that comes late counts in the window under way.
  void Add(int64_t at_ns, uint32_t device, uint64_t offset_bytes, uint64_t bytes);
  WorkingSet Finish();

 private:
  static constexpr std::array<int64_t, 3> kWindowsNs = {60 * kNanosPerSecond, 600 * kNanosPerSecond,
                                                        3'600 * kNanosPerSecond};

  // Ends the windows that are over at `at_ns`: each is the sum of the shorter ones in it.
  void EndUntil(int64_t minute);
  void End(size_t window);

  std::optional<int64_t> first_ns_;
  int64_t minute_ = 0;  // under way
  std::array<DistinctCounter, 3> touched_;
  std::array<bool, 3> any_{};
  std::array<double, 3> sum_bytes_{};
  WorkingSet result_;
};

}  // namespace blktape
