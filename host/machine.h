#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/trace.pb.h"

namespace blktape {

// The clocks, read at one moment, in ns.
struct ClockReading {
  int64_t monotonic_ns = 0;  // CLOCK_MONOTONIC: stops during suspend
  int64_t boot_ns = 0;       // CLOCK_BOOTTIME: continues during suspend
  int64_t wall_ns = 0;       // Unix epoch

  proto::ClockAnchor anchor() const;
};
ClockReading ReadClocks();

// Finds what happened to the clocks between successive readings. Pure: reads no clock itself.
class ClockWatch {
 public:
  explicit ClockWatch(const ClockReading& first) : last_(first) {}

  // SUSPEND: the machine was suspended since the previous reading. WALL_CLOCK_STEP: the wall clock
  // was set (not slewed) by more than 20 ms. After either, the caller must write an anchor.
  std::vector<proto::Mark> OnReading(const ClockReading& now);

 private:
  ClockReading last_;
};

// The names of this machine for a trace's header.
std::string HostName();
std::string KernelRelease();
// The offset of local time from UTC at that moment: "+02:00".
std::string UtcOffset(int64_t wall_ns);
// "2026-11-23T09-15-00": local time as part of a file name.
std::string LocalTimeName(int64_t wall_ns);
// The first local midnight after `wall_ns`.
int64_t NextLocalMidnight(int64_t wall_ns);
// The memory limit of the control groups (version 2) of this process, read from `self` and below
// `root`. Absent if there is no limit.
std::optional<uint64_t> ControlGroupMemoryBytes(const std::string& root = "/sys/fs/cgroup",
                                                const std::string& self = "/proc/self/cgroup");
// CPU time of this process, all threads.
int64_t ProcessCpuNs();

}  // namespace blktape
