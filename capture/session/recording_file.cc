#include "capture/session/recording_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace blktape {

Result<std::unique_ptr<RecordingFile>> RecordingFile::Create(const std::string& path,
                                                             const proto::Header& header,
                                                             const TraceFileOptions& file_options,
                                                             FigureCounter* counter) {
  ASSIGN_OR_RETURN(std::unique_ptr<TraceFile> file, TraceFile::Create(path, file_options));
  std::unique_ptr<RecordingFile> recording(new RecordingFile(path, std::move(file), counter));
  ASSIGN_OR_RETURN(recording->writer_, TraceWriter::ToSink(recording->file_.get(), header));
  return recording;
}

Status RecordingFile::Write(const IoRecord& record) {
  if (file_->full() || paused_since_ns_) {
    if (!paused_since_ns_) {
      paused_since_ns_ = Clock::Monotonic()->NowNs();
      dropped_.set_reason(proto::WRITE_FAILED);
      dropped_.set_detail("no space left for the trace");
    }
    dropped_.set_count(dropped_.count() + 1);
    if (const std::optional<int64_t> ns = record.arrival_ns()) {
      if (!dropped_.has_from_ns()) dropped_.set_from_ns(*ns);
      dropped_.set_to_ns(*ns);
    }
    return OkStatus();
  }
  dirty_ = true;
  if (counter_ != nullptr) counter_->OnRecord(record);
  return writer_->Write(record);
}

Status RecordingFile::WriteLoss(const proto::Loss& loss) {
  dirty_ = true;
  return writer_->WriteLoss(loss);
}

Status RecordingFile::WriteAnchor(const proto::ClockAnchor& anchor) {
  return paused() ? OkStatus() : writer_->WriteAnchor(anchor);
}

Status RecordingFile::WriteMark(const proto::Mark& mark) {
  dirty_ = true;
  return writer_->WriteMark(mark);
}

void RecordingFile::CountQueued(Op op, uint64_t bytes, uint64_t count) {
  if (!paused()) writer_->CountQueued(op, bytes, count);
}

void RecordingFile::CountFlaggedWrites(uint64_t count) {
  if (!paused()) writer_->CountFlaggedWrites(count);
}

Status RecordingFile::Resume() {
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  proto::Mark mark;
  mark.set_kind(proto::RECORDING_RESUMED);
  mark.set_at_ns(now_ns);
  mark.set_value_ns(now_ns - *paused_since_ns_);
  mark.set_detail("there is space for the trace again");
  const proto::Loss dropped = std::exchange(dropped_, proto::Loss());
  paused_since_ns_.reset();
  RETURN_IF_ERROR(WriteLoss(dropped));
  return WriteMark(mark);
}

Status RecordingFile::Tick() {
  if (paused_since_ns_ && !file_->full()) RETURN_IF_ERROR(Resume());
  if (!dirty_ || file_->full()) return OkStatus();
  dirty_ = false;
  ++frames_;
  RETURN_IF_ERROR(writer_->FlushFrame(/*sync=*/false));
  file_->SyncSoon();
  return OkStatus();
}

Status RecordingFile::Finish(const proto::Summary& extra) {
  file_->UseReserve();
  if (paused_since_ns_) {
    const proto::Loss dropped = std::exchange(dropped_, proto::Loss());
    RETURN_IF_ERROR(WriteLoss(dropped));
    paused_since_ns_.reset();
  }
  RETURN_IF_ERROR(writer_->Finish(extra));
  return file_->Finish();
}

void RecordingFile::Compact(const SinkWrap& wrap) {
  const bool worth_it = HasShortFrames(frames_, writer_->records()) || !writer_->in_order();
  if (!worth_it || !CompactInPlace(path_, wrap)) return;
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path_, error);
  if (!error) compact_bytes_ = bytes;
}

}  // namespace blktape
