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

// At most so many I/Os in flight, given what was asked for and what the targets' queues take: more
// would block in the kernel instead of waiting here, where it is accounted for.
uint32_t ChooseDepth(const ReplayOptions& options, const ReplaySetup& setup);

// How much memory the I/Os get, since all of it is touched and pinned. What was asked for; else
// 32 MiB, and in a timed run up to 256 MiB: as much as twice the steps that can lie ready take at
// the mean size of a read or write, so that a burst of large writes does not wait for its payload.
// Never more than all I/Os could fill, where that is known and above 32 MiB.
uint64_t ChooseBufferBytes(const ReplayOptions& options, const RecordStream& stream);

// How large a read may be for which an issuing thread has a buffer for each slot of `depth`; 0:
// none. At full speed, unless what was read is still looked at later. Together they are at most a
// quarter of the other memory.
uint64_t ChooseReadBufferBytes(const ReplayOptions& options, uint32_t depth, uint64_t memory_bytes);

// Whether a second issuing thread is to stand by: where punctuality counts and there is a CPU for
// it. One of the kernel's own that polls (SQPOLL) has that CPU already.
bool HasReserve(const ReplayOptions& options);

// How an issuer is to run under these options; but for how long it polls.
IssuerOptions IssuerOptionsOf(const ReplayOptions& options, uint32_t depth);

// How long an issuing thread polls after a submission (IssuerOptions::poll_ns) on a machine of
// `cpus` CPUs. How long the kernel takes to wake a thread would be a large part of the latency of
// fast drives, and a step in it where polling ends: so it polls until any of them has answered
// where CPUs are left for it and for those who feed it. But not for a drive whose answers come
// through threads of the kernel (TCP, USB, loop devices), which a real-time thread that polls keeps
// from its CPU.
int64_t ChoosePollNs(const ReplayOptions& options,
                     const std::vector<std::unique_ptr<Target>>& targets, uint32_t cpus);

// What the issuing thread of this build costs an I/O, in ns: a short run over the null engine.
Result<int64_t> MeasureOwnCostNs();

// 512-byte sectors that the targets' own statistics show as moved, where every target has them.
class SectorWatch {
 public:
  explicit SectorWatch(const std::vector<std::unique_ptr<Target>>& targets);
  // How many more have moved since construction than `ours`.
  std::optional<uint64_t> Foreign(uint64_t ours) const;

 private:
  std::optional<uint64_t> Now() const;
  const std::vector<std::unique_ptr<Target>>& targets_;
  const std::optional<uint64_t> before_;
};

}  // namespace blktape
