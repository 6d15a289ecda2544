#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace blktape {

// When the I/Os of a replay are expected, by the recording's own times at the replay's speed, idle
// time cut as the replay cuts it. Of a long trace some of them; between these by a straight line.
class ExpectedTimes {
 public:
  static constexpr size_t kMostKept = 4096;

  // The next I/O is expected so long after the start; never before the one before it.
  void Add(int64_t at_ns);

  bool empty() const { return count_ == 0; }
  // Of the last I/O; 0 if there is none.
  int64_t total_ns() const { return last_ns_; }
  // Of the I/O with so many before it; beyond the last one the total.
  int64_t At(uint64_t index) const;

 private:
  uint64_t count_ = 0;
  uint64_t step_ = 1;             // every so many I/Os are kept
  std::vector<int64_t> kept_ns_;  // of I/O 0, step_, 2 step_ ...
  int64_t last_ns_ = 0;
};

// Which part of a replay is over. By what is known before it begins: its schedule, not the share of
// its I/Os, which jumps over each pause.
class ProgressMeter {
 public:
  struct Length {
    std::optional<int64_t> limit_ns;  // it ends then at the latest
    // Timed: it takes so long, whatever the drive does.
    std::optional<int64_t> schedule_ns;
    // Else, where it thinks as the recording did.
    ExpectedTimes expected;
    std::optional<uint64_t> ios;  // counts where nothing else is known
  };
  explicit ProgressMeter(Length length) : length_(std::move(length)) {}

  // From 0 to 1; 0 if the length is not known. Called with growing numbers.
  double Fraction(int64_t elapsed_ns, uint64_t issued);

 private:
  const Length length_;
  int64_t before_ns_ = 0;    // when it was last asked
  int64_t position_ns_ = 0;  // in the recording's time
};

}  // namespace blktape
