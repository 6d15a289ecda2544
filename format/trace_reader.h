#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/byte_stream.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/record_columns.h"
#include "format/trace.pb.h"

namespace blktape {

// Receives, in stream order, everything in a trace that is not a record. Ignores it by default.
class TraceObserver {
 public:
  virtual ~TraceObserver() = default;
  // Losses that the recorder stored, and damage that the reader found (DAMAGED_INPUT,
  // TRUNCATED_INPUT, with byte range).
  virtual void OnLoss(const proto::Loss& /*loss*/) {}
  virtual void OnAnchor(const proto::ClockAnchor& /*anchor*/) {}
  virtual void OnMark(const proto::Mark& /*mark*/) {}
  virtual void OnQueuedSizes(const proto::QueuedSizes& /*sizes*/) {}
  // A message of a kind that only a newer version knows; its content is in the unknown fields.
  virtual void OnUnknown(const proto::Message& /*message*/) {}
  // A batch with columns or operations that only a newer version knows. Records are delivered
  // without these columns; records with such an operation are not delivered (OnLoss counts them).
  virtual void OnUnknownColumns() {}
};

// Reads IoRecords in the order written. Not thread-safe: one reader, one thread. Memory: one frame.
class TraceReader {
 public:
  // Opens a finished trace or a .partial. `observer` may be null, and must outlive the reader.
  // Fails with kDataLoss if the header is unreadable or the file is not a trace, with
  // kUnimplemented if the trace needs a newer version. If the first frame is damaged, the header is
  // taken from a later copy, if there is one and the source can seek; the damage is reported.
  static Result<std::unique_ptr<TraceReader>> Open(const std::string& path,
                                                   TraceObserver* observer = nullptr);
  static Result<std::unique_ptr<TraceReader>> FromSource(std::unique_ptr<ByteSource> source,
                                                         TraceObserver* observer = nullptr);
  virtual ~TraceReader() = default;

  virtual const proto::Header& header() const = 0;

  // Fills `record` and returns true; false at the end of the trace. A damaged frame is skipped and
  // reported to the observer with its byte range; reading continues at the next frame.
  virtual Result<bool> Next(IoRecord* record) = 0;

  // The following records as columns: at least one, as many as were written together; null at the
  // end. They have these fields (RecordColumns::Field) and possibly others. Use this instead of
  // Next(), never after it. The caller may change the columns; their memory is reused when all
  // references are released.
  virtual Result<std::shared_ptr<RecordColumns>> NextColumns(uint16_t fields) = 0;

  // From now on `pool` decompresses and decodes frames before NextColumns asks for them, which
  // yields and tells the observer the same in the same order. Null: no more. `pool` must outlive
  // the reader. A source that cannot seek is read as before. Memory: a frame more for each of its
  // threads, 64 MiB at most.
  virtual void DecodeAhead(TaskPool* pool) = 0;

  // The name of a process id met so far; empty if unknown.
  virtual std::string_view ProcessName(uint32_t id) const = 0;

  // Available before the first Next() if the source can seek and the end of the trace is intact;
  // otherwise after the last Next(), if the trace has one. Absent: the writer died or is still
  // writing, or the end is damaged; then the end of the records is reported as TRUNCATED_INPUT.
  virtual const std::optional<proto::Summary>& summary() const = 0;

  // Missing events known so far: stored losses and damage. A loss without a count counts as one. At
  // the end this includes losses that were in a damaged frame, from the summary.
  virtual uint64_t lost_events() const = 0;

  // Skips frames: the following Next() begins at the last frame in the index before which all
  // arrivals are < `arrival_ns`. The observer is not called for what is skipped. kUnimplemented
  // without an index; the caller can read on from the current position.
  virtual Status SkipTo(int64_t arrival_ns) = 0;

  // From now on frames are skipped that hold nothing for which `wanted` is true, as far as the
  // summary describes them, and no record that may have arrived at `before_ns` or later. Neither
  // the observer nor the caller hears of what is skipped: that are records, names, anchors and
  // sizes as queued; a frame with a loss, a mark or anything unknown is never skipped. Damage in
  // skipped frames is not found; where the next frame is damaged, all that follows is read. Without
  // a summary before the first Next(), or in a trace whose summary does not describe frames,
  // nothing is skipped.
  virtual void SkipFramesUnless(std::function<bool(const proto::FrameContents&)> wanted,
                                int64_t before_ns = std::numeric_limits<int64_t>::max()) = 0;

  // How many records were in the frames that SkipFramesUnless skipped.
  virtual uint64_t skipped_records() const = 0;

  virtual std::string_view name() const = 0;
};

// Calls `take(record)` for every remaining record of `reader`, in order. If `take` returns a
// Status, a failure stops the loop and is returned.
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
