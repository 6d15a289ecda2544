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
#include "host/disk.h"

namespace blktape {

struct CapturePipelineOptions {
  // A record waits at most this long (on the events' clock) for older I/Os that are still in
  // flight, and at most this many records wait. Beyond that the slow I/O leaves later, out of
  // order. Use small values for live recordings, because a crash loses the held records.
  int64_t hold_ns = 30'000'000'000;
  uint32_t hold_records = 262'144;

  // For live recordings: the frame is written to the file at least this often on `clock`; 0 = only
  // when it is full.
  int64_t flush_interval_ns = 0;
  Clock* clock = nullptr;  // required with flush_interval_ns

  // The recorder's own threads. Their I/O is left out and counted.
  std::vector<uint32_t> own_pids;
  // Returns true for I/O that other threads did for the recorder (writes of a journal, for
  // example). Called with the process name, in the order in which records leave. May be empty.
  std::function<bool(const IoRecord&, const ProcessComm&)> is_own;
  // False: leave the record out and count it as filtered. `record.device` is an index into the
  // devices; `record.process` is absent. May be empty.
  std::function<bool(const IoRecord&)> keep;
  // Returns the name to write for a process name. Empty function: the name unchanged; empty result:
  // no name.
  std::function<std::string(std::string_view)> rename_process;
};

// What went through a pipeline so far, over all writers.
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
  uint64_t late_records = 0;    // left out of order because they took longer than hold_ns
  uint64_t unknown_device = 0;  // events of devices that are not recorded, left out
};

// The path of an I/O from a source to the trace: merges the streams into one order, pairs events
// into records, and writes records, losses and anchors. One thread.
class CapturePipeline : public CaptureSink {
 public:
  // IoRecord.device becomes the index into `devices`; the writer's header must list them in the
  // same order. `writer` must outlive the pipeline or be replaced.
  CapturePipeline(TraceWriter* writer, const std::vector<Disk>& devices,
                  const CapturePipelineOptions& options);
  ~CapturePipeline() override;

  void OnEvent(uint32_t stream, const BlockEvent& event) override;
  void OnWatermark(int64_t ns) override;
  void OnFinished(uint32_t stream, const IoRecord& record, const ProcessComm& comm) override;
  void OnRecord(const IoRecord& record, std::string_view process) override;
  void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) override;
  void OnFlaggedWrites(uint64_t count) override;
  void OnProcessName(uint32_t pid, int64_t since_ns, const ProcessComm& comm) override;
  void OnAnchor(const proto::ClockAnchor& anchor) override;
  void OnLoss(const proto::Loss& loss) override;

  // From now on records go to `writer` (rotation), also those of I/Os in flight. A failure of the
  // previous writer is forgotten.
  void SetWriter(TraceWriter* writer);

  // Adds a disk that appeared later, after the others, as in the writer's header.
  void AddDevice(const Disk& device);
  // From now on events of this dev_t belong to no device, until it is added again.
  void RemoveDevice(uint32_t dev);

  // What lies on the devices from now on: see LiveSource::SetLayers. Of a source that pairs itself
  // it only tells that their events are no strangers'.
  void SetLayers(const std::vector<Layer>& layers);

  // Replaces own_pids from now on.
  void SetOwnPids(const std::vector<uint32_t>& pids);

  // Ends the frame if flush_interval_ns has passed. OnWatermark does the same; call this when no
  // watermark comes for a long time.
  Status FlushIfDue();

  // Call after the source's last event: writes the held records, and I/Os in flight as records
  // without completion. Does not finish the writer.
  Status Finish();

  // The first failure of the writer, if any; all later records are dropped.
  const Status& status() const;
  CaptureCounts counts() const;
  // Fills in own_excluded, own_excluded_bytes and filtered, counted since the last SetWriter.
  void FillSummary(proto::Summary* summary) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace blktape
