#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/arrival_hold.h"
#include "format/io_record.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {

// Copies a trace: records, losses (also those that the reader finds), anchors, marks, queued sizes
// and process names, each at its place. Records that are out of the order of arrival are put in
// order, as far as ArrivalHold can. Process ids may change; an id whose name is lost becomes
// absent. A subclass may change records or leave them out. Not thread-safe.
class TraceCopier : public TraceObserver {
 public:
  // Copies everything that `reader` has not yet read to `writer`. `reader` must have been opened
  // with this object as its observer. Does not finish `writer`.
  Status Copy(TraceReader* reader, TraceWriter* writer);

  // The last anchor seen, if there was one.
  const std::optional<proto::ClockAnchor>& last_anchor() const { return last_anchor_; }
  // Whether the file was damaged without the loss of an event.
  bool harmlessly_damaged() const { return harmlessly_damaged_; }
  // Batches with columns or operations that only a newer version knows; these were left out.
  uint64_t unknown_columns() const { return unknown_columns_; }
  // Messages of kinds that only a newer version knows; they are copied unchanged, at their place.
  uint64_t unknown_messages() const { return unknown_messages_; }
  // Whether what was read to its end is finished, was never recovered and is understood.
  bool IsWhole(const TraceReader& reader) const {
    return reader.summary() && !reader.summary()->recovered() && unknown_messages_ == 0;
  }

 protected:
  // False: leave the record out. `process` is the name of its process, empty if unknown;
  // record.process is an id of the reader.
  virtual bool Edit(IoRecord* /*record*/, std::string_view /*process*/) { return true; }
  // The name to write for a process; empty: no name.
  virtual std::string Rename(std::string_view process) { return std::string(process); }
  // False: leave the loss out.
  virtual bool EditLoss(proto::Loss* /*loss*/) { return true; }
  virtual bool EditMark(proto::Mark* /*mark*/) { return true; }
  virtual bool EditAnchor(proto::ClockAnchor* /*anchor*/) { return true; }
  virtual bool KeepsQueuedSizes() const { return true; }
  // Whether to copy messages that only a newer version knows.
  virtual bool KeepsUnknown() const { return true; }

 private:
  void OnLoss(const proto::Loss& loss) override;
  void OnAnchor(const proto::ClockAnchor& anchor) override;
  void OnMark(const proto::Mark& mark) override;
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override;
  void OnUnknown(const proto::Message& message) override;
  void OnUnknownColumns() override { ++unknown_columns_; }
  // `message` holds `bytes` of memory.
  void Hold(size_t bytes, ArrivalHold::Message message);
  std::optional<uint32_t> NewProcessId(std::string_view name, uint32_t id);

  TraceWriter* writer_ = nullptr;
  ArrivalHold hold_{[this](const IoRecord& record) { return writer_->Write(record); }};
  Status status_;  // the first failure inside a callback
  std::optional<proto::ClockAnchor> last_anchor_;
  bool harmlessly_damaged_ = false;
  uint64_t unknown_columns_ = 0;
  uint64_t unknown_messages_ = 0;
  std::unordered_map<uint32_t, std::optional<uint32_t>> process_ids_;
};

// kUnimplemented: the trace at `path` has columns or operations that a copy would lack.
Status UnknownColumns(const std::string& path, const proto::Header& header);

// Options for the smallest trace, regardless of time: about 1 s per 500,000 records for a file 5 %
// smaller than a finished recording. (Most of the rest is the low bytes of times, which cannot be
// predicted.)
TraceWriterOptions PackedTraceOptions();

struct RewriteReport {
  uint64_t records = 0;
  uint64_t lost_events = 0;
  // The input was finished, none of its content is missing, and all of it was understood.
  bool whole = false;
  // The input was damaged without the loss of an event, for example in its seek table.
  bool harmlessly_damaged = false;
  // Messages that only a newer version knows, copied unchanged. If they describe the rest of the
  // trace, the description may be wrong for the copy.
  uint64_t unknown_messages = 0;
};

// Wraps the sink between a writer and its file, to slow the writer down or to observe it.
using SinkWrap = std::function<std::unique_ptr<ByteSink>(std::unique_ptr<ByteSink>)>;

// Copies the trace at `from_path` into the new file `to_path` with full-size frames, finishes it
// there and syncs it; the file has its name only when it is whole (NewFile). If the input was not
// whole, the copy is marked as recovered. kAlreadyExists if `to_path` exists. kUnimplemented,
// without a copy, if the input has columns or operations that only a newer version knows, because
// the copy would lack them.
Result<RewriteReport> RewriteTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options);

// Whether a trace with this many frames and records has enough short frames to be worth rewriting.
bool HasShortFrames(uint64_t frames, uint64_t records);

// Rewrites the finished trace at `path` with full-size frames, in place, and puts records in order
// of arrival where at most ArrivalHold::kCapacity others lie between. There is a complete trace
// at `path` at every moment. False, and nothing changes, if the trace is not whole or there is no
// space for a second file of its size. Takes about a second per 2 million records.
bool CompactInPlace(const std::string& path, const SinkWrap& wrap = {},
                    const TraceWriterOptions& options = {});

}  // namespace blktape
