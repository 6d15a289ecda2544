#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace blktape {

// CPU time that the hypervisor gave to others since the machine started, summed over all CPUs: the
// eighth figure of the line "cpu" of /proc/stat (`stat`), in ticks of 1/`ticks_per_second` s.
// Absent where there is none.
std::optional<int64_t> ParseStolenNs(std::string_view stat, int64_t ticks_per_second);

// How much of it is stolen while this lives. A tick is usually 10 ms.
class StolenTime {
 public:
  StolenTime();
  // Since construction; absent where the kernel does not tell, or its count ran backwards (a guest
  // that was moved to another host).
  std::optional<int64_t> Ns() const;

 private:
  const std::optional<int64_t> before_ns_;
};

}  // namespace blktape
