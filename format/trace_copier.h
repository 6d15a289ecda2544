#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/byte_stream.h"
#include "base/status.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"

namespace blktape {

// Copies a trace: records, losses (the reader's own findings too), anchors, marks, sizes as queued
// and names of processes, each in its place. Ids of processes may change; one whose name is lost
// becomes absent. Not thread-safe.
class TraceCopier : public TraceObserver {
 public:
  // Copies all that `reader` has left into `writer`; `reader` was opened with this object as its
  // observer. Does not finish `writer`.
  Status Copy(TraceReader* reader, TraceWriter* writer);

  // The last anchor met, where there was one.
  const std::optional<proto::ClockAnchor>& last_anchor() const { return last_anchor_; }
  // Whether the file was damaged at the cost of no event.
  bool harmlessly_damaged() const { return harmlessly_damaged_; }
  // Batches of which columns were left out that only a newer version knows.
  uint64_t unknown_columns() const { return unknown_columns_; }

 private:
  void OnLoss(const proto::Loss& loss) override;
  void OnAnchor(const proto::ClockAnchor& anchor) override;
  void OnMark(const proto::Mark& mark) override { Keep(writer_->WriteMark(mark)); }
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override;
  void OnUnknown(const proto::Message& message) override { Keep(writer_->WriteUnknown(message)); }
  void OnUnknownColumns() override { ++unknown_columns_; }
  void Keep(const Status& status);
  std::optional<uint32_t> NewProcessId(const TraceReader& reader, uint32_t id);

  TraceWriter* writer_ = nullptr;
  Status status_;  // the first failure inside a callback
  std::optional<proto::ClockAnchor> last_anchor_;
  bool harmlessly_damaged_ = false;
  uint64_t unknown_columns_ = 0;
  std::unordered_map<uint32_t, uint32_t> process_ids_;
};

struct RewriteReport {
  uint64_t records = 0;
  uint64_t lost_events = 0;
  // The input was finished, and nothing that it once held is missing.
  bool whole = false;
  // The input was damaged at the cost of no event, as in its seek table.
  bool harmlessly_damaged = false;
};

// Puts something between a writer and the file it writes to, to slow it down or to watch it.
using SinkWrap = std::function<std::unique_ptr<ByteSink>(std::unique_ptr<ByteSink>)>;

// Copies the trace at `from_path` into the new file `to_path` with full-size frames, finishes it
// there and syncs it. If the input was not whole the copy says that it was recovered.
// kUnimplemented, and no copy, if it has columns that only a newer version knows, which the copy
// would lack.
Result<RewriteReport> RewriteTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options, const SinkWrap& wrap = {});

// Whether a trace of so many frames, each ended before it was full, is worth rewriting.
bool HasShortFrames(uint64_t frames, uint64_t records);

// Rewrites the finished trace at `path` with full-size frames, in its place. At every moment a
// whole trace has that name. False, and nothing has changed: it is not whole, or there is no room
// for a second file of its size. Takes about a second for 2 million records.
bool CompactInPlace(const std::string& path, const SinkWrap& wrap = {});

}  // namespace blktape
