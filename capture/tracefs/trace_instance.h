#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// A tracing instance of our own in tracefs: ring buffers, clock, events and filters that no other
// tracer sees, and that disturb none. Bears pid and start time of this process in its name, so that
// one that a crash left behind can be told. Removed by the destructor; descriptors of its files
// must be closed by then.
class TraceInstance {
 public:
  // `tracefs` is the folder tracefs is mounted on.
  static Result<std::unique_ptr<TraceInstance>> Create(const std::string& tracefs);
  ~TraceInstance();
  TraceInstance(const TraceInstance&) = delete;
  TraceInstance& operator=(const TraceInstance&) = delete;

  // A file of the instance, "per_cpu/cpu0/stats".
  std::string Path(std::string_view file) const;
  Status Set(std::string_view file, std::string_view text) const;

  Status Remove();

 private:
  explicit TraceInstance(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;  // empty once removed
};

// Removes the instances of recorders that are no more; returns how many. Those of a living process,
// or held open by one (in another container), stay.
int RemoveDeadInstances(const std::string& tracefs);

}  // namespace blktape
