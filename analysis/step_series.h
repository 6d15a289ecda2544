#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace blktape {

// The shortest of 1, 2, 5, 10 ... ns up to 1 s, then 1, 2, 5, 10, 15, 30 s, the same in minutes,
// then 1, 2, 3, 6, 12 h and 1, 2, 4 ... d, of which `most` cover `length_ns`; never below 1 us.
inline int64_t NiceStepNs(int64_t length_ns, size_t most) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kDay = 86'400 * kSecond;
  static constexpr int64_t kSeconds[] = {1,    2,        5,        10,       15,       30,
                                         60,   120,      300,      600,      900,      1800,
                                         3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600};
  const auto covers = [&](int64_t step_ns) {
    return length_ns / step_ns < static_cast<int64_t>(most);
  };
  for (int64_t step_ns = 1'000; step_ns < kSecond; step_ns *= 10) {
    for (const int64_t times : {1, 2, 5}) {
      if (covers(step_ns * times)) return step_ns * times;
    }
  }
  for (const int64_t seconds : kSeconds) {
    if (covers(seconds * kSecond)) return seconds * kSecond;
  }
  int64_t step_ns = kDay;
  while (!covers(step_ns) && step_ns < (int64_t{1} << 60)) step_ns *= 2;
  return step_ns;
}

// Values over time in at most `most` steps of equal length, counted from time 0. A time beyond the
// last step doubles the length of all, as often as it takes: two neighbours become one by
// Step::operator+=. So memory is bounded whatever the length, and the result does not depend on how
// it was guessed, but for the length of a step. Not thread-safe.
template <typename Step>
class StepSeries {
 public:
  // `most` is even and at least 2.
  StepSeries(size_t most, int64_t step_ns) : most_(most), step_ns_(step_ns) {}

  // The step that holds `ns`; a time before 0 counts in the first.
  Step& At(int64_t ns) {
    size_t index = IndexOf(ns);
    while (index >= most_) {
      Fold();
      index = IndexOf(ns);
    }
    if (index >= steps_.size()) steps_.resize(index + 1);
    return steps_[index];
  }
  // Doubles until a step is at least so long.
  void FoldTo(int64_t step_ns) {
    while (step_ns_ < step_ns) Fold();
  }

  int64_t step_ns() const { return step_ns_; }
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  size_t IndexOf(int64_t ns) const { return ns <= 0 ? 0 : static_cast<size_t>(ns / step_ns_); }
  void Fold() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (i % 2 == 1) {
        steps_[i / 2] += steps_[i];
      } else if (i > 0) {
        steps_[i / 2] = std::move(steps_[i]);
      }
    }
    steps_.resize((steps_.size() + 1) / 2);
    step_ns_ *= 2;
  }

  size_t most_;
  int64_t step_ns_;
  std::vector<Step> steps_;
};

// How much of each step is covered by intervals, counted as often as they overlap: the integral of
// the depth where the intervals are I/Os. An interval costs the same however many steps it spans.
class SpanSeries {
 public:
  SpanSeries(size_t most, int64_t step_ns) : most_(most), step_ns_(step_ns) {}

  // [start, end); what lies before 0 is left out.
  void Add(int64_t start_ns, int64_t end_ns) {
    start_ns = std::max<int64_t>(start_ns, 0);
    if (end_ns <= start_ns) return;
    while (static_cast<size_t>((end_ns - 1) / step_ns_) >= most_) Fold();
    const auto first = static_cast<size_t>(start_ns / step_ns_);
    const auto last = static_cast<size_t>((end_ns - 1) / step_ns_);
    if (last >= spans_.size()) spans_.resize(last + 1);
    if (first == last) {
      spans_[first].part_ns += static_cast<double>(end_ns - start_ns);
      return;
    }
    spans_[first].part_ns += static_cast<double>(StartOf(first + 1) - start_ns);
    spans_[last].part_ns += static_cast<double>(end_ns - StartOf(last));
    ++spans_[first + 1].whole_change;
    --spans_[last].whole_change;
  }
  void FoldTo(int64_t step_ns) {
    while (step_ns_ < step_ns) Fold();
  }

  int64_t step_ns() const { return step_ns_; }
  // ns of each step; exact below 2^53.
  std::vector<double> CoveredNs() {
    Settle();
    std::vector<double> covered_ns;
    covered_ns.reserve(spans_.size());
    for (const Span& span : spans_) covered_ns.push_back(span.part_ns);
    return covered_ns;
  }

 private:
  struct Span {
    double part_ns = 0;
    int64_t whole_change = 0;  // intervals that cover whole steps from here on, less those that end
  };

  int64_t StartOf(size_t index) const { return static_cast<int64_t>(index) * step_ns_; }
  void Settle() {
    int64_t whole = 0;
    for (Span& span : spans_) {
      whole += span.whole_change;
      span.whole_change = 0;
      span.part_ns += static_cast<double>(whole) * static_cast<double>(step_ns_);
    }
  }
  void Fold() {
    Settle();
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (i % 2 == 1) {
        spans_[i / 2].part_ns += spans_[i].part_ns;
      } else {
        spans_[i / 2] = spans_[i];
      }
    }
    spans_.resize((spans_.size() + 1) / 2);
    step_ns_ *= 2;
  }

  size_t most_;
  int64_t step_ns_;
  std::vector<Span> spans_;
};

}  // namespace blktape
