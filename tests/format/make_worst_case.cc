// Writes a trace made to cost its reader as much as possible: make_worst_case KIND N OUT.
// What grows with N is said at each kind; "dense" is the densest that a writer makes, and so what
// the others are compared with.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/check.h"
#include "format/column_codec.h"
#include "format/frame_writer.h"
#include "format/message_stream.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

constexpr uint64_t kMiB = 1u << 20;

std::string Delimited(const proto::Message& message) {
  std::string bytes;
  AppendDelimited(message, &bytes);
  return bytes;
}

std::string Repeated(const std::string& piece, uint64_t times) {
  std::string all;
  all.reserve(piece.size() * times);
  for (uint64_t i = 0; i < times; ++i) all += piece;
  return all;
}

// A trace whose frames are whole and numbered, with any content.
class Frames {
 public:
  explicit Frames(const proto::Header& header = TestHeader(1)) : frames_(&sink_, 1) {
    proto::Message first;
    *first.mutable_header() = header;
    first.mutable_header()->set_format_version(1);
    BLKTAPE_CHECK(frames_.Write(Delimited(first)).ok());
  }
  void Add(const std::string& messages, uint64_t records = 0) {
    proto::Message start;
    start.mutable_frame()->set_number(++number_);
    start.mutable_frame()->set_first_record(records_);
    BLKTAPE_CHECK(frames_.Write(Delimited(start) + messages).ok());
    records_ += records;
  }
  std::string End(proto::Summary summary = {}) {
    proto::Message last;
    summary.set_records(records_);
    *last.mutable_summary() = std::move(summary);
    Add(Delimited(last));
    BLKTAPE_CHECK(frames_.WriteSeekTable().ok());
    return sink_.bytes();
  }

 private:
  MemorySink sink_;
  FrameWriter frames_;
  uint64_t number_ = 0;
  uint64_t records_ = 0;
};

std::string BatchOf(const std::vector<IoRecord>& records) {
  proto::Message message;
  EncodeBatch(records, message.mutable_batch());
  return Delimited(message);
}

// `count` records; one differs from the one before as little as possible.
std::vector<IoRecord> Alike(uint32_t count, const std::function<void(uint32_t, IoRecord*)>& edit) {
  std::vector<IoRecord> records;
  for (uint32_t i = 0; i < count; ++i) {
    IoRecord io = Write4k(1000 * int64_t{i}, 8 * uint64_t{i});
    edit(i, &io);
    records.push_back(io);
  }
  return records;
}

std::string FramesOf(uint64_t frames, const proto::Header& header,
                     const std::vector<IoRecord>& records) {
  Frames trace(header);
  const std::string batch = BatchOf(records);
  for (uint64_t i = 0; i < frames; ++i) trace.Add(batch, records.size());
  return trace.End();
}

std::string Little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string BlockHeader(uint64_t type, uint64_t size, bool last) {
  return Little(size << 3 | type << 1 | (last ? 1 : 0), 3);
}

// N groups of 4,096 places that look like frames of 32 MiB each: they share their end, which
// decompresses to that and then has a wrong checksum.
std::string FakeFrames(uint64_t groups) {
  constexpr int kPlaces = 4096;
  const std::string head = Little(kZstdMagic, 4) + Little(0xA4, 1) + Little(32 * kMiB, 4);
  const uint64_t place_bytes = head.size() + 3;
  std::string group;
  for (int i = 0; i < kPlaces; ++i) {
    const uint64_t to_end = (kPlaces - 1 - i) * place_bytes;
    group += head + BlockHeader(0, to_end, false);
  }
  for (uint64_t left = 32 * kMiB - kPlaces * place_bytes; left > 0;) {
    const uint64_t size = std::min<uint64_t>(left, 128 << 10);
    left -= size;
    group += BlockHeader(1, size, false) + "r";
  }
  group += BlockHeader(0, 0, true) + "sum!";
  return TraceOf(DesktopRecords(1, 100), 100).substr(0, 300) + Repeated(group, groups);
}

// N groups of 4,096 beginnings of a seek table, each with the footer that fits it.
std::string FakeTables(uint64_t groups) {
  constexpr uint64_t kTables = 4096;
  constexpr uint64_t kFooter = 9;
  std::string group;
  // The i-th payload begins behind its header and ends with the i-th footer; entries have 8 bytes.
  for (uint64_t i = 0; i < kTables; ++i) {
    const uint64_t begin = (i + 1) * 8;
    uint64_t end = kTables * 8 + (kTables - i) * 16;
    end -= (end - begin - kFooter) % 8;
    group += Little(kSeekTableMagic, 4) + Little(end - begin, 4);
  }
  for (uint64_t i = kTables; i-- > 0;) {
    const uint64_t begin = (i + 1) * 8;
    uint64_t end = kTables * 8 + (kTables - i) * 16;
    end -= (end - begin - kFooter) % 8;
    group.resize(end - kFooter);
    group += Little((end - begin - kFooter) / 8, 4) + Little(0, 1) + Little(0x8F92EAB1, 4);
  }
  return TraceOf(DesktopRecords(1, 100), 100).substr(0, 300) + Repeated(group, groups);
}

// N MiB that claim to be raw blocks of one small frame.
std::string RawBlocks(uint64_t mib) {
  std::string bytes = TraceOf(DesktopRecords(1, 100), 100).substr(0, 300);
  bytes += Little(kZstdMagic, 4) + Little(0xA4, 1) + Little(1000, 4);
  const std::string block = BlockHeader(0, 128 << 10, false) + std::string(128 << 10, 'x');
  return bytes + Repeated(block, mib * 8);
}

// N frames that hold the same message as often as 4 MiB allow.
std::string ManyMessages(uint64_t frames, const std::string& message, uint64_t records = 0) {
  Frames trace;
  const uint64_t times = 4 * kMiB / message.size();
  const std::string content = Repeated(message, times);
  for (uint64_t i = 0; i < frames; ++i) trace.Add(content, times * records);
  return trace.End();
}

std::string Losses(uint64_t frames) {
  proto::Message loss;
  loss.mutable_loss()->set_count(1);
  return ManyMessages(frames, Delimited(loss));
}

// Recovery has to end a batch at each loss.
std::string LossesBetweenRecords(uint64_t frames) {
  proto::Message loss;
  loss.mutable_loss()->set_count(1);
  return ManyMessages(frames, Delimited(loss) + BatchOf({Write4k(0, 0)}), 1);
}

std::string LongDetails(uint64_t frames) {
  proto::Message mark;
  mark.mutable_mark()->set_detail(std::string(kMiB, 'm'));
  proto::Message loss;
  loss.mutable_loss()->set_from_bytes(1);
  loss.mutable_loss()->set_detail(std::string(kMiB, 'l'));
  return ManyMessages(frames, Delimited(mark) + Delimited(loss));
}

// Sizes as queued, all different, and never a record between them.
std::string QueuedSizes(uint64_t frames) {
  Frames trace;
  uint64_t bytes = 512;
  for (uint64_t i = 0; i < frames; ++i) {
    std::string content;
    for (int j = 0; j < 16; ++j) {
      proto::Message sizes;
      for (int k = 0; k < 16'000; ++k) {
        auto* const entry = sizes.mutable_queued_sizes()->add_entries();
        entry->set_op(static_cast<uint32_t>(Op::kWrite));
        entry->set_bytes(bytes += 512);
        entry->set_count(1);
      }
      content += Delimited(sizes);
    }
    trace.Add(content);
  }
  return trace.End();
}

// Every device has latencies.
std::string ManyDevices(uint64_t frames) {
  constexpr int kDevices = 4096;
  return FramesOf(
      frames, TestHeader(kDevices),
      Alike(kMaxBatchRecords, [](uint32_t i, IoRecord* io) { io->device = i % kDevices; }));
}

// Requests of 4 GiB, far apart.
std::string LongRequests(uint64_t frames) {
  return FramesOf(frames, TestHeader(1), Alike(kMaxBatchRecords, [](uint32_t i, IoRecord* io) {
                    io->lba = Lba(uint64_t{i} << 24);
                    io->bytes = uint64_t{4} << 30;
                  }));
}

// Issued in the opposite order of their arrival, none ever complete.
std::string Disorder(uint64_t frames) {
  return FramesOf(frames, TestHeader(1), Alike(kMaxBatchRecords, [](uint32_t i, IoRecord* io) {
                    io->issue_ns = int64_t{1} << 50;
                    *io->issue_ns -= 2000 * int64_t{i};
                    io->complete_ns = int64_t{1} << 55;
                  }));
}

// A header with N MiB of words.
std::string LongHeader(uint64_t mib) {
  proto::Header header = TestHeader(1);
  header.set_command(Repeated("word ", mib * kMiB / 5));
  header.add_filters(std::string(kMiB, ' '));
  return FramesOf(1, header, {Write4k(0, 0)});
}

// A summary as large as may be, of N * 10,000 of everything.
std::string LongSummary(uint64_t n) {
  Frames trace;
  trace.Add(BatchOf({Write4k(0, 0)}), 1);
  proto::Summary summary;
  for (uint64_t i = 0; i < n * 10'000; ++i) {
    auto* const loss = summary.add_losses();
    loss->set_reason(static_cast<proto::LossReason>(i));
    loss->set_count(1);
    (*summary.mutable_replay()->mutable_skipped())["reason " + std::to_string(i)] = i;
    (*summary.mutable_replay()->mutable_errors_by_errno())[static_cast<int>(i)] = i;
  }
  return trace.End(summary);
}

// Fields that nobody knows, which a parser keeps one by one.
std::string UnknownFields(uint64_t mib) {
  const std::string bytes = Repeated("\x78\x01", mib * kMiB / 2);
  std::string message;
  for (size_t left = bytes.size(); left != 0; left >>= 7) {
    message += static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
  }
  Frames trace;
  trace.Add(message + bytes);
  return trace.End();
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) {
  using namespace blktape;  // NOLINT
  const std::map<std::string, std::function<std::string(uint64_t)>> kinds = {
      // N frames of as many records as a frame may have.
      {"dense",
       [](uint64_t n) {
         return FramesOf(n, TestHeader(1), Alike(kMaxBatchRecords, [](uint32_t, IoRecord*) {}));
       }},
      {"fake-frames", FakeFrames},
      {"fake-tables", FakeTables},
      {"raw-blocks", RawBlocks},
      {"empty-messages", [](uint64_t n) { return ManyMessages(n, std::string(1, '\0')); }},
      {"losses", Losses},
      {"losses-between", LossesBetweenRecords},
      {"long-details", LongDetails},
      {"queued-sizes", QueuedSizes},
      {"many-devices", ManyDevices},
      {"long-requests", LongRequests},
      {"disorder", Disorder},
      {"long-header", LongHeader},
      {"long-summary", LongSummary},
      {"unknown-fields", UnknownFields},
      // More batches than a frame may hold, each of as many records as it may.
      {"batches",
       [](uint64_t n) {
         return ManyMessages(n, BatchOf(std::vector<IoRecord>(kMaxBatchRecords)), kMaxBatchRecords);
       }},
  };
  if (argc != 4 || kinds.count(argv[1]) == 0) {
    std::fprintf(stderr, "usage: make_worst_case KIND N OUT; kinds:");
    for (const auto& [kind, make] : kinds) std::fprintf(stderr, " %s", kind.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::ofstream out(argv[3], std::ios::binary);
  out << kinds.at(argv[1])(std::strtoull(argv[2], nullptr, 10));
  return out.flush() ? 0 : 1;
}
