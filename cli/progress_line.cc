#include "cli/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"

namespace blktape {
namespace {

constexpr int64_t kLogEveryNs = 60 * kNanosPerSecond;

bool TerminalTakesEscapes() {
  const char* const name = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && (name == nullptr || std::string_view(name) != "dumb");
}

// Of the terminal as it is now.
int Columns() {
  struct winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string_view FitColumns(std::string_view text, int columns) {
  size_t end = 0;
  for (int used = 0; end < text.size() && used < columns; ++used) {
    ++end;
    while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) ++end;
  }
  return text.substr(0, end);
}

ProgressLine::ProgressLine()
    : live_(TerminalTakesEscapes()), next_line_ns_(Clock::Monotonic()->NowNs() + kLogEveryNs) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Show(std::string_view text) {
  const std::string plain = ToPrintable(text);
  if (!live_) {
    const int64_t now_ns = Clock::Monotonic()->NowNs();
    if (now_ns < next_line_ns_) return;
    next_line_ns_ = now_ns + kLogEveryNs;
    std::fprintf(stderr, "%s\n", plain.c_str());
    return;
  }
  // One column stays free: a cursor behind the last would be on the next line, and \r not go back.
  const std::string_view fits = FitColumns(plain, Columns() - 1);
  std::fprintf(stderr, "\r%.*s\033[K", static_cast<int>(fits.size()), fits.data());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::Clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace blktape
