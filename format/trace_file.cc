// TraceWriter on a file: PATH.partial while it is written, PATH when it is finished.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/byte_stream.h"
#include "base/file.h"
#include "format/trace_copier.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

class TraceFileWriter : public TraceWriter {
 public:
  TraceFileWriter(std::unique_ptr<ByteSink> sink, std::unique_ptr<TraceWriter> writer,
                  std::string path, std::string partial_path, const TraceWriterOptions& options)
      : sink_(std::move(sink)),
        writer_(std::move(writer)),
        path_(std::move(path)),
        partial_path_(std::move(partial_path)),
        options_(options) {}

  uint32_t ProcessId(std::string_view name) override { return writer_->ProcessId(name); }
  Status Write(const IoRecord& record) override { return writer_->Write(record); }
  Status WriteLoss(const proto::Loss& loss) override { return writer_->WriteLoss(loss); }
  Status WriteAnchor(const proto::ClockAnchor& anchor) override {
    return writer_->WriteAnchor(anchor);
  }
  Status WriteMark(const proto::Mark& mark) override { return writer_->WriteMark(mark); }
  Status WriteUnknown(const proto::Message& message) override {
    return writer_->WriteUnknown(message);
  }
  void CountQueued(Op op, uint64_t bytes, uint64_t count) override {
    writer_->CountQueued(op, bytes, count);
  }
  void CountFlaggedWrites(uint64_t count) override { writer_->CountFlaggedWrites(count); }
  uint64_t records() const override { return writer_->records(); }
  uint64_t bytes_written() const override { return writer_->bytes_written(); }

  Status FlushFrame(bool sync) override {
    const uint64_t before = bytes_written();
    const Status status = writer_->FlushFrame(sync);
    if (bytes_written() != before) ++flushed_frames_;
    return status;
  }

  Status Finish(const proto::Summary& extra) override {
    RETURN_IF_ERROR(writer_->Finish(extra));
    RETURN_IF_ERROR(RenameDurably(partial_path_, path_));
    // Whole, on the disk and named: what follows can only improve on it.
    if (options_.compact && HasShortFrames(flushed_frames_, records())) {
      (void)CompactInPlace(path_, {}, options_);
    }
    return OkStatus();
  }

 private:
  const std::unique_ptr<ByteSink> sink_;  // outlives writer_
  const std::unique_ptr<TraceWriter> writer_;
  const std::string path_;
  const std::string partial_path_;
  const TraceWriterOptions options_;
  uint64_t flushed_frames_ = 0;
};

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& path,
                                                         const proto::Header& header,
                                                         const TraceWriterOptions& options) {
  std::error_code error;
  // A folder that is closed to us hides its files, and takes none.
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return Status(StatusCode::kAlreadyExists, path + ": exists; nothing is overwritten");
  }
  const std::string partial_path = path + ".partial";
  Result<std::unique_ptr<ByteSink>> created = CreateFile(partial_path);
  if (created.status().code() == StatusCode::kAlreadyExists) {
    return Status(StatusCode::kAlreadyExists,
                  partial_path +
                      " exists: a run that goes on or has died\n  try:  another name, "
                      "or: blktape recover " +
                      partial_path);
  }
  RETURN_IF_ERROR(created.status());
  std::unique_ptr<ByteSink> sink = *std::move(created);
  Result<std::unique_ptr<TraceWriter>> writer = ToSink(sink.get(), header, options);
  if (!writer.ok()) {
    std::remove(partial_path.c_str());  // made a moment ago, and holds nothing
    return writer.status();
  }
  // Without its name on the disk no flushed frame would survive a power loss.
  (void)SyncFolderOf(partial_path);
  return std::unique_ptr<TraceWriter>(std::make_unique<TraceFileWriter>(
      std::move(sink), *std::move(writer), path, partial_path, options));
}

}  // namespace blktape
