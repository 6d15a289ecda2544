#pragma once

#include <span>

namespace blktape {

// SNIA's rule (Solid State Storage Performance Test Specification, "steady state"), as the score
// uses it: over a window of 5 rounds maximum - minimum of the values is at most 20 % of their mean,
// and the least-squares line through them changes by at most 10 % of the mean over the window.
inline constexpr size_t kSteadyWindow = 5;
inline constexpr double kSteadySpread = 0.20;
inline constexpr double kSteadySlope = 0.10;

struct SteadyWindow {
  double mean = 0;
  double spread = 0;  // (maximum - minimum) / mean
  double slope = 0;   // |fitted change from the first to the last round| / mean
  bool steady = false;
};

// Judges the last five of `rounds`. Not steady if there are fewer, or if the mean is zero.
SteadyWindow JudgeSteadyState(std::span<const double> rounds);

}  // namespace blktape
