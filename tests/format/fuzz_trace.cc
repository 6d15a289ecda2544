#include "tests/format/fuzz_trace.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/byte_stream.h"
#include "base/check.h"
#include "format/frame_writer.h"
#include "format/message_stream.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

// Takes numbers off the front of a fuzzer's bytes; 0 once they are used up.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  // Small, an extreme, or any: a byte says which.
  uint64_t Number() {
    const uint8_t kind = Byte();
    switch (kind % 4) {
      case 0:
        return kind / 4;
      case 1:
        return uint64_t{1} << (kind / 4);
      case 2:
        return std::numeric_limits<uint64_t>::max() - kind / 4;
      default: {
        std::array<char, sizeof(uint64_t)> raw{};
        const size_t count = std::min(bytes_.size(), raw.size());
        std::memcpy(raw.data(), bytes_.data(), count);
        bytes_.remove_prefix(count);
        uint64_t number = 0;
        std::memcpy(&number, raw.data(), sizeof number);
        return number;
      }
    }
  }
  std::string Text() {
    const size_t wanted = Byte() % 16;
    const size_t count = std::min(wanted, bytes_.size());
    std::string text(bytes_.substr(0, count));
    bytes_.remove_prefix(count);
    return text;
  }

 private:
  std::string_view bytes_;
};

IoRecord RecordFrom(Input* in, uint32_t devices, TraceWriter* writer) {
  IoRecord io;
  const uint8_t there = in->Byte();
  const uint8_t also = in->Byte();
  io.op = static_cast<Op>(in->Byte() % kOpCount);
  io.device = in->Byte() % devices;
  io.bytes = (also & 1) != 0 ? 512 * uint64_t{in->Byte()} : in->Number();
  if ((there & 1) != 0) io.lba = Lba((also & 2) != 0 ? 8 * uint64_t{in->Byte()} : in->Number());
  if ((there & 2) != 0) io.queue_ns = static_cast<int64_t>(in->Number());
  if ((there & 4) != 0) io.issue_ns = io.queue_ns.value_or(0);
  if ((there & 8) != 0) io.issue_ns = static_cast<int64_t>(in->Number());
  if ((there & 16) != 0) io.complete_ns = static_cast<int64_t>(in->Number());
  if ((there & 32) != 0) io.flags = static_cast<uint32_t>(in->Number());
  if ((there & 64) != 0) io.process = writer->ProcessId(in->Text());
  if ((there & 128) != 0) io.error = static_cast<uint32_t>(in->Number());
  if ((also & 4) != 0) io.ordinal = in->Number();
  if ((also & 8) != 0) io.backlog_ns = in->Number();
  if ((also & 16) != 0) io.merged_bios = static_cast<uint32_t>(in->Number());
  if ((also & 32) != 0) io.process = static_cast<uint32_t>(in->Number());
  if ((also & 64) != 0) io.waker = static_cast<uint32_t>(in->Number());
  if ((also & 128) != 0) io.since_wake_ns = in->Number();
  return io;
}

void WriteOther(Input* in, TraceWriter* writer) {
  switch (in->Byte() % 4) {
    case 0: {
      proto::Loss loss;
      loss.set_reason(static_cast<proto::LossReason>(in->Number()));
      if (in->Byte() % 2 != 0) loss.set_count(in->Number());
      loss.set_detail(in->Text());
      BLKTAPE_CHECK(writer->WriteLoss(loss).ok());
      break;
    }
    case 1:
      writer->CountQueued(static_cast<Op>(in->Byte() % kOpCount), in->Number(), in->Number());
      break;
    case 2: {
      proto::Mark mark;
      mark.set_kind(static_cast<proto::MarkKind>(in->Byte()));
      mark.set_at_ns(static_cast<int64_t>(in->Number()));
      mark.set_value_ns(static_cast<int64_t>(in->Number()));
      mark.set_detail(in->Text());
      BLKTAPE_CHECK(writer->WriteMark(mark).ok());
      break;
    }
    default:
      BLKTAPE_CHECK(writer->FlushFrame(false).ok());
  }
}

}  // namespace

std::string FramesFromBytes(std::string_view bytes, bool with_header) {
  MemorySink sink;
  FrameWriter frames(&sink, 1);
  if (with_header) {
    proto::Message header;
    *header.mutable_header() = TestHeader(2);
    header.mutable_header()->set_format_version(1);
    std::string content;
    AppendDelimited(header, &content);
    BLKTAPE_CHECK(frames.Write(content).ok());
  }
  uint64_t number = 0;
  while (!bytes.empty()) {
    const auto size = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    std::string content;
    if (with_header && size % 2 == 0) {
      proto::Message start;
      start.mutable_frame()->set_number(++number);
      AppendDelimited(start, &content);
    }
    content += bytes.substr(0, size);
    bytes.remove_prefix(std::min<size_t>(size, bytes.size()));
    BLKTAPE_CHECK(frames.Write(content).ok());
  }
  BLKTAPE_CHECK(frames.WriteSeekTable().ok());
  return sink.bytes();
}

std::string RecordsFromBytes(std::string_view bytes) {
  Input in(bytes);
  const uint8_t form = in.Byte();
  const uint32_t devices = 1 + form % 3;
  proto::Header header = TestHeader(static_cast<int>(devices));
  if ((form & 64) != 0) {
    header.mutable_start()->set_monotonic_ns(static_cast<int64_t>(in.Number()));
    header.mutable_start()->set_wall_ns(static_cast<int64_t>(in.Number()));
    header.set_timezone(in.Text());
    header.mutable_replay()->set_rule(in.Text());
    header.mutable_devices(0)->set_size_bytes(in.Number());
  }
  MemorySink sink;
  const auto writer = TraceWriter::ToSink(&sink, header, {.zstd_level = 1});
  BLKTAPE_CHECK(writer.ok());
  while (!in.empty()) {
    const uint8_t next = in.Byte();
    if (next % 8 == 0) {
      WriteOther(&in, writer->get());
    } else {
      BLKTAPE_CHECK((*writer)->Write(RecordFrom(&in, devices, writer->get())).ok());
    }
  }
  if ((form & 128) != 0) {
    BLKTAPE_CHECK((*writer)->FlushFrame(false).ok());
  } else {
    proto::Summary summary;
    summary.mutable_end()->set_monotonic_ns(header.start().wall_ns());
    BLKTAPE_CHECK((*writer)->Finish(summary).ok());
  }
  return sink.bytes();
}

std::string TraceFromBytes(std::string_view bytes) {
  if (bytes.empty()) return {};
  const auto form = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  switch (form % 8) {
    case 0:
      return std::string(bytes);
    case 1:
    case 2:
      return FramesFromBytes(bytes, /*with_header=*/true);
    default:
      return RecordsFromBytes(bytes);
  }
}

std::string PathInMemory(std::string_view content) {
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  BLKTAPE_CHECK(fd >= 0);
  BLKTAPE_CHECK(ftruncate(fd, 0) == 0);
  BLKTAPE_CHECK(pwrite(fd, content.data(), content.size(), 0) ==
                static_cast<ssize_t>(content.size()));
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace blktape
