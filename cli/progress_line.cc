#include "cli/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/text_layout.h"
#include "base/units.h"
#include "base/utf8.h"

namespace blktape {
namespace {

constexpr int64_t kLogEveryNs = 60 * kNanosPerSecond;

bool TerminalTakesEscapes() {
  const char* const name = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && (name == nullptr || std::string_view(name) != "dumb");
}

}  // namespace

ProgressLine::ProgressLine(Clock* clock)
    : clock_(clock), live_(TerminalTakesEscapes()), next_line_ns_(clock->NowNs() + kLogEveryNs) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Show(std::string_view text) {
  const std::string plain = ToPrintable(text);
  if (!live_) {
    const int64_t now_ns = clock_->NowNs();
    if (now_ns < next_line_ns_) return;
    next_line_ns_ = now_ns + kLogEveryNs;
    std::fprintf(stderr, "%s\n", plain.c_str());
    return;
  }
  const std::string_view fits = FitColumns(plain, columns());
  std::fprintf(stderr, "\r%.*s\033[K", static_cast<int>(fits.size()), fits.data());
  std::fflush(stderr);
  shown_ = true;
}

size_t ProgressLine::columns() const {
  constexpr size_t kUsual = 80;
  struct winsize size{};
  const bool known = live_ && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  // One column stays free: a cursor behind the last would be on the next line, and \r not go back.
  return (known ? size.ws_col : kUsual) - 1;
}

void ProgressLine::Clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace blktape
