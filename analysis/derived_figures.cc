#include "analysis/derived_figures.h"

#include <cmath>

#include "format/io_record.h"

namespace blktape {
namespace {

double DataBytes(const Profile& result) {
  return static_cast<double>(result.of(Op::kRead).bytes + result.of(Op::kWrite).bytes);
}

std::optional<double> Ratio(double part, double whole) {
  if (whole <= 0) return std::nullopt;
  return part / whole;
}

}  // namespace

void DerivedFigures::AddTimed(const Profile& result) {
  read_response_.Merge(result.latency_of(Op::kRead).q2c);
  write_response_.Merge(result.latency_of(Op::kWrite).q2c);
  read_service_.Merge(result.latency_of(Op::kRead).d2c);
  write_service_.Merge(result.latency_of(Op::kWrite).d2c);
  timed_bytes_ += DataBytes(result);
  timed_busy_ns_ += static_cast<double>(result.busy_ns);
}

void DerivedFigures::AddMax(const Profile& result, const proto::ReplayOutcome& outcome) {
  max_ios_ += static_cast<double>(result.data_requests);
  max_bytes_ += DataBytes(result);
  max_wall_ns_ += static_cast<double>(outcome.wall_ns());
}

// Bytes a nanosecond are GB/s.
std::optional<double> DerivedFigures::data_rate_mb_s() const {
  return Ratio(1e3 * timed_bytes_, timed_busy_ns_);
}

std::optional<double> DerivedFigures::access_time_us() const {
  const double ios = static_cast<double>(read_service_.count() + write_service_.count());
  const double sum_ns =
      read_service_.mean_ns().value_or(0) * static_cast<double>(read_service_.count()) +
      write_service_.mean_ns().value_or(0) * static_cast<double>(write_service_.count());
  return Ratio(sum_ns / 1e3, ios);
}

std::optional<double> DerivedFigures::pcmark_form() const {
  const std::optional<double> rate = data_rate_mb_s();
  const std::optional<double> access_us = access_time_us();
  if (!rate || !access_us || *access_us <= 0) return std::nullopt;
  return std::sqrt(*rate * 1e3 / *access_us);
}

std::optional<double> DerivedFigures::max_iops() const {
  return Ratio(1e9 * max_ios_, max_wall_ns_);
}

std::optional<double> DerivedFigures::max_mb_s() const {
  return Ratio(1e3 * max_bytes_, max_wall_ns_);
}

std::optional<double> DerivedFigures::mean_transfer_bytes() const {
  return Ratio(max_bytes_, max_ios_);
}

}  // namespace blktape
