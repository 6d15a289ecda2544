#include "replay/progress_meter.h"

#include <algorithm>

namespace blktape {
namespace {

double Share(double part, double whole) { return whole > 0 ? std::min(1.0, part / whole) : 0; }

double Share(int64_t part, int64_t whole) {
  return Share(static_cast<double>(part), static_cast<double>(whole));
}

}  // namespace

void ExpectedTimes::Add(int64_t at_ns) {
  last_ns_ = std::max(last_ns_, at_ns);
  if (count_++ % step_ != 0) return;
  if (kept_ns_.size() == kMostKept) {
    for (size_t i = 0; i < kMostKept / 2; ++i) kept_ns_[i] = kept_ns_[2 * i];
    kept_ns_.resize(kMostKept / 2);
    step_ *= 2;
  }
  kept_ns_.push_back(last_ns_);
}

int64_t ExpectedTimes::At(uint64_t index) const {
  if (index >= count_) return last_ns_;
  const uint64_t first = index / step_;
  const int64_t from_ns = kept_ns_[first];
  // The last one lies at most a step behind the last that is kept.
  const bool last = first + 1 == kept_ns_.size();
  const uint64_t steps = last ? count_ - 1 - first * step_ : step_;
  if (steps == 0) return from_ns;
  const int64_t to_ns = last ? last_ns_ : kept_ns_[first + 1];
  return from_ns + static_cast<int64_t>(static_cast<double>(to_ns - from_ns) *
                                        static_cast<double>(index - first * step_) /
                                        static_cast<double>(steps));
}

double ProgressMeter::Fraction(int64_t elapsed_ns, uint64_t issued) {
  double fraction = 0;
  if (length_.schedule_ns) {
    fraction = Share(elapsed_ns, *length_.schedule_ns);
  } else if (length_.expected.total_ns() > 0) {
    // At or after the last I/O that was issued and not beyond the next one, which time alone brings
    // nearer in a pause.
    const int64_t reached_ns = issued == 0 ? 0 : length_.expected.At(issued - 1);
    const int64_t next_ns = length_.expected.At(issued);
    position_ns_ = std::clamp(position_ns_ + (elapsed_ns - before_ns_), reached_ns, next_ns);
    fraction = Share(position_ns_, length_.expected.total_ns());
  } else if (length_.ios) {
    fraction = Share(static_cast<double>(issued), static_cast<double>(*length_.ios));
  }
  before_ns_ = elapsed_ns;
  // Whichever end comes first.
  return length_.limit_ns ? std::max(fraction, Share(elapsed_ns, *length_.limit_ns)) : fraction;
}

}  // namespace blktape
