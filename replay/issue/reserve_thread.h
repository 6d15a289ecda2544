#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"
#include "replay/engine/engine.h"
#include "replay/issue/dated_engine.h"
#include "replay/issue/issuer.h"
#include "replay/issue/turn.h"

namespace blktape {

// Stands by for an issuer whose CPU is taken from it, by a hypervisor or another real-time thread,
// for longer than a hundred I/Os take. On another CPU, with an engine of its own, it looks after
// each due time whether somebody issued what was due, and goes on in the issuer's place until that
// moves again. The two take turns (IssuerOptions::turn). It cannot help in the midst of a
// submission.
class ReserveThread {
 public:
  // All must outlive it. The engine is as deep as the issuer's. kTimed only.
  ReserveThread(Issuer* issuer, Engine* engine, Clock* clock);

  // Until Issuer::Run(), in another thread, has ended; if this engine fails, so does that.
  void StandBy();

 private:
  Status Relieve();

  Issuer* const issuer_;
  Turn* const turn_;
  Clock* const clock_;
  DatedEngine engine_;
  bool relieves_ = false;
  uint64_t beat_ = 0;                 // of the issuer when it was found to be held up
  int64_t next_ns_ = Turn::kNothing;  // while this one relieves it: the next due time
};

}  // namespace blktape
