#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/trace.pb.h"

namespace blktape {

// The clocks read at one moment, in ns.
struct ClockReading {
  int64_t monotonic_ns = 0;  // CLOCK_MONOTONIC: stands still in suspend
  int64_t boot_ns = 0;       // CLOCK_BOOTTIME: runs on
  int64_t wall_ns = 0;       // Unix epoch

  proto::ClockAnchor anchor() const;
};
ClockReading ReadClocks();

// Tells from successive readings what happened to the clocks in between. Pure, but for what it is
// fed.
class ClockWatch {
 public:
  explicit ClockWatch(const ClockReading& first) : last_(first) {}

  // SUSPEND: the machine slept since the reading before. WALL_CLOCK_STEP: the wall clock was set
  // (not slewed) by more than 20 ms. After either an anchor is due.
  std::vector<proto::Mark> OnReading(const ClockReading& now);

 private:
  ClockReading last_;
};

// Names of this machine for a trace's header.
std::string HostName();
std::string KernelRelease();
// Offset of local time from UTC at that moment: "+02:00".
std::string UtcOffset(int64_t wall_ns);
// "2026-11-23T09-15-00": local time as part of a file name.
std::string LocalTimeName(int64_t wall_ns);
// The first local midnight after `wall_ns`.
int64_t NextLocalMidnight(int64_t wall_ns);
// The memory that the control groups this process is in allow it, as the kernel tells in `self` and
// below `root` (version 2). Absent where none limits it.
std::optional<uint64_t> ControlGroupMemoryBytes(const std::string& root = "/sys/fs/cgroup",
                                                const std::string& self = "/proc/self/cgroup");
// CPU time of this process, all threads.
int64_t ProcessCpuNs();

}  // namespace blktape
