#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/trace.pb.h"

namespace blktape {

// Told, in stream order, of everything in a trace that is not a record. Default: ignored.
class TraceObserver {
 public:
  virtual ~TraceObserver() = default;
  // Both losses the recorder stored and damage the reader itself met (DAMAGED_INPUT,
  // TRUNCATED_INPUT, with byte range).
  virtual void OnLoss(const proto::Loss& /*loss*/) {}
  virtual void OnAnchor(const proto::ClockAnchor& /*anchor*/) {}
  virtual void OnMark(const proto::Mark& /*mark*/) {}
  virtual void OnQueuedSizes(const proto::QueuedSizes& /*sizes*/) {}
  // A message of a kind that only a newer writer knows: its content is in the unknown fields.
  virtual void OnUnknown(const proto::Message& /*message*/) {}
  // A batch with columns or operations that only a newer writer knows: the records come without
  // these columns, and those of such an operation not at all (OnLoss counts them).
  virtual void OnUnknownColumns() {}
};

// Reads IoRecords in the order written. Not thread-safe: one reader, one thread. Memory: one frame.
class TraceReader {
 public:
  // Opens a finished trace or a .partial. `observer` may be null, and must outlive the reader.
  // Fails with kDataLoss if the header is unreadable or this is no trace, kUnimplemented if it
  // needs what only a newer version knows. Where the first frame is damaged, the header is that of
  // a copy further on, if the source can seek and there is one; the damage is reported.
  static Result<std::unique_ptr<TraceReader>> Open(const std::string& path,
                                                   TraceObserver* observer = nullptr);
  static Result<std::unique_ptr<TraceReader>> FromSource(std::unique_ptr<ByteSource> source,
                                                         TraceObserver* observer = nullptr);
  virtual ~TraceReader() = default;

  virtual const proto::Header& header() const = 0;

  // Fills `record` and returns true; false at the end of the trace. A damaged frame is skipped,
  // reported to the observer with its byte range, and reading goes on at the next frame.
  virtual Result<bool> Next(IoRecord* record) = 0;

  // The name of a process id met so far; empty if unknown.
  virtual std::string_view ProcessName(uint32_t id) const = 0;

  // Known before the first Next() where the source can seek and the end of the trace is whole;
  // else after the last Next() if the trace has one. Absent: the writer died or still writes, or
  // the end is damaged; then the end of the records is reported as TRUNCATED_INPUT.
  virtual const std::optional<proto::Summary>& summary() const = 0;

  // Events known to be missing so far: stored losses and damage. One without a count counts as one.
  // At the end it includes what the summary tells of losses that lay in a damaged frame.
  virtual uint64_t lost_events() const = 0;

  // The next Next() begins at a frame before which all arrivals are < `arrival_ns`: the last one of
  // which the index can tell (0 observer calls for what is skipped). kUnimplemented without an
  // index; the caller then reads on from where it is.
  virtual Status SkipTo(int64_t arrival_ns) = 0;

  virtual std::string_view name() const = 0;
};

// Hands every record that `reader` has left to `take(record)`, in their order. Where that returns a
// Status, a failure ends it and is what this returns.
template <typename Take>
Status ForEachRecord(TraceReader* reader, Take&& take) {
  IoRecord record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) return OkStatus();
    if constexpr (std::is_void_v<decltype(take(record))>) {
      take(record);
    } else {
      RETURN_IF_ERROR(take(record));
    }
  }
}

}  // namespace blktape
