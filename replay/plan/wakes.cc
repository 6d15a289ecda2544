#include "replay/plan/wakes.h"

#include <algorithm>

#include "base/saturating.h"

namespace blktape {

int64_t Wakes::End(uint32_t machine, int64_t complete_ns) {
  After& after = after_[machine];
  const int64_t until_ns = SaturatingAdd(complete_ns, kWithinNs);
  after.sum_ns +=
      std::max<int64_t>(0, SaturatingSubtract(until_ns, std::max(after.until_ns, complete_ns)));
  after.until_ns = std::max(after.until_ns, until_ns);
  return after.sum_ns;
}

void Wakes::Next(uint64_t program, uint32_t machine, int64_t since_ns, int64_t after_ns,
                 int64_t last_ns, int64_t arrival_ns) {
  Program& known = programs_[PlaceOfProgram(program)];
  if (known.name != program) known = {.name = program};
  const After& after = after_[machine];
  // By kWithinNs after its own completion all that time was counted by it.
  const int64_t from_ns = SaturatingAdd(since_ns, kWithinNs);
  const int64_t to_come_ns = std::max<int64_t>(0, SaturatingSubtract(after.until_ns, arrival_ns));
  const int64_t idle_us = SaturatingSubtract(arrival_ns, from_ns) / kNanosPerMicro;
  const int64_t after_us =
      std::clamp<int64_t>((after.sum_ns - to_come_ns - after_ns) / kNanosPerMicro, 0, idle_us);
  const bool after_one = SaturatingSubtract(arrival_ns, last_ns) <= kWithinNs;
  if (idle_us > 0) known.after.Count(after_one, after_us, idle_us);
}

bool Wakes::AreWoken(uint64_t program) const {
  const Program& known = programs_[PlaceOfProgram(program)];
  if (known.name != program) return false;
  // At least twice as often as by chance; less than once by chance counts as once.
  const ByChance& after = known.after;
  return after.happened >= 2 * after.by_chance &&
         after.IsNoChance(std::max(ByChance::kShare, after.by_chance));
}

}  // namespace blktape
