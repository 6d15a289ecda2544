#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// A private tracing instance in tracefs: ring buffers, clock, events and filters that are separate
// from those of other tracers. Its name contains the pid and start time of this process, so that an
// instance left by a crash can be recognised. The destructor removes it; all descriptors of its
// files must be closed by then.
class TraceInstance {
 public:
  // `tracefs` is the mount point of tracefs.
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

// Removes the instances of recorders that no longer run; returns how many. Instances of a running
// process stay, as do those that a process holds open (in another container).
int RemoveDeadInstances(const std::string& tracefs);

}  // namespace blktape
