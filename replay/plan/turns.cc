#include "replay/plan/turns.h"

#include <algorithm>

#include "base/saturating.h"
#include "base/units.h"

namespace blktape {
namespace {

// What begins within this time was handed out together; or within a quarter of the first one's.
constexpr int64_t kTogetherNs = 100 * kNanosPerMicro;

}  // namespace

// Where that program is kept, or another one.
Turns::Program& Turns::PlaceOf(uint64_t program) { return programs_[PlaceOfProgram(program)]; }

// How long some of the program's I/Os have been in flight by then, but for what began just before.
int64_t Turns::BusyUntil(const Program& program, int64_t ns) {
  if (program.in_flight == 0) return program.busy_ns;
  const int64_t for_ns = SaturatingSubtract(ns, program.since_ns);
  return program.busy_ns + std::max<int64_t>(0, SaturatingSubtract(for_ns, program.together_ns));
}

uint32_t Turns::Begin(uint64_t program, int64_t arrival_ns, int64_t complete_ns) {
  Program& known = PlaceOf(program);
  uint32_t gone = kNone;
  if (known.name != program) {
    gone = known.slot;
    known = {.name = program};
  }
  if (known.in_flight++ > 0) return gone;
  known.since_ns = arrival_ns;
  const int64_t takes_ns = std::max<int64_t>(0, SaturatingSubtract(complete_ns, arrival_ns));
  known.together_ns = std::min(kTogetherNs, takes_ns / 4);
  return gone;
}

uint32_t* Turns::End(uint64_t program, int64_t complete_ns, Idle* idle) {
  *idle = {};
  Program& known = PlaceOf(program);
  if (known.name != program || known.in_flight == 0) return nullptr;
  const int64_t busy_ns = BusyUntil(known, complete_ns);
  if (--known.in_flight == 0) known.busy_ns = busy_ns;
  *idle = {.program = program, .since_ns = complete_ns, .busy_ns = busy_ns};
  return &known.slot;
}

uint32_t Turns::Next(uint64_t program, const Idle& idle, int64_t arrival_ns) {
  Program& known = PlaceOf(program);
  if (known.name != program) return kNone;
  const int64_t idle_us = SaturatingSubtract(arrival_ns, idle.since_ns) / kNanosPerMicro;
  if (idle.program == program && idle_us > 0) {
    const int64_t busy_ns = BusyUntil(known, arrival_ns) - idle.busy_ns;
    const int64_t busy_us = std::clamp<int64_t>(busy_ns / kNanosPerMicro, 0, idle_us);
    const bool beside =
        known.in_flight > 0 && SaturatingSubtract(arrival_ns, known.since_ns) >= known.together_ns;
    known.beside.Count(beside, busy_us, idle_us);
  }
  // At most half as often as by chance.
  const ByChance& beside = known.beside;
  const bool take_turns = beside.by_chance > 0 && beside.happened * 2 <= beside.by_chance &&
                          beside.IsNoChance(beside.by_chance);
  return take_turns ? known.slot : kNone;
}

}  // namespace blktape
