#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace blktape {

// CPU time that the hypervisor gave to other guests since boot, summed over all CPUs: the eighth
// figure of the line "cpu" in /proc/stat (`stat`), in ticks of 1/`ticks_per_second` s. Absent if
// there is no such figure.
std::optional<int64_t> ParseStolenNs(std::string_view stat, int64_t ticks_per_second);

// Measures the CPU time stolen since its construction. A tick is usually 10 ms.
class StolenTime {
 public:
  StolenTime();
  // Stolen since construction. Absent if the kernel does not report it, or if its count decreased
  // (a guest that was migrated to another host).
  std::optional<int64_t> Ns() const;

 private:
  const std::optional<int64_t> before_ns_;
};

}  // namespace blktape
