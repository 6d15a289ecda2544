#include "format/frame_writer.h"

namespace blktape {

Status FrameWriter::Append(std::string_view bytes) {
  if (!status_.ok()) return status_;
  status_ = sink_->Write(std::as_bytes(std::span(bytes)));
  if (status_.ok()) offset_bytes_ += bytes.size();
  return status_;
}

Status FrameWriter::Write(std::string_view content, std::span<const size_t> block_ends) {
  if (!status_.ok()) return status_;
  const std::string_view frame = compressor_.Compress(content, block_ends);
  RETURN_IF_ERROR(Append(frame));
  seek_table_.Add(frame.size(), content.size());
  return OkStatus();
}

Status FrameWriter::WriteSeekTable() { return Append(seek_table_.Build()); }

Status FrameWriter::Sync() {
  if (!status_.ok()) return status_;
  status_ = sink_->Sync();
  return status_;
}

}  // namespace blktape
