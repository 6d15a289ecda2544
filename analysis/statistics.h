#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace blktape {

// Student's t: the value that a variable with `degrees` degrees of freedom (need not be whole, > 0)
// exceeds in absolute value with probability 1 - `confidence`. 0 < confidence < 1.
double StudentT(double confidence, double degrees);

// An estimate of the variance of a mean (not of the values), and the degrees of freedom that
// estimate has.
struct MeanVariance {
  double variance = 0;
  double degrees = 0;
};

// mean +- half_width holds the true mean with 95 % confidence, if the values are normal and
// independent.
struct MeanInterval {
  double mean = 0;
  std::optional<double> half_width;  // absent for fewer than two values
};
MeanInterval MeanInterval95(std::span<const double> values);

// s^2 / n with n - 1 degrees of freedom. Absent for fewer than two values.
std::optional<MeanVariance> VarianceOfMean(std::span<const double> values);

// The half width of the 95 % interval of a sum of independent means, each with its variance, with
// the degrees of freedom by Welch and Satterthwaite. One of no variance adds nothing.
double HalfWidth95(std::span<const MeanVariance> parts);
double HalfWidth95(const MeanVariance& a, const MeanVariance& b);

// Welch's interval of the difference mean(a) - mean(b), 95 %, for unequal variances, degrees of
// freedom by Welch and Satterthwaite. Absent where either has fewer than two values.
struct DifferenceInterval {
  double difference = 0;
  double low = 0;
  double high = 0;
};
std::optional<DifferenceInterval> WelchInterval95(std::span<const double> a,
                                                  std::span<const double> b);

// Stein's two stages: the spread of the first stage alone decides how many values are taken in all,
// before any more is seen, so that no interval is looked at until it happens to be narrow.
//
// How many in all, so that the half width of the 95 % interval is at most `half_width`: at least
// those of the first stage (two or more), at most `most`.
size_t SteinSampleSize(std::span<const double> first_stage, double half_width, size_t most);
// The mean of all values, with the spread and the degrees of freedom of the first `first_stage` of
// them: exact for normal values, whatever SteinSampleSize chose. 2 <= first_stage <= values.size().
MeanInterval SteinInterval95(std::span<const double> values, size_t first_stage);

// The line fitted to values by least squares over their numbers 1 to n.
struct Trend {
  double change = 0;  // along the line, from the first value to the last
  // Whether the 95 % interval of its slope (Student's t, n - 2 degrees of freedom) excludes 0.
  bool significant = false;
};
// Absent for fewer than three values.
std::optional<Trend> FitTrend(std::span<const double> values);

}  // namespace blktape
