#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "replay/plan/generator.h"
#include "replay/plan/kept_blocks.h"
#include "replay/plan/record_stream.h"
#include "replay/plan/timing_rule.h"
#include "replay/target/queue_setting.h"

namespace blktape {

// Receives a replay's result while the replay runs, in addition to a result trace or instead of
// one: first the header, then the records in the order of a result trace. Called by one thread at a
// time, which is not the issuing one; must not block for long.
class ResultObserver {
 public:
  virtual ~ResultObserver() = default;
  virtual void OnHeader(const proto::Header& header) = 0;
  virtual void OnRecord(const IoRecord& record) = 0;
};

// What to replay and how. `blktape replay --help` explains the fields.
struct ReplayOptions {
  std::string trace_path;
  // Instead of a trace: records generated during the run, from a specification or by a program.
  // trace_path is then empty.
  std::optional<WorkloadSpec> workload;
  struct Records {
    std::string name;  // used instead of the trace's name
    // Each call starts from the first record.
    std::function<Result<std::unique_ptr<RecordStream>>()> open;
  };
  std::optional<Records> records;
  // What discards leave out, for runs that follow each other; null: nothing.
  std::shared_ptr<const KeptBlocks> kept;
  // Maps a device of the trace ("nvme0n1"; "" means the only device, or all devices on one target)
  // to the path of a target. The path "none" leaves the device's I/Os out. The simulated and the
  // null engine need no mapping: their target is as large as the trace needs.
  struct Mapping {
    std::string device;
    std::string target_path;
  };
  std::vector<Mapping> mappings;
  // By path, the identity (Target::identity) of each target when it was shown or used before. If
  // the path now refers to another device or file, the target is refused. Paths not listed here are
  // not checked.
  std::map<std::string, std::string> identities;
  // The expected identity of the target at `path`; empty: not checked.
  std::string IdentityAt(const std::string& path) const {
    const auto meant = identities.find(path);
    return meant == identities.end() ? "" : meant->second;
  }
  TimingRule rule = TimingRule::kTimed;
  double speed = 1.0;
  std::optional<int64_t> idle_cap_ns;
  uint32_t queue_depth = 0;      // kQueueDepth
  bool keep_think_time = false;  // kMaxOrder and kQueueDepth
  // Replays the part of the trace that arrived in [from, to) after the trace's first arrival,
  // `loops` times (0: until stopped).
  std::optional<int64_t> from_ns;
  std::optional<int64_t> to_ns;
  uint64_t loops = 1;
  // No I/O is issued later than this after the start. The run still counts as complete.
  std::optional<int64_t> duration_ns;
  // Queue settings during the run, for the disks that the targets are or are partitions of.
  std::vector<QueueSetting> queue_settings;
  std::string engine = "auto";  // auto, io_uring, libaio, simulated, null
  // Of the target that stands for those of an engine that touches none; 0: as large as the trace.
  uint64_t made_up_bytes = 0;
  uint32_t made_up_block_bytes = 1;
  std::string simulated_drive = "reference";  // simulated engine: a name of drive_model.h
  // Only with engine "io_uring", not "auto".
  bool submission_thread = false;      // a kernel thread submits
  bool polled_completion = false;      // completions are polled; needs a driver with poll queues
  std::string result_path;             // empty: no result trace is kept
  ResultObserver* observer = nullptr;  // may be null
  bool overwrite = false;
  bool skip_writes = false;
  bool skip_discards = false;
  bool secure_erase = false;                  // secure erases are executed, not refused
  std::string unsupported = "fail";           // fail, skip, emulate
  std::string remap = "refuse";               // refuse, offset, scale, wrap
  std::optional<int64_t> remap_offset_bytes;  // of "offset"
  bool align = false;                         // widen requests to whole blocks of the target
  std::string on_error = "stop";              // stop, continue
  uint32_t compressible_percent = 0;
  uint32_t dedupe_percent = 0;
  bool repeat_payload = false;  // one repeated byte
  bool verify = false;          // writes carry stamps; reads and a final sweep check them
  bool order_overlaps = true;   // conflicting I/Os are never in flight together
  uint32_t depth = 0;           // timed and max order: maximum in flight; 0: the target's
  uint32_t threads = 1;  // issuing; more than one only if timed, or at a queue depth without think
  uint64_t buffer_bytes = 0;  // memory for requests in flight and prepared; 0: chosen by the trace
  int64_t spin_ns = 150'000;  // how long to poll before each due time
  int64_t spin_in_flight_ns = 50'000;  // likewise, while requests are in flight
  bool realtime = true;                // SCHED_FIFO, locked memory, pinning where allowed
  std::string state = "as-is";         // copied into the result
  uint32_t cycle = 0;                  // likewise
  // This run is part of a score. If trace and target do not fit, messages then suggest only options
  // that a score allows.
  bool scored = false;
};

}  // namespace blktape
