#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

struct TraceWriterOptions {
  int zstd_level = 3;
  // A larger frame is a little smaller per record; a damaged one costs more of them.
  uint32_t records_per_frame = 32768;
  // Create() alone: when most frames were ended early by FlushFrame, Finish() rewrites them into
  // full ones, which saves a fifth of the file and takes about a second per 2 million records.
  bool compact = true;
};

// Writes a trace into `PATH.partial`; Finish() adds summary and seek table and gives it the name
// PATH. A writer destroyed before Finish leaves the .partial: readable, and marked as not cleanly
// finished (format/recover.h makes a finished trace of it). While the writer lives it holds a lock
// (flock) on the .partial. Memory: one frame, whatever the length of the trace, plus 8 bytes a
// frame for the seek table and at most 1 MiB for the index. Not thread-safe.
class TraceWriter {
 public:
  // kAlreadyExists if `path` or `path`.partial exists; then nothing is touched. Files have mode
  // 0600.
  static Result<std::unique_ptr<TraceWriter>> Create(const std::string& path,
                                                     const proto::Header& header,
                                                     const TraceWriterOptions& options = {});
  // The same bytes into `sink`, which must outlive the writer; Finish() does not rename anything.
  static Result<std::unique_ptr<TraceWriter>> ToSink(ByteSink* sink, const proto::Header& header,
                                                     const TraceWriterOptions& options = {});
  virtual ~TraceWriter() = default;

  // The id of `name` in the process dictionary; the same name gets the same id.
  virtual uint32_t ProcessId(std::string_view name) = 0;

  // Records come in order of arrival; one out of order is stored as it is. After a failed write
  // every further call returns the same failure. kInvalidArgument, and nothing is written, if the
  // header has no such device.
  virtual Status Write(const IoRecord& record) = 0;
  // At this place in the stream.
  virtual Status WriteLoss(const proto::Loss& loss) = 0;
  virtual Status WriteAnchor(const proto::ClockAnchor& anchor) = 0;
  virtual Status WriteMark(const proto::Mark& mark) = 0;
  // A message that TraceObserver::OnUnknown told of, as it is. kUnimplemented where what is written
  // can hold none.
  virtual Status WriteUnknown(const proto::Message& /*message*/) {
    return Status(StatusCode::kUnimplemented, "a message of a newer version");
  }
  // Counts bios of this size (bytes; 0 with op kFlush for an fsync) as queued; written with the
  // next frame.
  virtual void CountQueued(Op op, uint64_t bytes, uint64_t count) = 0;
  // Counts data bios with PREFLUSH or FUA as queued (they are in CountQueued as well).
  virtual void CountFlaggedWrites(uint64_t count) = 0;

  // Ends the current frame and hands it to the file, so that a crash costs nothing before this
  // moment; `sync` also waits for stable storage.
  virtual Status FlushFrame(bool sync) = 0;

  // `extra` carries what only the caller knows (end anchor, replay outcome, own_excluded); counts,
  // losses and the index are filled in by the writer. Last call. May take seconds (see `compact`):
  // not for a thread that must not stall. When it fails the .partial stays.
  virtual Status Finish(const proto::Summary& extra) = 0;

  virtual uint64_t records() const = 0;
  virtual uint64_t bytes_written() const = 0;
};

}  // namespace blktape
