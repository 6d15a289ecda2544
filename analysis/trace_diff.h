#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/latency_histogram.h"
#include "analysis/profile.h"
#include "analysis/size_histogram.h"

namespace blktape {

// How two traces differ. docs/metrics.md, "How two traces differ", defines the figures.
struct TraceDiff {
  enum class Unit { kCount, kBytes, kNanos, kRate, kPercent, kNumber };
  struct Figure {
    std::string name;  // "reads", "service of reads, p99"
    Unit unit = Unit::kCount;
    std::optional<double> a, b;  // absent: the trace does not tell
    // b / a, where both are there and neither is 0.
    std::optional<double> ratio() const;
  };
  // How far two distributions lie apart, whatever their form.
  struct Effect {
    std::string name;  // "service of reads"
    // Of a value of each drawn at random, how likely B's is the larger (ties count half): 0.5 = no
    // difference.
    double b_larger = 0.5;
    // Cliff's delta, 2 * b_larger - 1: -1 to 1.
    double delta() const { return 2 * b_larger - 1; }
    // "none" below 0.147, "small" below 0.33, "medium" below 0.474, "large" (Romano et al. 2006).
    const char* size() const;
  };

  std::vector<Figure> figures;
  std::vector<Effect> effects;
  // The share of data requests whose size would have to change to make B's distribution of A's
  // (total variation): 0 = alike, 1 = no size in common.
  std::optional<double> read_sizes_apart, write_sizes_apart;
  // What a person would say of it, the largest difference first; empty: nothing of note.
  std::vector<std::string> words;
};

// Both profiles without a window or of the same.
TraceDiff CompareTraces(const Profile& a, const Profile& b);

// Of two distributions, by 1,000 quantiles of each: within 0.001 of what all samples would give.
// Absent if one has no samples.
std::optional<double> ProbabilityOfLarger(const LatencyHistogram& a, const LatencyHistogram& b);

// Total variation, 0 to 1. Absent if one is empty.
std::optional<double> SizesApart(const SizeHistogram& a, const SizeHistogram& b);

}  // namespace blktape
