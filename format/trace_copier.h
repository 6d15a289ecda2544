#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {

// Copies a trace: records, losses (the reader's own findings too), anchors, marks, sizes as queued
// and names of processes, each in its place. Ids of processes may change; one whose name is lost
// becomes absent. A subclass may change what is copied, or leave it out. Not thread-safe.
class TraceCopier : public TraceObserver {
 public:
  // Copies all that `reader` has left into `writer`; `reader` was opened with this object as its
  // observer. Does not finish `writer`.
  Status Copy(TraceReader* reader, TraceWriter* writer);

  // The last anchor met, where there was one.
  const std::optional<proto::ClockAnchor>& last_anchor() const { return last_anchor_; }
  // Whether the file was damaged at the cost of no event.
  bool harmlessly_damaged() const { return harmlessly_damaged_; }
  // Batches of which columns or operations were left out that only a newer version knows.
  uint64_t unknown_columns() const { return unknown_columns_; }
  // Messages of kinds that only a newer version knows: copied as they are, in their place.
  uint64_t unknown_messages() const { return unknown_messages_; }

 protected:
  // False: leave the record out. `process` is its name, empty where not known; the record's process
  // is an id of the reader's.
  virtual bool Edit(IoRecord* /*record*/, std::string_view /*process*/) { return true; }
  // The name to write for a process; empty: none.
  virtual std::string Rename(std::string_view process) { return std::string(process); }
  // False: leave it out.
  virtual bool EditLoss(proto::Loss* /*loss*/) { return true; }
  virtual bool EditMark(proto::Mark* /*mark*/) { return true; }
  virtual bool EditAnchor(proto::ClockAnchor* /*anchor*/) { return true; }
  virtual bool KeepsQueuedSizes() const { return true; }
  // Messages that only a newer version knows.
  virtual bool KeepsUnknown() const { return true; }

 private:
  void OnLoss(const proto::Loss& loss) override;
  void OnAnchor(const proto::ClockAnchor& anchor) override;
  void OnMark(const proto::Mark& mark) override;
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override;
  void OnUnknown(const proto::Message& message) override {
    ++unknown_messages_;
    if (KeepsUnknown()) Keep(writer_->WriteUnknown(message));
  }
  void OnUnknownColumns() override { ++unknown_columns_; }
  void Keep(const Status& status);
  std::optional<uint32_t> NewProcessId(std::string_view name, uint32_t id);

  TraceWriter* writer_ = nullptr;
  Status status_;  // the first failure inside a callback
  std::optional<proto::ClockAnchor> last_anchor_;
  bool harmlessly_damaged_ = false;
  uint64_t unknown_columns_ = 0;
  uint64_t unknown_messages_ = 0;
  std::unordered_map<uint32_t, std::optional<uint32_t>> process_ids_;
};

// What makes a trace smallest, whatever the time: some 1 s for 500,000 records, for 5 % less than a
// finished recording has. (What is left is the low bytes of times, which nothing foretells.)
TraceWriterOptions PackedTraceOptions();

struct RewriteReport {
  uint64_t records = 0;
  uint64_t lost_events = 0;
  // The input was finished, nothing that it once held is missing, and all of it was understood.
  bool whole = false;
  // The input was damaged at the cost of no event, as in its seek table.
  bool harmlessly_damaged = false;
  // Messages that only a newer version knows, copied as they are: what they say of the rest, if
  // anything, may not hold for the copy.
  uint64_t unknown_messages = 0;
};

// Puts something between a writer and the file it writes to, to slow it down or to watch it.
using SinkWrap = std::function<std::unique_ptr<ByteSink>(std::unique_ptr<ByteSink>)>;

// Copies the trace at `from_path` into the new file `to_path` with full-size frames, finishes it
// there and syncs it. If the input was not whole the copy says that it was recovered.
// kUnimplemented, and no copy, if it has columns or operations that only a newer version knows,
// which the copy would lack.
Result<RewriteReport> RewriteTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options, const SinkWrap& wrap = {});

// Whether a trace of so many frames, each ended before it was full, is worth rewriting.
bool HasShortFrames(uint64_t frames, uint64_t records);

// Rewrites the finished trace at `path` with full-size frames, in its place. At every moment a
// whole trace has that name. False, and nothing has changed: it is not whole, or there is no room
// for a second file of its size. Takes about a second for 2 million records.
bool CompactInPlace(const std::string& path, const SinkWrap& wrap = {},
                    const TraceWriterOptions& options = {});

}  // namespace blktape
