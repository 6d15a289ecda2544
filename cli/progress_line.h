#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blktape {

// How far a long piece of work is, on stderr. On a terminal one line is written over and over, cut
// to the terminal's width as it is then. Elsewhere (a log, TERM=dumb) a line now and then, without
// any escape. One thread.
class ProgressLine {
 public:
  ProgressLine();
  // Removes the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(std::string_view text);
  // Before something else is written to the terminal.
  void Clear();

 private:
  const bool live_;
  bool shown_ = false;
  int64_t next_line_ns_ = 0;  // not live: when the next line may come
};

// The part of `text` (UTF-8) that fits `columns`, without cutting a character in two. A character
// counts as one column.
std::string_view FitColumns(std::string_view text, int columns);

}  // namespace blktape
