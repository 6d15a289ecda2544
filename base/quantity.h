#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// Sizes and durations as people type them. Sizes: "4096", "4k", "4KiB", "128K", "5G" are binary (as
// in fio and dd); "4kB", "5GB" are decimal. Durations: "90" (seconds), "250ms", "10us", "5m", "8h",
// "1d".
Result<uint64_t> ParseBytes(std::string_view text);
Result<int64_t> ParseDurationNs(std::string_view text);

// "4 KiB", "1.5 MiB", "512 B": at most three significant digits, binary units.
std::string FormatBytes(uint64_t bytes);
// "812 ns", "56.1 us", "3.20 ms", "12.5 s", "8 h 03 min": three significant digits.
std::string FormatDurationNs(int64_t ns);
// "1,234,567".
std::string FormatCount(uint64_t count);
// "1 I/O", "1,234 I/Os". The noun's plural must end in s.
std::string FormatCounted(uint64_t count, std::string_view noun);
// A number without a unit, such as a rate or a ratio: "12,450", "118", "9.87", "0.0123", "inf",
// "nan". Three significant digits; above 100 all digits before the point. Never in powers of ten.
std::string FormatNumber(double value);

}  // namespace blktape
