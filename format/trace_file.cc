// TraceWriter on a file: PATH.partial while it is written, PATH when it is finished.
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "base/byte_stream.h"
#include "base/file.h"
#include "format/partial_file.h"
#include "format/trace_copier.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

class TraceFileWriter : public TraceWriter {
 public:
  TraceFileWriter(PartialFile file, std::unique_ptr<ByteSink> sink,
                  std::unique_ptr<TraceWriter> writer, std::string path,
                  const TraceWriterOptions& options)
      : file_(std::move(file)),
        sink_(std::move(sink)),
        writer_(std::move(writer)),
        path_(std::move(path)),
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
  const LossTally& loss_tally() const override { return writer_->loss_tally(); }
  uint64_t records() const override { return writer_->records(); }
  bool in_order() const override { return writer_->in_order(); }
  uint64_t bytes_written() const override { return writer_->bytes_written(); }

  Status FlushFrame(bool sync) override {
    const uint64_t before = bytes_written();
    const Status status = writer_->FlushFrame(sync);
    if (bytes_written() != before) ++flushed_frames_;
    return status;
  }

  Status Finish(const proto::Summary& extra) override {
    RETURN_IF_ERROR(writer_->Finish(extra));
    RETURN_IF_ERROR(file_.GiveName());
    // Whole, on the disk and named: what follows can only improve on it.
    if (options_.compact && HasShortFrames(flushed_frames_, records())) {
      (void)CompactInPlace(path_, {}, options_);
    }
    return OkStatus();
  }

 private:
  const PartialFile file_;
  const std::unique_ptr<ByteSink> sink_;  // writes to file_, outlives writer_
  const std::unique_ptr<TraceWriter> writer_;
  const std::string path_;
  const TraceWriterOptions options_;
  uint64_t flushed_frames_ = 0;
};

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& path,
                                                         const proto::Header& header,
                                                         const TraceWriterOptions& options) {
  ASSIGN_OR_RETURN(PartialFile file, PartialFile::Create(path));
  UniqueFd fd(fcntl(file.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd) {
    file.Remove();
    return ErrnoStatus(errno, file.path());
  }
  std::unique_ptr<ByteSink> sink = SinkTo(std::move(fd), file.path());
  Result<std::unique_ptr<TraceWriter>> writer = ToSink(sink.get(), header, options);
  if (!writer.ok()) {
    file.Remove();  // made a moment ago, and holds nothing
    return writer.status();
  }
  // Best effort: a file system without it takes traces, too.
  (void)file.SyncName();
  return std::unique_ptr<TraceWriter>(std::make_unique<TraceFileWriter>(
      std::move(file), std::move(sink), *std::move(writer), path, options));
}

}  // namespace blktape
