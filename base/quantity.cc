#include "base/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace blktape {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024.0;
constexpr std::array kByteUnits = {
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"k", kKi},
    Unit{"K", kKi},
    Unit{"KiB", kKi},
    Unit{"M", kKi* kKi},
    Unit{"MiB", kKi* kKi},
    Unit{"G", kKi* kKi* kKi},
    Unit{"GiB", kKi* kKi* kKi},
    Unit{"T", kKi* kKi* kKi* kKi},
    Unit{"TiB", kKi* kKi* kKi* kKi},
    Unit{"kB", 1e3},
    Unit{"KB", 1e3},
    Unit{"MB", 1e6},
    Unit{"GB", 1e9},
    Unit{"TB", 1e12},
};
constexpr std::array kTimeUnits = {
    Unit{"", 1e9},   Unit{"ns", 1},     Unit{"us", 1e3},   Unit{"ms", 1e6},    Unit{"s", 1e9},
    Unit{"m", 60e9}, Unit{"min", 60e9}, Unit{"h", 3600e9}, Unit{"d", 86400e9},
};

template <size_t N>
Result<double> Parse(std::string_view text, const std::array<Unit, N>& units, const char* kind,
                     const char* examples) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error == std::errc() && number >= 0) {
    std::string_view name(rest, static_cast<size_t>(end - rest));
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    for (const Unit& unit : units) {
      if (unit.name == name) return number * unit.factor;
    }
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("\"{}\" is not a {} (examples: {})", text, kind, examples));
}

std::string ThreeDigits(double value, std::string_view unit) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

}  // namespace

Result<uint64_t> ParseBytes(std::string_view text) {
  ASSIGN_OR_RETURN(const double bytes, Parse(text, kByteUnits, "size", "4096, 128k, 5G, 1TB"));
  if (bytes > 0x1p63)
    return Status(StatusCode::kInvalidArgument, fmt::format("\"{}\" is too large", text));
  return static_cast<uint64_t>(std::llround(bytes));
}

Result<int64_t> ParseDurationNs(std::string_view text) {
  ASSIGN_OR_RETURN(const double ns, Parse(text, kTimeUnits, "duration", "90s, 25ms, 10m, 8h"));
  if (ns >= 0x1p63)
    return Status(StatusCode::kInvalidArgument, fmt::format("\"{}\" is too long", text));
  return static_cast<int64_t>(std::llround(ns));
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array kNames = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (value /= kKi; value >= 1023.5 && unit + 1 < kNames.size(); value /= kKi) ++unit;
  if (value == std::floor(value)) return fmt::format("{:.0f} {}", value, kNames[unit]);
  return ThreeDigits(value, kNames[unit]);
}

std::string FormatDurationNs(int64_t ns) {
  if (ns < 0)
    return "-" + FormatDurationNs(ns == std::numeric_limits<int64_t>::min()
                                      ? std::numeric_limits<int64_t>::max()
                                      : -ns);
  const double value = static_cast<double>(ns);
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (value < 999.5e3) return ThreeDigits(value / 1e3, "us");
  if (value < 999.5e6) return ThreeDigits(value / 1e6, "ms");
  if (value < 120e9) return ThreeDigits(value / 1e9, "s");
  const int64_t seconds = ns / 1'000'000'000;
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds % 3600 / 60);
}

std::string FormatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string FormatCounted(uint64_t count, std::string_view noun) {
  return FormatCount(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string FormatNumber(double value) {
  constexpr double kMostCounted = 1e18;
  constexpr int kMostDecimals = 12;
  if (!std::isfinite(value) || std::fabs(value) > kMostCounted) return fmt::format("{:g}", value);
  if (value < 0) return "-" + FormatNumber(-value);
  if (value >= 99.95) return FormatCount(static_cast<uint64_t>(std::llround(value)));
  int decimals = 2;  // at and above 1
  // The rounded value decides: 0.09996 must become 0.100.
  if (value >= 9.995) decimals = 1;
  for (double least = 0.9995; value < least && value > 0 && decimals < kMostDecimals; least /= 10) {
    ++decimals;
  }
  return value == 0 ? "0" : fmt::format("{:.{}f}", value, decimals);
}

}  // namespace blktape
