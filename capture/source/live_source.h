#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/source/capture_source.h"
#include "format/trace.pb.h"

namespace blktape {

// A source that records a running kernel.
class LiveSource : public CaptureSource {
 public:
  // Of one CPU's ring in the kernel.
  virtual uint64_t buffer_bytes_per_cpu() const = 0;

  // Events the kernel's own counters say were lost since Start, all CPUs and devices. After Stop:
  // the final figure, equal to the sum of the counts of RING_OVERRUN and RELAY_DROP delivered.
  virtual Result<uint64_t> KernelLost() = 0;

  // Makes the rings larger, as overruns have appeared. False if they already have `limit_bytes` in
  // all, or this source cannot while it runs.
  virtual Result<bool> Grow(uint64_t limit_bytes) = 0;

  // Threads of the recorder from here on, at most kOwnPidsMost: what they queue is not to be
  // counted in OnQueuedSizes and OnFlaggedWrites. Their records are delivered all the same. For
  // sources that count in the kernel.
  virtual void SetOwnPids(const std::vector<uint32_t>& /*pids*/) {}
  static constexpr size_t kOwnPidsMost = 8;
  // Called by each thread of the recorder before its I/O: lets a source find out what the kernel
  // calls it, which in a PID namespace is not what the thread itself is told. Records and events
  // name it as it names itself. Until SetOwnPids is next called it is one of those. Any thread,
  // between Start and Stop.
  virtual void MarkThread() {}

  // Records `disk` too from here on, which came later than Start; before Stop. kUnimplemented or
  // another code where this source cannot do it while it runs; a recording begun anew could.
  virtual Status Add(const Disk& disk) {
    return Status(StatusCode::kUnimplemented,
                  std::string(name()) + " takes no disk while it runs: " + disk.description.name());
  }
  // No more of `disk`, which is gone: another may come under its number. Call it a second or more
  // before that is added, so that what was on its way has been delivered. Before Stop.
  virtual void Remove(const Disk& /*disk*/) {}

  // Why the source has no more to tell of `device`, if it knows: DEVICE_REMOVED or TRACING_ENDED.
  // After Stop too.
  virtual std::optional<proto::LossReason> Ended(const Disk& /*device*/) const {
    return std::nullopt;
  }

  // Capabilities (linux/capability.h) that Poll, Grow, KernelLost and Stop need; all others may be
  // dropped once Start has returned.
  virtual std::vector<int> KeptCapabilities() const { return {}; }
};

// Sizes of kernel rings for this machine. What is asked is a desktop's worth of seconds, not a
// share of memory that a person would miss.
struct BufferPlan {
  uint64_t bytes_per_cpu = 0;
  uint64_t limit_bytes = 0;  // of all CPUs together, when grown
};
// 16 MiB in all, at least 512 KiB a CPU, at most 1/64 of memory; may grow to 16 times that or 1/32
// of memory, but not to more than an eighth of what the control group allows: rings of BPF count
// there, what is read of full ones takes several times as much, and at its limit a recorder is
// killed.
BufferPlan PlanBuffers(uint64_t memory_bytes, uint32_t cpus,
                       std::optional<uint64_t> allowed_bytes = std::nullopt);
// For the machine we are on: by the CPUs that are on, or for so many rings.
BufferPlan PlanBuffersHere();
BufferPlan PlanBuffersHere(uint32_t rings);

}  // namespace blktape
