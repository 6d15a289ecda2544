#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "replay/plan/by_chance.h"

namespace blktape {

// Whether the threads of a program are woken by the I/O of others, as where several need a page
// that one of them reads, or a lock that it holds meanwhile, or its answer: they begin I/Os just
// after one of another thread has completed much more often than by chance.
// docs/closed_loop.md ("Whether its threads are woken") is the definition. A program is a number
// that the caller chooses; of more than kKnownPrograms some give way to others. Pure, not
// thread-safe.
class Wakes {
 public:
  // A thread that was woken by a completion goes on within this time.
  static constexpr int64_t kWithinNs = 200 * kNanosPerMicro;

  explicit Wakes(size_t machines = 1) : after_(machines), programs_(kKnownPrograms) {}

  // An I/O of that machine is complete. Returns what Next() is to be told where its thread has no
  // other I/O in flight.
  int64_t End(uint32_t machine, int64_t complete_ns);
  // A thread of the program, which has had nothing in flight since then and waited for nothing
  // else, begins another I/O after more than 2 kWithinNs. Counts that. `after_ns`: what End()
  // returned; `last_ns`: the latest completion by then.
  void Next(uint64_t program, uint32_t machine, int64_t since_ns, int64_t after_ns, int64_t last_ns,
            int64_t arrival_ns);
  bool AreWoken(uint64_t program) const;

 private:
  // The time that is at most kWithinNs after a completion: all in all, and until when.
  struct After {
    int64_t sum_ns = 0;
    int64_t until_ns = INT64_MIN;
  };
  struct Program {
    uint64_t name = UINT64_MAX;
    ByChance after = {};  // I/Os that began just after a completion
  };

  std::vector<After> after_;
  std::vector<Program> programs_;
};

}  // namespace blktape
