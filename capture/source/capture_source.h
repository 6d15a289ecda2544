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

// Receives the data that a source delivers. One thread.
class CaptureSink {
 public:
  virtual ~CaptureSink() = default;

  // Events of one stream come in the order written; different streams may interleave in any way. A
  // stream is a CPU's ring or a per-CPU file.
  virtual void OnEvent(uint32_t stream, const BlockEvent& event) = 0;
  // Every event with time_ns < `ns` of every stream has been delivered.
  virtual void OnWatermark(int64_t ns) = 0;
  // A request whose issue and completion the source has paired itself (bpf). Here `record.device`
  // is a kernel dev_t and `record.process` is absent; `comm` names the process; a flush has neither
  // an address nor PREFLUSH. Each stream is in order of completion.
  virtual void OnFinished(uint32_t stream, const IoRecord& record, const ProcessComm& comm) = 0;
  // An I/O from a file whose rows are whole I/Os, in order of arrival. `record.device` is an index
  // into devices(), `record.process` is absent, and `process` is the process name, empty if
  // unknown. Sinks that never get such a file need not implement this.
  virtual void OnRecord(const IoRecord& /*record*/, std::string_view /*process*/) {}
  // Counts of queued bios, made in the kernel (bpf).
  virtual void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) = 0;
  virtual void OnFlaggedWrites(uint64_t count) = 0;
  // `comm` is the name of `pid` in events without a name, from `since_ns` on, and before unless
  // another one was told of then.
  virtual void OnProcessName(uint32_t pid, int64_t since_ns, const ProcessComm& comm) = 0;
  virtual void OnAnchor(const proto::ClockAnchor& anchor) = 0;
  // `loss.device`, if set, is a kernel dev_t.
  virtual void OnLoss(const proto::Loss& loss) = 0;
};

// Where events come from: a live kernel facility or files. Not thread-safe.
class CaptureSource {
 public:
  virtual ~CaptureSource() = default;

  // "bpf", "tracefs", "blktrace", "blktrace-file": Header.source.
  virtual std::string_view name() const = 0;

  // Starts recording: every event on the devices after it returns is recorded. kPermissionDenied or
  // kUnavailable, with a message that says why and what to do; after a failure nothing is left in
  // the kernel.
  virtual Status Start() = 0;

  // Delivers the available data; waits at most `timeout_ms` if there is none. False when the source
  // has ended (end of the files, or all devices are gone); a live source without new data returns
  // true.
  virtual Result<bool> Poll(int timeout_ms, CaptureSink* sink) = 0;

  // Stops recording in the kernel, delivers the remaining data and removes what Start created. Call
  // once, after the last Poll. The destructor also removes it, but delivers nothing.
  virtual Status Stop(CaptureSink* sink) = 0;

  // The devices that a file source found in its input, in order of appearance; for a live source,
  // the devices that it was given.
  virtual std::vector<Disk> devices() const = 0;
};

}  // namespace blktape
