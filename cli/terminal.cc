#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

namespace blktape {
namespace {

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// As the C library has it: the first of the three that is set decides.
bool LocaleIsUtf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = Variable(name);
    if (value.empty()) continue;
    std::string lower(value);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

TextLook LookOf(int fd) {
  constexpr size_t kFewest = 40;
  constexpr size_t kMost = 100;
  TextLook look;
  if (::isatty(fd) == 0) return look;
  winsize size{};
  size_t columns = look.columns;
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  if (const long told = std::atol(std::string(Variable("COLUMNS")).c_str()); told > 0) {
    columns = static_cast<size_t>(told);
  }
  // The last column stays free: some terminals break the line there.
  look.columns = std::clamp(columns - 1, kFewest - 1, kMost);
  look.colour = Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";
  look.unicode = LocaleIsUtf8();
  return look;
}

}  // namespace blktape
