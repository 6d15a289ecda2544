#include "tests/format/trace_testing.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"

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
  return io;
}

std::vector<IoRecord> DesktopRecords(std::mt19937_64* random, size_t count) {
  std::vector<IoRecord> records;
  int64_t now_ns = 1'000'000'000;
  uint64_t sector = 2048;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t dice = (*random)() % 100;
    now_ns += static_cast<int64_t>(dice < 90 ? (*random)() % 200'000 : (*random)() % 30'000'000);
    if ((*random)() % 3 == 0) sector = (*random)() % (1u << 28) * 8;
    IoRecord io = Write4k(now_ns, sector);
    if (dice < 40) io.op = Op::kRead;
    if (dice >= 70) io.bytes = 4096 * (1 + (*random)() % 32);
    if (dice == 50) io.flags = kFlagSync | kFlagFua;
    io.issue_ns = now_ns + 1'000 + static_cast<int64_t>((*random)() % 4'000);
    io.complete_ns = *io.issue_ns + 20'000 + static_cast<int64_t>((*random)() % 100'000);
    io.error = 0;
    io.pid = 1000 + static_cast<uint32_t>((*random)() % 20);
    io.process = *io.pid - 1000;
    io.cpu = static_cast<uint32_t>((*random)() % 8);
    io.merged_bios = 0;
    sector += io.bytes / kSectorBytes;
    records.push_back(io);
  }
  return records;
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
