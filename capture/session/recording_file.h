#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "capture/session/live_figures.h"
#include "capture/session/trace_file.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/trace.pb.h"
#include "format/trace_copier.h"
#include "format/trace_writer.h"

namespace blktape {

// The trace a live recording is writing: a TraceWriter on a TraceFile that stops taking records
// while the disk is full, counts them, and says so in the trace when there is room again. One
// thread.
class RecordingFile : public TraceWriter {
 public:
  // kAlreadyExists as TraceFile. `counter` may be null; it sees every record taken.
  static Result<std::unique_ptr<RecordingFile>> Create(const std::string& path,
                                                       const proto::Header& header,
                                                       const TraceFileOptions& file_options,
                                                       FigureCounter* counter);

  uint32_t ProcessId(std::string_view name) override { return writer_->ProcessId(name); }
  Status Write(const IoRecord& record) override;
  Status WriteLoss(const proto::Loss& loss) override;
  Status WriteAnchor(const proto::ClockAnchor& anchor) override;
  Status WriteMark(const proto::Mark& mark) override;
  void CountQueued(Op op, uint64_t bytes, uint64_t count) override;
  void CountFlaggedWrites(uint64_t count) override;
  Status FlushFrame(bool sync) override { return writer_->FlushFrame(sync); }
  // Finishes the trace and gives the file its name.
  Status Finish(const proto::Summary& extra) override;
  const LossTally& loss_tally() const override { return writer_->loss_tally(); }
  uint64_t records() const override { return writer_->records(); }
  bool in_order() const override { return writer_->in_order(); }
  uint64_t bytes_written() const override {
    return compact_bytes_.value_or(writer_->bytes_written());
  }

  // Hands what came since the last time to the disk, and does not wait for it. An idle machine's
  // disk is left alone: anchors go with the next record.
  Status Tick();

  // Rewrites the finished trace with full frames, where they are short, and in order of arrival;
  // after Finish(). May take seconds. `wrap` as in CompactInPlace.
  void Compact(const SinkWrap& wrap = {});

  bool paused() const { return paused_since_ns_.has_value(); }
  const TraceFile& file() const { return *file_; }
  const std::string& path() const { return path_; }

 private:
  RecordingFile(std::string path, std::unique_ptr<TraceFile> file, FigureCounter* counter)
      : path_(std::move(path)), file_(std::move(file)), counter_(counter) {}

  Status Resume();

  std::string path_;
  std::unique_ptr<TraceFile> file_;
  std::unique_ptr<TraceWriter> writer_;  // writes to file_
  FigureCounter* counter_;
  bool dirty_ = true;                      // the header
  uint64_t frames_ = 0;                    // ended by Tick()
  std::optional<uint64_t> compact_bytes_;  // of the file, once it was rewritten
  // While the disk is full: since when, and what was dropped.
  std::optional<int64_t> paused_since_ns_;
  proto::Loss dropped_;
};

}  // namespace blktape
