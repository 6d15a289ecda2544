#pragma once

#include <optional>
#include <span>

namespace blktape {

// Student's t: the value that a variable with `degrees` degrees of freedom (need not be whole, > 0)
// exceeds in absolute value with probability 1 - `confidence`. 0 < confidence < 1. Relative error
// below 1e-9.
double StudentT(double confidence, double degrees);

// mean +- half_width holds the true mean with 95 % confidence, if the values are normal and
// independent.
struct MeanInterval {
  double mean = 0;
  std::optional<double> half_width;  // absent for fewer than two values
};
MeanInterval MeanInterval95(std::span<const double> values);

// Welch's interval of the difference mean(a) - mean(b), 95 %, for unequal variances, degrees of
// freedom by Welch and Satterthwaite. Absent where either has fewer than two values.
struct DifferenceInterval {
  double difference = 0;
  double low = 0;
  double high = 0;
};
std::optional<DifferenceInterval> WelchInterval95(std::span<const double> a,
                                                  std::span<const double> b);

}  // namespace blktape
