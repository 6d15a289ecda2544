#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/source/capture_source.h"
#include "format/trace.pb.h"
#include "host/disk.h"

namespace blktape {

// A source that records a running kernel.
class LiveSource : public CaptureSource {
 public:
  // The size of one CPU's ring in the kernel.
  virtual uint64_t buffer_bytes_per_cpu() const = 0;

  // The number of events lost since Start according to the kernel's counters, for all CPUs and
  // devices. After Stop this is the final figure; it equals the sum of the delivered RING_OVERRUN
  // and RELAY_DROP counts.
  virtual Result<uint64_t> KernelLost() = 0;

  // Makes the rings larger, after overruns. False if they already have `limit_bytes` in total, or
  // if this source cannot grow while it runs.
  virtual Result<bool> Grow(uint64_t limit_bytes) = 0;

  // Sets the recorder's own threads, at most kOwnPidsMost. I/O that they queue from now on is not
  // counted in OnQueuedSizes and OnFlaggedWrites; their records are still delivered. For sources
  // that count in the kernel.
  virtual void SetOwnPids(const std::vector<uint32_t>& /*pids*/) {}
  static constexpr size_t kOwnPidsMost = 8;
  // Called by each thread of the recorder before its I/O: lets a source find out what the kernel
  // calls it, which in a PID namespace is not what the thread itself is told. Records and events
  // name it by OwnId. Until SetOwnPids is next called it is one of those. Any thread, between Start
  // and Stop.
  virtual void MarkThread() {}
  // The process id of records and events of the recorder's thread that is told `tid` for its own:
  // in a PID namespace one that no process of the kernel has, since there a process outside may
  // have the number `tid`.
  static uint32_t OwnId(uint32_t tid);

  // Also records `disk` from now on, which appeared after Start. Call before Stop. kUnimplemented
  // or another code if this source cannot do it while it runs; a new recording could.
  virtual Status Add(const Disk& disk) {
    return Status(StatusCode::kUnimplemented,
                  std::string(name()) + " takes no disk while it runs: " + disk.description.name());
  }
  // Stops recording `disk`, which is gone; another disk may get its number. Pending events of it
  // may be lost: call this when they have been delivered, before another disk of this number is
  // added, and before Stop.
  virtual void Remove(const Disk& /*disk*/) {}

  // The devices that lie on the recorded disks, from now on. Many of their bios are submitted to
  // the disks by threads of the kernel: dm-crypt's writes once they are encrypted, what
  // device-mapper writes after a flush. A source that can follow them gives such I/Os the thread
  // that queued them above; and a write with PREFLUSH, which a layer on one disk passes on as a
  // flush and then a write without it, has its PREFLUSH and the queue time from above, and that
  // flush is derived: as if nothing were between. Call between Start and Stop.
  virtual void SetLayers(const std::vector<Layer>& /*layers*/) {}

  // Why the source has no more events of `device`, if it knows: DEVICE_REMOVED or TRACING_ENDED.
  // Also after Stop.
  virtual std::optional<proto::LossReason> Ended(const Disk& /*device*/) const {
    return std::nullopt;
  }

  // The capabilities (linux/capability.h) that Poll, Grow, KernelLost and Stop need. All others may
  // be dropped after Start has returned.
  virtual std::vector<int> KeptCapabilities() const { return {}; }
};

// Sizes of the kernel rings for a machine. They hold seconds of a desktop's I/O, and are small
// enough that users do not miss the memory.
struct BufferPlan {
  uint64_t bytes_per_cpu = 0;
  uint64_t limit_bytes = 0;  // of all CPUs together, when grown
};
// 16 MiB in total, at least 512 KiB per CPU, at most 1/64 of memory. May grow to 16 times that or
// 1/32 of memory, but not to more than an eighth of the control group's limit: BPF rings count
// against that limit, the records read from full rings take several times as much memory, and a
// recorder that reaches the limit is killed.
BufferPlan PlanBuffers(uint64_t memory_bytes, uint32_t cpus,
                       std::optional<uint64_t> allowed_bytes = std::nullopt);
// The plan for this machine: for its online CPUs, or for a given number of rings.
BufferPlan PlanBuffersHere();
BufferPlan PlanBuffersHere(uint32_t rings);

}  // namespace blktape
