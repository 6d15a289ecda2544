#include "format/trace_copier.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/byte_stream.h"
#include "base/new_file.h"
#include "format/loss.h"

namespace blktape {

void TraceCopier::Hold(size_t bytes, ArrivalHold::Message message) {
  const Status status = hold_.Push(std::move(message), bytes);
  if (status_.ok()) status_ = status;
}

// Damage of the input without the loss of an event is not a loss of the copy.
void TraceCopier::OnLoss(const proto::Loss& loss) {
  if (IsHarmlessDamage(loss)) {
    harmlessly_damaged_ = true;
    return;
  }
  proto::Loss edited = loss;
  if (!EditLoss(&edited)) return;
  Hold(edited.SpaceUsedLong(), [this, edited] { return writer_->WriteLoss(edited); });
}

void TraceCopier::OnMark(const proto::Mark& mark) {
  proto::Mark edited = mark;
  if (!EditMark(&edited)) return;
  Hold(edited.SpaceUsedLong(), [this, edited] { return writer_->WriteMark(edited); });
}

void TraceCopier::OnAnchor(const proto::ClockAnchor& anchor) {
  proto::ClockAnchor edited = anchor;
  if (!EditAnchor(&edited)) return;
  last_anchor_ = edited;
  Hold(edited.SpaceUsedLong(), [this, edited] { return writer_->WriteAnchor(edited); });
}

void TraceCopier::OnQueuedSizes(const proto::QueuedSizes& sizes) {
  if (!KeepsQueuedSizes()) return;
  Hold(sizes.SpaceUsedLong(), [this, sizes] {
    for (const proto::QueuedSizes::Entry& entry : sizes.entries()) {
      writer_->CountQueued(static_cast<Op>(entry.op()), entry.bytes(), entry.count());
    }
    writer_->CountQueued(Op::kFlush, 0, sizes.flushes_asked());
    writer_->CountFlaggedWrites(sizes.flagged_writes());
    return OkStatus();
  });
}

void TraceCopier::OnUnknown(const proto::Message& message) {
  ++unknown_messages_;
  if (!KeepsUnknown()) return;
  Hold(message.SpaceUsedLong(), [this, message] { return writer_->WriteUnknown(message); });
}

std::optional<uint32_t> TraceCopier::NewProcessId(std::string_view name, uint32_t id) {
  const auto known = process_ids_.find(id);
  if (known != process_ids_.end()) return known->second;
  if (name.empty()) return std::nullopt;
  const std::string renamed = Rename(name);
  std::optional<uint32_t> new_id;
  if (!renamed.empty()) new_id = writer_->ProcessId(renamed);
  process_ids_.emplace(id, new_id);
  return new_id;
}

Status TraceCopier::Copy(TraceReader* reader, TraceWriter* writer) {
  writer_ = writer;
  RETURN_IF_ERROR(ForEachRecord(reader, [&](IoRecord& record) -> Status {
    RETURN_IF_ERROR(status_);
    const std::optional<uint32_t> id = record.process;
    const std::string_view name = id ? reader->ProcessName(*id) : std::string_view();
    if (!Edit(&record, name)) return OkStatus();
    if (id && record.process) record.process = NewProcessId(name, *id);
    return hold_.Push(record);
  }));
  RETURN_IF_ERROR(status_);
  return hold_.Finish();
}

Status UnknownColumns(const std::string& path, const proto::Header& header) {
  return Status(StatusCode::kUnimplemented,
                path +
                    ": has columns or operations that this version does not know, written by "
                    "blktape " +
                    header.tool_version() + "\n  try:  that version");
}

TraceWriterOptions PackedTraceOptions() {
  TraceWriterOptions options;
  options.zstd_level = 22;
  options.records_per_frame = 262'144;  // the format's bound
  return options;
}

namespace {

// Into a file that has no name yet.
Result<RewriteReport> Rewrite(const std::string& from_path, const NewFile& to,
                              const TraceWriterOptions& options, const SinkWrap& wrap) {
  TraceCopier copier;
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader,
                   TraceReader::Open(from_path, &copier));
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSink> sink, to.Sink());
  if (wrap) sink = wrap(std::move(sink));
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> writer,
                   TraceWriter::ToSink(sink.get(), reader->header(), options));
  RETURN_IF_ERROR(copier.Copy(reader.get(), writer.get()));
  if (copier.unknown_columns() > 0) return UnknownColumns(from_path, reader->header());
  proto::Summary summary = reader->summary().value_or(proto::Summary());
  summary.clear_frames();  // of the other file
  const bool whole = reader->summary() && summary.records() == writer->records() &&
                     TallyOf(summary).lost_events() == reader->lost_events() &&
                     copier.unknown_messages() == 0;
  if (!whole) {
    summary.set_recovered(true);
    if (!summary.has_end() && copier.last_anchor()) *summary.mutable_end() = *copier.last_anchor();
  }
  RETURN_IF_ERROR(writer->Finish(summary));
  return RewriteReport{.records = writer->records(),
                       .lost_events = reader->lost_events(),
                       .whole = whole,
                       .harmlessly_damaged = copier.harmlessly_damaged(),
                       .unknown_messages = copier.unknown_messages()};
}

}  // namespace

Result<RewriteReport> RewriteTrace(const std::string& from_path, const std::string& to_path,
                                   const TraceWriterOptions& options) {
  ASSIGN_OR_RETURN(NewFile file, NewFile::Create(to_path));
  ASSIGN_OR_RETURN(RewriteReport report, Rewrite(from_path, file, options, {}));
  RETURN_IF_ERROR(file.GiveName());
  return report;
}

bool HasShortFrames(uint64_t frames, uint64_t records) {
  // With more records per frame, rewriting saves less than 3 % (docs/trace_format.md).
  constexpr uint64_t kShortFrameRecords = 4096;
  constexpr uint64_t kMinShortFrames = 8;
  return frames >= kMinShortFrames && records / kShortFrameRecords < frames;
}

bool CompactInPlace(const std::string& path, const SinkWrap& wrap,
                    const TraceWriterOptions& options) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return false;
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  // The copy is smaller than the file; the same amount stays free for other programs.
  if (error || space.available / 2 < bytes) return false;
  Result<NewFile> file = NewFile::CreateVersionOf(path);
  if (!file.ok()) return false;
  const Result<RewriteReport> report = Rewrite(path, *file, options, wrap);
  return report.ok() && report->whole && file->Replace().ok();
}

}  // namespace blktape
