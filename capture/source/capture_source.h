#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "host/disk.h"

namespace blktape {

// Receives what a source delivers. One thread.
class CaptureSink {
 public:
  virtual ~CaptureSink() = default;

  // Events of one stream come in the order written; streams may interleave anyhow. A stream is what
  // has an order of its own: a CPU's ring or a per-CPU file.
  virtual void OnEvent(uint32_t stream, const BlockEvent& event) = 0;
  // Every event with time_ns < `ns` of every stream has been delivered.
  virtual void OnWatermark(int64_t ns) = 0;
  // A request that the source itself has paired (bpf). `record.device` is a kernel dev_t here and
  // `record.process` absent; `comm` names the process; a flush has neither address nor PREFLUSH.
  // Per stream in order of completion.
  virtual void OnFinished(uint32_t stream, const IoRecord& record, const ProcessComm& comm) = 0;
  // An I/O of a file whose rows are whole I/Os: in order of arrival, `record.device` a place in
  // devices(), `record.process` absent, and `process` its name, empty where unknown. Sinks that
  // never meet such a file need not listen.
  virtual void OnRecord(const IoRecord& /*record*/, std::string_view /*process*/) {}
  // Bios as queued, counted in the kernel (bpf).
  virtual void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) = 0;
  virtual void OnFlaggedWrites(uint64_t count) = 0;
  // From here on `pid` is called `comm` in events that do not tell.
  virtual void OnProcessName(uint32_t pid, const ProcessComm& comm) = 0;
  virtual void OnAnchor(const proto::ClockAnchor& anchor) = 0;
  // `loss.device`, where set, is a kernel dev_t.
  virtual void OnLoss(const proto::Loss& loss) = 0;
};

// Where events come from: a live kernel facility or files. Not thread-safe.
class CaptureSource {
 public:
  virtual ~CaptureSource() = default;

  // "bpf", "tracefs", "blktrace", "blktrace-file": Header.source.
  virtual std::string_view name() const = 0;

  // Begins: nothing that happens on the devices after it returns is missed. Fails with
  // kPermissionDenied or kUnavailable, the message saying why and what to do; then nothing is left
  // behind.
  virtual Status Start() = 0;

  // Delivers what there is, waiting at most `timeout_ms` for something. False when the source has
  // ended (end of the files; all devices gone); a live source without news returns true.
  virtual Result<bool> Poll(int timeout_ms, CaptureSink* sink) = 0;

  // Stops recording in the kernel, delivers the rest (call once, after the last Poll), and removes
  // what Start made. The destructor removes it too, but delivers nothing.
  virtual Status Stop(CaptureSink* sink) = 0;

  // Devices a file source found in its input, in order of appearance; for a live source those it
  // was given.
  virtual std::vector<Disk> devices() const = 0;
};

}  // namespace blktape
