#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "replay/issue/realtime.h"
#include "replay/plan/host_part.h"
#include "replay/target/target.h"

namespace blktape {

// How long MeasureHostParts() takes for one target that nobody else uses.
inline constexpr int64_t kHostMeasureNs = 4 * kNanosPerSecond;

// Of some I/Os, one after the other: how long they took as their issuer saw it, and what the
// kernel's statistics of the disk counted meanwhile.
struct HostSample {
  uint64_t ios = 0;
  int64_t seen_ns = 0;      // sum
  uint64_t counted = 0;     // I/Os by the statistics
  uint64_t counted_ms = 0;  // sum of their times, in whole ms

  // The disk may also have been sent none of them: flushes, where there is no write cache.
  bool DiskServedOthers() const { return counted != ios && counted != 0; }
};

// The mean of what is not in the statistics, ns an I/O, at least 0. The statistics cut to whole ms,
// so that what one sample lacks the next one has too much: the mean is over all samples but those
// further above the least one than cuts explain (2 ms), in which the host stopped or was busy. A
// sample in which the disk was sent none is the host's alone (flushes, where there is no write
// cache). Absent where there is no sample, or one in which the disk did I/O for others. Pure.
std::optional<int64_t> HostPartNs(const std::vector<HostSample>& samples);

// Measures it on each target for kHostMeasureNs, before a replay: reads of 4 KiB at places that are
// spread over it, and flushes; one at a time, at once and with pauses of kHostPauseNs, with the
// engine and as the thread of a closed replay.
// Nothing is written. Empty where one target is a file, or a disk of which the kernel does not keep
// times to the ns (drivers that do without requests, as zram's); for the null engine; if an I/O
// fails, the disk did I/O for others in two thirds of the samples, or `stop` becomes true.
// `buffer`: of at least 4 KiB, aligned to that. `poll_ns` as in IssuerOptions. Fails if the engine
// does.
Result<std::vector<HostPart>> MeasureHostParts(const std::string& engine,
                                               const std::vector<std::unique_ptr<Target>>& targets,
                                               std::byte* buffer, int64_t poll_ns,
                                               const RealtimeScope::Wish& wish,
                                               const std::atomic<bool>& stop);

}  // namespace blktape
