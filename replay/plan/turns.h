#pragma once

#include <cstdint>
#include <vector>

#include "replay/plan/by_chance.h"

namespace blktape {

// Whether the threads of a program take turns, as where an event loop has a few threads read for
// it: they begin I/Os beside one of another thread much less often than by chance.
// docs/closed_loop.md ("Whether its threads take turns") is the definition. A program is a number
// that the caller chooses; of more than kKnownPrograms some give way to others. Pure, not
// thread-safe.
class Turns {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Since when a thread has nothing in flight; the caller keeps it. Without a program: not known.
  struct Idle {
    uint64_t program = UINT64_MAX;
    int64_t since_ns = 0;
    int64_t busy_ns = 0;  // of the program by then
  };

  Turns() : programs_(kKnownPrograms) {}

  // An I/O arrives that will complete then. Returns the slot that was kept of a program that gives
  // way to this one, or kNone.
  uint32_t Begin(uint64_t program, int64_t arrival_ns, int64_t complete_ns);
  // It is complete: `idle` tells so of its thread. Returns where the program's slot is kept, for
  // the I/O that completed last, or null if the program has given way.
  uint32_t* End(uint64_t program, int64_t complete_ns, Idle* idle);
  // A thread is about to begin another one; `idle` is without a program if others are in flight.
  // Counts that. Returns the slot that is kept if the threads take turns, else kNone.
  uint32_t Next(uint64_t program, const Idle& idle, int64_t arrival_ns);

 private:
  struct Program {
    uint64_t name = UINT64_MAX;
    uint32_t slot = kNone;
    uint32_t in_flight = 0;
    int64_t since_ns = 0;     // when the first of those in flight without a pause arrived
    int64_t together_ns = 0;  // what begins so soon after that was handed out with it
    int64_t busy_ns = 0;      // for how long some have been in flight by then, see BusyUntil
    ByChance beside = {};     // I/Os that began while another thread had one in flight
  };

  Program& PlaceOf(uint64_t program);
  static int64_t BusyUntil(const Program& program, int64_t ns);

  std::vector<Program> programs_;
};

}  // namespace blktape
