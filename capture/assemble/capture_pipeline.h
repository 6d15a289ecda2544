#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "capture/source/capture_source.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"

namespace blktape {

struct CapturePipelineOptions {
  // A record waits at most this long (on the events' clock) for older I/Os that are still in
  // flight, and at most this many records wait; beyond that the slow I/O leaves later, out of
  // order. Small when live, since what is held is lost by a crash.
  int64_t hold_ns = 30'000'000'000;
  uint32_t hold_records = 262'144;

  // Live: the frame is handed to the file at least this often on `clock`; 0 = when it is full.
  int64_t flush_interval_ns = 0;
  Clock* clock = nullptr;  // needed with flush_interval_ns

  // The recorder's own threads: their I/O is left out and counted.
  std::vector<uint32_t> own_pids;
  // Own I/O that others did for us (a journal's write): asked, in the order records leave, with the
  // name of the process. May be empty.
  std::function<bool(const IoRecord&, const ProcessComm&)> is_own;
  // False: leave the record out and count it as filtered. `record.device` is an index into the
  // devices; `record.process` is absent. May be empty.
  std::function<bool(const IoRecord&)> keep;
  // What to write for a process name; empty function: the name as it is, empty result: no name.
  std::function<std::string(std::string_view)> rename_process;
};

// What went through a pipeline so far, whatever the writer.
struct CaptureCounts {
  uint64_t events = 0;
  uint64_t queued = 0;       // Q events
  uint64_t issued = 0;       // D events, or finished requests of a source that pairs
  uint64_t completed = 0;    // C events
  uint64_t merged = 0;       // M and F events
  uint64_t requeued = 0;     // R events
  uint64_t passthrough = 0;  // events of passthrough commands, left out
  uint64_t records = 0;
  uint64_t own_excluded = 0;  // records
  uint64_t own_excluded_bytes = 0;
  uint64_t filtered = 0;        // records
  uint64_t late_records = 0;    // left out of order, as they took longer than hold_ns
  uint64_t unknown_device = 0;  // events of devices not asked for, left out
};

// Life of an I/O between a source and the trace: puts the streams into one order, pairs events into
// records, and writes records, losses and anchors. One thread.
class CapturePipeline : public CaptureSink {
 public:
  // IoRecord.device becomes the place in `devices`, which the writer's header must list in the same
  // order. `writer` must outlive the pipeline or be replaced.
  CapturePipeline(TraceWriter* writer, const std::vector<Disk>& devices,
                  const CapturePipelineOptions& options);
  ~CapturePipeline() override;

  void OnEvent(uint32_t stream, const BlockEvent& event) override;
  void OnWatermark(int64_t ns) override;
  void OnFinished(uint32_t stream, const IoRecord& record, const ProcessComm& comm) override;
  void OnRecord(const IoRecord& record, std::string_view process) override;
  void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) override;
  void OnFlaggedWrites(uint64_t count) override;
  void OnProcessName(uint32_t pid, const ProcessComm& comm) override;
  void OnAnchor(const proto::ClockAnchor& anchor) override;
  void OnLoss(const proto::Loss& loss) override;

  // From here on records go to `writer` (rotation). What is still in flight goes there too. A
  // failure of the writer before is forgotten.
  void SetWriter(TraceWriter* writer);

  // A disk that came later; its place is behind the others, as in the writer's header.
  void AddDevice(const Disk& device);
  // Events of this dev_t are nobody's from here on, until it is added again.
  void RemoveDevice(uint32_t dev);

  // From here on these are the own_pids.
  void SetOwnPids(const std::vector<uint32_t>& pids);

  // Ends the frame if flush_interval_ns has passed. OnWatermark does the same; call this where no
  // watermark comes for long.
  Status FlushIfDue();

  // After the source's last event: delivers what is held, and what is still in flight as records
  // without completion. Does not finish the writer.
  Status Finish();

  // The first failure of the writer, if any; everything after it is dropped.
  const Status& status() const;
  CaptureCounts counts() const;
  // own_excluded, own_excluded_bytes, filtered: since the last SetWriter.
  void FillSummary(proto::Summary* summary) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace blktape
