#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"
#include "replay/engine/engine.h"
#include "replay/issue/issuer.h"
#include "replay/plan/record_stream.h"
#include "replay/replay_options.h"
#include "replay/setup.h"
#include "replay/target/target.h"

namespace blktape {

// The maximum number of I/Os in flight, from the options and the targets' queue sizes. More would
// block in the kernel instead of waiting here, where the wait is measured.
uint32_t ChooseDepth(const ReplayOptions& options, const ReplaySetup& setup);

// The memory for I/O buffers. All of it is touched and pinned, so it is limited: to the option's
// value; else to 32 MiB, or up to 256 MiB in a timed run, where it holds twice the maximum number
// of prepared steps at the mean size of a read or write, so that a burst of large writes does not
// wait for its payload. If the total size of all I/Os is known and above 32 MiB, never more than
// that.
uint64_t ChooseBufferBytes(const ReplayOptions& options, const RecordStream& stream);

// The maximum size of reads that use a fixed buffer per slot of `depth` in an issuing thread; 0: no
// such buffers. They are used at full speed, unless the data read is needed later. Together they
// take at most a quarter of the other memory.
uint64_t ChooseReadBufferBytes(const ReplayOptions& options, uint32_t depth, uint64_t memory_bytes);

// Whether a second issuing thread is to stand by: where punctuality counts and there is a CPU for
// it. One of the kernel's own that polls (SQPOLL) has that CPU already.
bool HasReserve(const ReplayOptions& options);

// How an issuer is to run under these options; but for how long it polls.
IssuerOptions IssuerOptionsOf(const ReplayOptions& options, uint32_t depth);

// How long an issuing thread polls after a submission (IssuerOptions::poll_ns) on a machine with
// `cpus` CPUs. The kernel's time to wake a thread would be a large part of a fast drive's latency,
// and would add a step to it where polling ends. So if there are enough CPUs for the issuing
// threads and for the threads that feed them, they poll long enough for any such drive to complete.
// Not for drives whose completions come from kernel threads (TCP, USB, loop devices): a polling
// real-time thread would keep those from its CPU.
int64_t ChoosePollNs(const ReplayOptions& options,
                     const std::vector<std::unique_ptr<Target>>& targets, uint32_t cpus);

// The time in ns that the issuing thread of this build takes per I/O, measured in a short run with
// the null engine.
Result<int64_t> MeasureOwnCostNs();

// Counts 512-byte sectors transferred, from the targets' own statistics, if every target has them.
class SectorWatch {
 public:
  explicit SectorWatch(const std::vector<std::unique_ptr<Target>>& targets);
  // How many sectors beyond `ours` were transferred since construction.
  std::optional<uint64_t> Foreign(uint64_t ours) const;

 private:
  std::optional<uint64_t> Now() const;
  const std::vector<std::unique_ptr<Target>>& targets_;
  const std::optional<uint64_t> before_;
};

}  // namespace blktape
