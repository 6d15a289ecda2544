#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace blktape {

// How far a long piece of work is, on stderr. On a terminal one line is written over and over, cut
// to the terminal's width as it is then. Elsewhere (a log, TERM=dumb) a line now and then, without
// any escape. One thread.
class ProgressLine {
 public:
  explicit ProgressLine(Clock* clock = Clock::Monotonic());
  // Removes the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(std::string_view text);
  // How many columns of a text it shows now.
  size_t columns() const;
  // Before something else is written to the terminal.
  void Clear();

 private:
  Clock* const clock_;
  const bool live_;
  bool shown_ = false;
  int64_t next_line_ns_ = 0;  // not live: when the next line may come
};

}  // namespace blktape
