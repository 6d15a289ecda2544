#include "host/stolen_time.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

#include "base/file.h"
#include "base/units.h"

namespace blktape {
namespace {

constexpr int kStealColumn = 8;

std::optional<int64_t> NowNs() {
  const Result<std::string> stat = ReadFile("/proc/stat");
  if (!stat.ok()) return std::nullopt;
  return ParseStolenNs(*stat, sysconf(_SC_CLK_TCK));
}

}  // namespace

std::optional<int64_t> ParseStolenNs(std::string_view stat, int64_t ticks_per_second) {
  constexpr std::string_view kAllCpus = "cpu ";
  if (!stat.starts_with(kAllCpus) || ticks_per_second <= 0) return std::nullopt;
  const char* at = stat.data() + kAllCpus.size();
  const char* const end = stat.data() + std::min(stat.find('\n'), stat.size());
  int64_t ticks = 0;
  for (int column = 0; column < kStealColumn; ++column) {
    while (at < end && *at == ' ') ++at;
    const auto [rest, error] = std::from_chars(at, end, ticks);
    if (error != std::errc() || (rest < end && *rest != ' ')) return std::nullopt;
    at = rest;
  }
  int64_t ns = 0;
  if (ticks < 0 || __builtin_mul_overflow(ticks, kNanosPerSecond / ticks_per_second, &ns)) {
    return std::nullopt;
  }
  return ns;
}

StolenTime::StolenTime() : before_ns_(NowNs()) {}

std::optional<int64_t> StolenTime::Ns() const {
  const std::optional<int64_t> now_ns = NowNs();
  if (!before_ns_ || !now_ns || *now_ns < *before_ns_) return std::nullopt;
  return *now_ns - *before_ns_;
}

}  // namespace blktape
