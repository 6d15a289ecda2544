#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "replay/issue/busy_time.h"
#include "replay/issue/dated_engine.h"
#include "replay/issue/issue_totals.h"
#include "replay/issue/issuer_options.h"
#include "replay/issue/spin_time.h"

namespace blktape {

// How the issuing thread waits where nothing can be issued: it sleeps, long and then short, until
// shortly before the next due time; polls from then on, and for a while after a submission; keeps
// warm what a submission touches while it polls with nothing out. Times in ns on the clock. Used by
// the issuing thread alone.
class Waiter {
 public:
  // All must outlive it.
  Waiter(DatedEngine* engine, Clock* clock, const IssuerOptions& options, BusyTime* busy,
         IssueTotals* totals);

  // Waits until there may be a completion, the next I/O is nearly due (`due_ns`; nullopt: only a
  // completion can bring one), or it is time to look at the stop flags; where it waits for another
  // thread (`starving`), a very short time. While it polls it returns at once; with a thread in
  // reserve, which may have the turn meanwhile, when that ends. Fails if the engine does.
  Status Wait(int64_t now_ns, std::optional<int64_t> due_ns, bool starving);

 private:
  Status Poll(int64_t now_ns, int64_t until_ns);
  Status AwaitCompletion(int64_t now_ns, int64_t until_ns);

  DatedEngine* const engine_;
  Clock* const clock_;
  const IssuerOptions& options_;
  BusyTime* const busy_;
  IssueTotals* const totals_;
  SpinTime spin_;
};

}  // namespace blktape
