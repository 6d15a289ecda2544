#pragma once

#include "replay/plan/plan.h"

namespace blktape {

// Where an issuer takes its steps from. Called by one thread at a time.
class PlanFeed {
 public:
  virtual ~PlanFeed() = default;
  enum class State { kReady, kNotYet, kEnd };
  // The next step, kept until Pop(). kNotYet only from a feed that has a thread of its own.
  virtual State Peek(PlannedIo** io) = 0;
  virtual void Pop() = 0;
  // Whether kNotYet is for want of memory that is still in flight.
  virtual bool WantsMemory() const = 0;
};

}  // namespace blktape
