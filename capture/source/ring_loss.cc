#include "capture/source/ring_loss.h"

#include <charconv>

namespace blktape {
namespace {

// The number behind "`name`: " at the beginning of a line.
std::optional<uint64_t> Value(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.size() > name.size() + 2 && line.substr(0, name.size()) == name &&
        line.substr(name.size(), 2) == ": ") {
      uint64_t value = 0;
      const std::string_view digits = line.substr(name.size() + 2);
      if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc()) {
        return value;
      }
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace

Result<RingStats> ParseRingStats(std::string_view text) {
  const std::optional<uint64_t> overrun = Value(text, "overrun");
  if (!overrun) return Status(StatusCode::kDataLoss, "ring statistics without an overrun line");
  RingStats stats;
  stats.overrun = *overrun;
  stats.commit_overrun = Value(text, "commit overrun").value_or(0);
  stats.dropped = Value(text, "dropped events").value_or(0);
  return stats;
}

}  // namespace blktape
