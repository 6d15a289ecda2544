#include "replay/prepare/steady_state.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace blktape {

SteadyWindow JudgeSteadyState(std::span<const double> rounds) {
  SteadyWindow window;
  if (rounds.size() < kSteadyWindow) return window;
  const std::span<const double> last = rounds.last(kSteadyWindow);
  constexpr double kMiddle = (kSteadyWindow - 1) / 2.0;
  double weighted = 0;  // sum of (x - mean x) * y
  double squares = 0;   // sum of (x - mean x)^2
  for (size_t i = 0; i < last.size(); ++i) {
    const double x = static_cast<double>(i) - kMiddle;
    window.mean += last[i] / static_cast<double>(kSteadyWindow);
    weighted += x * last[i];
    squares += x * x;
  }
  if (!(window.mean > 0)) return window;
  const auto [low, high] = std::minmax_element(last.begin(), last.end());
  window.spread = (*high - *low) / window.mean;
  window.slope = std::abs(weighted / squares) * (kSteadyWindow - 1) / window.mean;
  window.steady = window.spread <= kSteadySpread && window.slope <= kSteadySlope;
  return window;
}

}  // namespace blktape
