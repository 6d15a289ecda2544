#include "tests/format/trace_testing.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "format/column_codec.h"
#include "format/frame_writer.h"
#include "format/message_stream.h"
#include "tests/support/desktop_load.h"

namespace blktape {

Result<size_t> DripSource::Read(std::span<std::byte> buffer) {
  const size_t count = std::min({buffer.size(), most_, bytes_.size() - position_});
  std::memcpy(buffer.data(), bytes_.data() + position_, count);
  position_ += count;
  return count;
}

proto::Header TestHeader(int devices) {
  proto::Header header;
  header.set_source("generator");
  for (int i = 0; i < devices; ++i) header.add_devices()->set_name("disk" + std::to_string(i));
  return header;
}

IoRecord Write4k(int64_t at_ns, uint64_t sector) {
  IoRecord io;
  io.op = Op::kWrite;
  io.lba = Lba(sector);
  io.bytes = 4096;
  io.queue_ns = at_ns;
  io.issue_ns = at_ns + 10;
  io.complete_ns = at_ns + 110;
  return io;
}

IoRecord AnyRecord(std::mt19937_64* random, uint32_t devices) {
  // Extremes matter as much as anything between.
  const auto any = [random]() -> uint64_t {
    switch ((*random)() % 5) {
      case 0:
        return 0;
      case 1:
        return std::numeric_limits<uint64_t>::max();
      case 2:
        return uint64_t{1} << ((*random)() % 64);
      case 3:
        return (*random)() % 1000;
      default:
        return (*random)();
    }
  };
  const auto here = [random] { return (*random)() % 3 != 0; };
  IoRecord io;
  io.device = static_cast<uint32_t>((*random)() % devices);
  io.op = static_cast<Op>((*random)() % kOpCount);
  io.flags = static_cast<uint32_t>(any());
  if (here()) io.lba = Lba(any());
  io.bytes = any();
  if (here()) io.queue_ns = static_cast<int64_t>(any());
  if (here()) io.issue_ns = static_cast<int64_t>(any());
  if (here()) io.complete_ns = static_cast<int64_t>(any());
  if (here()) io.error = static_cast<uint32_t>(any());
  if (here()) io.pid = static_cast<uint32_t>(any());
  if (here()) io.process = static_cast<uint32_t>(any());
  if (here()) io.cpu = static_cast<uint32_t>(any());
  if (here()) io.merged_bios = static_cast<uint32_t>(any());
  if (here()) io.prio = static_cast<uint32_t>(any());
  if (here()) io.ordinal = any();
  if (here()) io.backlog_ns = any();
  if (here()) io.waker = static_cast<uint32_t>(any());
  if (here()) io.since_wake_ns = any();
  return io;
}

std::vector<IoRecord> DesktopRecords(uint64_t seed, size_t count) {
  DesktopLoad load(seed);
  std::vector<IoRecord> records;
  for (size_t i = 0; i < count; ++i) records.push_back(load.Next());
  return records;
}

Status WriteGolden(const std::string& path) {
  proto::Header header;
  header.set_tool_version("0.1.0");
  header.set_source("generator");
  header.set_host("golden");
  proto::Device* const disk = header.add_devices();
  disk->set_name("nvme0n1");
  disk->set_major(259);
  disk->set_size_bytes(500'107'862'016);
  disk->set_rotational(false);
  header.add_devices()->set_name("sda");
  header.mutable_start()->set_monotonic_ns(1'000);
  header.mutable_start()->set_wall_ns(1'700'000'000'000'000'000);
  TraceWriterOptions options;
  options.records_per_frame = 3;
  ASSIGN_OR_RETURN(const auto writer, TraceWriter::Create(path, header, options));

  IoRecord read;
  read.lba = Lba(2048);
  read.bytes = 16384;
  read.flags = kFlagReadahead | kFlagMeta;
  read.queue_ns = 1'500;
  read.issue_ns = 2'500;
  read.complete_ns = 90'000;
  read.error = 0;
  read.pid = 77;
  read.process = writer->ProcessId("updatedb");
  read.cpu = 3;
  read.merged_bios = 3;
  read.prio = 0x4001;
  RETURN_IF_ERROR(writer->Write(read));

  IoRecord next = read;  // sequential to the first, and failed
  next.lba = Lba(2080);
  next.bytes = 4096;
  next.queue_ns = 3'000;
  next.issue_ns = 3'100;
  next.complete_ns = 80'000;
  next.error = 5;
  RETURN_IF_ERROR(writer->Write(next));

  IoRecord flush;
  flush.op = Op::kFlush;
  flush.flags = kFlagDerived | kFlagPreflush;
  flush.issue_ns = 4'000;
  flush.complete_ns = 5'000'000'004'000;
  RETURN_IF_ERROR(writer->Write(flush));

  proto::Loss loss;
  loss.set_reason(proto::RING_OVERRUN);
  loss.set_count(12);
  loss.set_cpu(1);
  RETURN_IF_ERROR(writer->WriteLoss(loss));

  IoRecord discard;
  discard.device = 1;
  discard.op = Op::kDiscard;
  discard.lba = Lba(uint64_t{1} << 40);
  discard.bytes = uint64_t{3} << 40;
  discard.queue_ns = -5;  // before the clock's zero, and out of order
  discard.process = writer->ProcessId("fstrim");
  discard.ordinal = 1'000'000;
  RETURN_IF_ERROR(writer->Write(discard));

  IoRecord bare;  // nothing is known but that it was
  bare.op = Op::kZoneAppend;
  bare.flags = 1u << 31;
  RETURN_IF_ERROR(writer->Write(bare));

  writer->CountQueued(Op::kWrite, 4096, 9);
  writer->CountQueued(Op::kFlush, 0, 2);
  proto::Summary extra;
  extra.mutable_end()->set_monotonic_ns(9'000);
  return writer->Finish(extra);
}

std::string TraceOf(const std::vector<IoRecord>& records, uint32_t records_per_frame, int devices) {
  MemorySink sink;
  TraceWriterOptions options;
  options.records_per_frame = records_per_frame;
  auto writer = TraceWriter::ToSink(&sink, TestHeader(devices), options);
  BLKTAPE_CHECK(writer.ok());
  for (const IoRecord& io : records) BLKTAPE_CHECK((*writer)->Write(io).ok());
  BLKTAPE_CHECK((*writer)->Finish({}).ok());
  return sink.bytes();
}

std::string TraceOfANewerVersion() {
  MemorySink sink;
  FrameWriter frames(&sink, 1);
  std::string bytes;
  proto::Message header;
  *header.mutable_header() = TestHeader();
  header.mutable_header()->set_format_version(1);
  AppendDelimited(header, &bytes);
  BLKTAPE_CHECK(frames.Write(bytes).ok());
  bytes.clear();
  proto::Message start;
  start.mutable_frame()->set_number(1);
  AppendDelimited(start, &bytes);
  proto::Message batch;
  EncodeBatch(std::vector<IoRecord>{Write4k(1000, 0)}, batch.mutable_batch());
  batch.batch().GetReflection()->MutableUnknownFields(batch.mutable_batch())->AddVarint(2000, 1);
  AppendDelimited(batch, &bytes);
  BLKTAPE_CHECK(frames.Write(bytes).ok());
  return sink.bytes();
}

ReadBack ReadAll(std::unique_ptr<ByteSource> source) {
  ReadBack back;
  Observed observed;
  auto reader = TraceReader::FromSource(std::move(source), &observed);
  if (!reader.ok()) {
    back.status = reader.status();
    return back;
  }
  back.summary_before = (*reader)->summary().has_value();
  IoRecord io;
  while (true) {
    const Result<bool> more = (*reader)->Next(&io);
    if (!more.ok()) back.status = more.status();
    if (!more.ok() || !*more) break;
    back.records.push_back(io);
  }
  back.losses = observed.losses;
  back.lost_events = (*reader)->lost_events();
  back.summary = (*reader)->summary();
  return back;
}

ReadBack ReadAll(const std::string& trace) {
  return ReadAll(std::make_unique<MemorySource>(trace));
}

}  // namespace blktape
