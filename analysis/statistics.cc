#include "analysis/statistics.h"

#include <cmath>

#include "base/check.h"

namespace blktape {
namespace {

constexpr double kConfidence = 0.95;

// The continued fraction of the incomplete beta function, by Lentz's method (Numerical
// Recipes 6.4).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kEnough = 1e-15;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m < 10'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < kEnough) break;
  }
  return fraction;
}

// The regularised incomplete beta function I_x(a, b).
double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(a, b, x) / a;
  return 1 - front * BetaFraction(b, a, 1 - x) / b;
}

// P(|T| > t) for `degrees` degrees of freedom.
double TwoSidedTail(double t, double degrees) {
  return IncompleteBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

struct Moments {
  double mean = 0;
  double variance_of_mean = 0;  // s^2 / n
  double degrees = 0;           // n - 1
};

Moments MomentsOf(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  Moments moments{.degrees = n - 1};
  for (const double value : values) moments.mean += value / n;
  if (values.size() < 2) return moments;
  double squares = 0;
  for (const double value : values) squares += (value - moments.mean) * (value - moments.mean);
  moments.variance_of_mean = squares / (n - 1) / n;
  return moments;
}

}  // namespace

double StudentT(double confidence, double degrees) {
  BLKTAPE_CHECK(confidence > 0 && confidence < 1 && degrees > 0);
  double low = 0;
  double high = 1;
  while (TwoSidedTail(high, degrees) > 1 - confidence) high *= 2;
  for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
    const double middle = (low + high) / 2;
    (TwoSidedTail(middle, degrees) > 1 - confidence ? low : high) = middle;
  }
  return (low + high) / 2;
}

MeanInterval MeanInterval95(std::span<const double> values) {
  const Moments moments = MomentsOf(values);
  MeanInterval interval{.mean = moments.mean, .half_width = std::nullopt};
  if (values.size() >= 2) {
    interval.half_width =
        StudentT(kConfidence, moments.degrees) * std::sqrt(moments.variance_of_mean);
  }
  return interval;
}

std::optional<DifferenceInterval> WelchInterval95(std::span<const double> a,
                                                  std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const Moments of_a = MomentsOf(a);
  const Moments of_b = MomentsOf(b);
  const double variance = of_a.variance_of_mean + of_b.variance_of_mean;
  double half_width = 0;
  if (variance > 0) {
    const double degrees = variance * variance /
                           (of_a.variance_of_mean * of_a.variance_of_mean / of_a.degrees +
                            of_b.variance_of_mean * of_b.variance_of_mean / of_b.degrees);
    half_width = StudentT(kConfidence, degrees) * std::sqrt(variance);
  }
  const double difference = of_a.mean - of_b.mean;
  return DifferenceInterval{difference, difference - half_width, difference + half_width};
}

}  // namespace blktape
