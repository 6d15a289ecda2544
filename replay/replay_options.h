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
#include "replay/plan/record_stream.h"
#include "replay/plan/timing_rule.h"
#include "replay/target/queue_setting.h"

namespace blktape {

// Gets a replay's result while it runs, besides or instead of a result trace: its header once, then
// its records in the order in which the trace would hold them. Called by one thread at a time,
// which is not the issuing one; must not block for long.
class ResultObserver {
 public:
  virtual ~ResultObserver() = default;
  virtual void OnHeader(const proto::Header& header) = 0;
  virtual void OnRecord(const IoRecord& record) = 0;
};

// What to replay and how. Field by field what `blktape replay --help` says.
struct ReplayOptions {
  std::string trace_path;
  // Instead of a trace: records made on the way, by a specification or by a program. trace_path is
  // then empty.
  std::optional<WorkloadSpec> workload;
  struct Records {
    std::string name;  // in place of the trace's
    // Each call begins anew.
    std::function<Result<std::unique_ptr<RecordStream>>()> open;
  };
  std::optional<Records> records;
  // Device of the trace ("nvme0n1", or "" for the only one or all on one target) to path of the
  // target; the path "none" leaves the device's I/Os out. The simulated and the null engine need
  // none: they get a target as large as the trace wants.
  struct Mapping {
    std::string device;
    std::string target_path;
  };
  std::vector<Mapping> mappings;
  // By path, what a target was when it was shown or used before (Target::identity): another device
  // or file that the path leads to by now is refused. Paths that are not in it may lead anywhere.
  std::map<std::string, std::string> identities;
  // Of the one at `path`; empty: it may lead anywhere.
  std::string IdentityAt(const std::string& path) const {
    const auto meant = identities.find(path);
    return meant == identities.end() ? "" : meant->second;
  }
  TimingRule rule = TimingRule::kTimed;
  double speed = 1.0;
  std::optional<int64_t> idle_cap_ns;
  uint32_t queue_depth = 0;      // kQueueDepth
  bool keep_think_time = false;  // kMaxOrder and kQueueDepth
  // The piece of the trace that arrived in [from, to) after its first arrival, `loops` times (0:
  // until stopped).
  std::optional<int64_t> from_ns;
  std::optional<int64_t> to_ns;
  uint64_t loops = 1;
  // Nothing is issued later than this after the start; the run is whole nevertheless.
  std::optional<int64_t> duration_ns;
  // Of the disks that the targets are or lie on as partitions, for the time of the run.
  std::vector<QueueSetting> queue_settings;
  std::string engine = "auto";                // auto, io_uring, libaio, simulated, null
  std::string simulated_drive = "reference";  // of the simulated engine: a name of drive_model.h
  // io_uring by that name only.
  bool submission_thread = false;  // a kernel thread submits
  bool polled_completion = false;  // completions are polled for; needs a driver with poll queues
  std::string result_path;         // empty: no result trace is kept
  ResultObserver* observer = nullptr;  // may be null
  bool overwrite = false;
  bool skip_writes = false;
  bool skip_discards = false;
  bool secure_erase = false;                  // secure erases are done, not refused
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
  uint32_t depth = 0;           // timed and max order: at most so many in flight; 0: the target's
  uint32_t threads = 1;  // that issue; more than one only timed, or at a queue depth without think
  uint64_t buffer_bytes = 0;  // memory for requests in flight and prepared; 0: by the trace
  int64_t spin_ns = 150'000;  // poll for so long before each due time
  int64_t spin_in_flight_ns = 50'000;  // likewise, while requests are out
  bool realtime = true;                // SCHED_FIFO, locked memory, pinning where allowed
  std::string state = "as-is";         // copied into the result
  uint32_t cycle = 0;                  // likewise
  // Of a score: what is no way to one is no advice where target and trace do not go together.
  bool scored = false;
};

}  // namespace blktape
