#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/trace.pb.h"

namespace blktape {

struct TraceWriterOptions {
  int zstd_level = 3;
  // Larger frames need slightly less space per record, but a damaged frame loses more records.
  uint32_t records_per_frame = 32768;
  // Only for Create(): if FlushFrame ended most frames early, Finish() rewrites them into full
  // ones, as CompactInPlace does. This saves a fifth of the file and takes about a second per 2
  // million records.
  bool compact = true;
};

// Writes a trace to `PATH.partial`. Finish() adds the summary and the seek table and renames the
// file to PATH. A writer that is destroyed before Finish leaves the .partial, which is readable and
// recognisable as unfinished (format/recover.h makes a finished trace from it). The writer holds a
// lock (flock) on the .partial. Memory: one frame, whatever the length of the trace, plus 8 bytes
// per frame for the seek table and at most 2 MiB for the index, thrice that in Finish(); and where
// that rewrites the file, what ArrivalHold holds. Not thread-safe.
class TraceWriter {
 public:
  // kAlreadyExists if `path` or `path`.partial exists; then nothing is changed. Files have mode
  // 0600.
  static Result<std::unique_ptr<TraceWriter>> Create(const std::string& path,
                                                     const proto::Header& header,
                                                     const TraceWriterOptions& options = {});
  // Writes the same bytes to `sink`, which must outlive the writer. Finish() renames nothing.
  static Result<std::unique_ptr<TraceWriter>> ToSink(ByteSink* sink, const proto::Header& header,
                                                     const TraceWriterOptions& options = {});
  virtual ~TraceWriter() = default;

  // The id of `name` in the process dictionary; the same name gets the same id.
  virtual uint32_t ProcessId(std::string_view name) = 0;

  // Records should come in order of arrival; one that is out of order is stored as it is. After a
  // failed write every later call returns the same failure. kInvalidArgument, and nothing is
  // written, if the header has no such device.
  virtual Status Write(const IoRecord& record) = 0;
  // Stores a loss at this place in the stream.
  virtual Status WriteLoss(const proto::Loss& loss) = 0;
  virtual Status WriteAnchor(const proto::ClockAnchor& anchor) = 0;
  virtual Status WriteMark(const proto::Mark& mark) = 0;
  // Copies a message from TraceObserver::OnUnknown unchanged. kUnimplemented if the output cannot
  // contain such messages.
  virtual Status WriteUnknown(const proto::Message& /*message*/) {
    return Status(StatusCode::kUnimplemented, "a message of a newer version");
  }
  // Counts bios of this size (bytes; 0 with op kFlush for an fsync) as queued; written with the
  // next frame.
  virtual void CountQueued(Op op, uint64_t bytes, uint64_t count) = 0;
  // Counts queued data bios with PREFLUSH or FUA (they are also counted by CountQueued).
  virtual void CountFlaggedWrites(uint64_t count) = 0;

  // Ends the current frame and writes it to the file, so that a crash loses nothing written before;
  // with `sync`, also waits for stable storage.
  virtual Status FlushFrame(bool sync) = 0;

  // Finishes the trace; must be the last call. `extra` contains what only the caller knows (end
  // anchor, replay outcome, own_excluded); the writer fills in counts, losses and the index. May
  // take seconds (see `compact`), so do not call it on a thread that must not stall. If it fails,
  // the .partial stays.
  virtual Status Finish(const proto::Summary& extra) = 0;

  // The sum of all losses passed to WriteLoss.
  virtual const LossTally& loss_tally() const = 0;
  virtual uint64_t records() const = 0;
  // Whether all records came in order of arrival.
  virtual bool in_order() const = 0;
  virtual uint64_t bytes_written() const = 0;
};

}  // namespace blktape
