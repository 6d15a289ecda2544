#include "replay/plan/wakes.h"

#include <algorithm>

#include "base/saturating.h"

namespace blktape {
namespace {

// At least twice as often as by chance, and more often by so many standard deviations; a chance of
// less than one counts as one.
constexpr int64_t kDeviations = 4;
constexpr int64_t kShare = 1024;         // what is counted is in such parts of one
constexpr int64_t kMany = 128 * kShare;  // of so many the earlier ones count half

}  // namespace

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
  Program& known = programs_[PlaceOf(program)];
  if (known.name != program) known = {.name = program};
  const After& after = after_[machine];
  // By kWithinNs after its own completion all that time was counted by it.
  const int64_t from_ns = SaturatingAdd(since_ns, kWithinNs);
  const int64_t to_come_ns = std::max<int64_t>(0, SaturatingSubtract(after.until_ns, arrival_ns));
  const int64_t idle_us = SaturatingSubtract(arrival_ns, from_ns) / kNanosPerMicro;
  const int64_t after_us =
      std::clamp<int64_t>((after.sum_ns - to_come_ns - after_ns) / kNanosPerMicro, 0, idle_us);
  if (idle_us > 0) known.by_chance += after_us * kShare / idle_us;
  if (SaturatingSubtract(arrival_ns, last_ns) <= kWithinNs) known.after += kShare;
  if (std::max(known.by_chance, known.after) >= kMany) {
    known.by_chance /= 2;
    known.after /= 2;
  }
}

bool Wakes::AreWoken(uint64_t program) const {
  const Program& known = programs_[PlaceOf(program)];
  if (known.name != program) return false;
  const int64_t more = known.after - known.by_chance;
  return known.after >= 2 * known.by_chance &&
         more * more >= kDeviations * kDeviations * kShare * std::max(kShare, known.by_chance);
}

}  // namespace blktape
