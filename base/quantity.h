#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// What a person types and reads. Sizes: "4096", "4k", "4KiB", "128K", "5G" are binary (as in fio
// and dd); "4kB", "5GB" are decimal. Durations: "90" (seconds), "250ms", "10us", "5m", "8h", "1d".
Result<uint64_t> ParseBytes(std::string_view text);
Result<int64_t> ParseDurationNs(std::string_view text);

// "4 KiB", "1.5 MiB", "512 B": three significant digits at most, binary units.
std::string FormatBytes(uint64_t bytes);
// "812 ns", "56.1 us", "3.20 ms", "12.5 s", "8 h 03 min": three significant digits.
std::string FormatDurationNs(int64_t ns);
// "1,234,567".
std::string FormatCount(uint64_t count);

}  // namespace blktape
