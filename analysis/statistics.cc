#include "analysis/statistics.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "base/check.h"

namespace blktape {
namespace {

constexpr double kConfidence = 0.95;

double Mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Around their mean, with n - 1.
double Variance(std::span<const double> values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / (static_cast<double>(values.size()) - 1);
}

}  // namespace

double StudentT(double confidence, double degrees) {
  BLKTAPE_CHECK(confidence > 0 && confidence < 1 && degrees > 0);
  const boost::math::students_t distribution(degrees);
  return boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
}

std::optional<MeanVariance> VarianceOfMean(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  return MeanVariance{.variance = Variance(values) / n, .degrees = n - 1};
}

MeanInterval MeanInterval95(std::span<const double> values) {
  MeanInterval interval{.mean = Mean(values), .half_width = std::nullopt};
  if (const auto variance = VarianceOfMean(values)) {
    interval.half_width = StudentT(kConfidence, variance->degrees) * std::sqrt(variance->variance);
  }
  return interval;
}

double HalfWidth95(std::span<const MeanVariance> parts) {
  double variance = 0;
  for (const MeanVariance& one : parts) variance += one.variance;
  if (!(variance > 0)) return 0;
  double inverse_degrees = 0;
  for (const MeanVariance& one : parts) {
    const double share = one.variance / variance;
    if (share > 0) inverse_degrees += share * share / one.degrees;
  }
  return StudentT(kConfidence, 1 / inverse_degrees) * std::sqrt(variance);
}

double HalfWidth95(const MeanVariance& a, const MeanVariance& b) {
  const std::array<MeanVariance, 2> parts = {a, b};
  return HalfWidth95(parts);
}

std::optional<DifferenceInterval> WelchInterval95(std::span<const double> a,
                                                  std::span<const double> b) {
  const auto of_a = VarianceOfMean(a);
  const auto of_b = VarianceOfMean(b);
  if (!of_a || !of_b) return std::nullopt;
  const double half_width = HalfWidth95(*of_a, *of_b);
  const double difference = Mean(a) - Mean(b);
  return DifferenceInterval{difference, difference - half_width, difference + half_width};
}

size_t SteinSampleSize(std::span<const double> first_stage, double half_width, size_t most) {
  BLKTAPE_CHECK(first_stage.size() >= 2 && half_width > 0);
  const auto n = static_cast<double>(first_stage.size());
  const double ratio = StudentT(kConfidence, n - 1) / half_width;
  const double wanted = std::ceil(ratio * ratio * Variance(first_stage));
  if (wanted >= static_cast<double>(most)) return std::max(most, first_stage.size());
  return std::max(static_cast<size_t>(wanted), first_stage.size());
}

MeanInterval SteinInterval95(std::span<const double> values, size_t first_stage) {
  BLKTAPE_CHECK(first_stage >= 2 && first_stage <= values.size());
  const double spread = std::sqrt(Variance(values.first(first_stage)));
  return {.mean = Mean(values),
          .half_width = StudentT(kConfidence, static_cast<double>(first_stage - 1)) * spread /
                        std::sqrt(static_cast<double>(values.size()))};
}

std::optional<Trend> FitTrend(std::span<const double> values) {
  if (values.size() < 3) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  const double mean_x = (n + 1) / 2;
  const double mean_y = Mean(values);
  double squares_x = 0;
  double products = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i + 1) - mean_x;
    squares_x += x * x;
    products += x * (values[i] - mean_y);
  }
  const double slope = products / squares_x;
  double residuals = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double off = values[i] - mean_y - slope * (static_cast<double>(i + 1) - mean_x);
    residuals += off * off;
  }
  const double error = std::sqrt(residuals / (n - 2) / squares_x);
  return Trend{.change = slope * (n - 1),
               .significant = std::abs(slope) > StudentT(kConfidence, n - 2) * error};
}

}  // namespace blktape
