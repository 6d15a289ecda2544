// What a reader that passes over frames yields and tells, and what it reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"
#include "base/task_pool.h"
#include "format/io_record.h"
#include "format/record_columns.h"
#include "format/trace_reader.h"
#include "format/trace_writer.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kFrames = 20;
constexpr int kPerFrame = 2'000;

// Counts what is read of it, but for its end, which every reader looks at first.
class CountingSource : public ByteSource {
 public:
  CountingSource(const std::string& bytes, uint64_t* read)
      : source_(bytes), end_(bytes.size() - 4096), read_(read) {}
  Result<size_t> Read(std::span<std::byte> buffer) override {
    // Not far ahead of what is asked for.
    const Result<size_t> got = source_.Read(buffer.first(std::min<size_t>(buffer.size(), 512)));
    if (got.ok() && at_ < end_) *read_ += *got;
    if (got.ok()) at_ += *got;
    return got;
  }
  Status Seek(uint64_t offset_bytes) override {
    at_ = offset_bytes;
    return source_.Seek(offset_bytes);
  }
  std::optional<uint64_t> size_bytes() const override { return source_.size_bytes(); }
  std::string_view name() const override { return "counting"; }

 private:
  MemorySource source_;
  uint64_t end_;
  uint64_t at_ = 0;
  uint64_t* read_;
};

IoRecord RecordNumber(int i) {
  IoRecord io = Write4k(1'000 * i + i * i % 997, static_cast<uint64_t>(i * 7919 % 100'003) * 8);
  if (i / kPerFrame == 7 || i / kPerFrame == 12) io.bytes = 8192;  // what is looked for
  io.process = 0;
  return io;
}

// Records of 8192 bytes are in frames 7 and 12 alone; a loss is in 3, an anchor in 5.
std::string SomeTrace() {
  MemorySink sink;
  TraceWriterOptions options;
  options.records_per_frame = kPerFrame;
  auto writer = TraceWriter::ToSink(&sink, TestHeader(), options);
  EXPECT_TRUE(writer.ok());
  for (int i = 0; i < kFrames * kPerFrame; ++i) {
    IoRecord io = RecordNumber(i);
    io.process = (*writer)->ProcessId("process " + std::to_string(i / kPerFrame));
    EXPECT_TRUE((*writer)->Write(io).ok());
    if (i == 3 * kPerFrame + 50) {
      proto::Loss loss;
      loss.set_reason(proto::RING_OVERRUN);
      loss.set_count(4);
      EXPECT_TRUE((*writer)->WriteLoss(loss).ok());
    }
    if (i == 5 * kPerFrame + 50) {
      EXPECT_TRUE((*writer)->WriteAnchor({}).ok());
    }
  }
  EXPECT_TRUE((*writer)->Finish({}).ok());
  return std::string(sink.bytes());
}

enum class Way { kRows, kColumns, kAhead };

struct Reading {
  std::vector<IoRecord> kept;          // of 8192 bytes
  std::vector<std::string> processes;  // of these, each once
  uint64_t records = 0;
  uint64_t skipped = 0;
  uint64_t lost_events = 0;
  uint64_t bytes = 0;
  Observed observed;
};

using Wanted = std::function<bool(const proto::FrameContents&)>;

bool MayHold8192(const proto::FrameContents& contents) { return contents.most_bytes() >= 8192; }

Reading ReadBy(Way way, const std::string& trace, const Wanted& wanted) {
  Reading reading;
  TaskPool pool(2);
  auto opened = TraceReader::FromSource(std::make_unique<CountingSource>(trace, &reading.bytes),
                                        &reading.observed);
  EXPECT_TRUE(opened.ok());
  TraceReader& reader = **opened;
  if (wanted != nullptr) reader.SkipFramesUnless(wanted);
  const auto take = [&](const IoRecord& io) {
    ++reading.records;
    if (io.bytes != 8192) return;
    reading.kept.push_back(io);
    const std::string name(reader.ProcessName(*io.process));
    if (reading.processes.empty() || reading.processes.back() != name) {
      reading.processes.push_back(name);
    }
  };
  if (way == Way::kRows) {
    EXPECT_TRUE(ForEachRecord(&reader, take).ok());
  } else {
    if (way == Way::kAhead) reader.DecodeAhead(&pool);
    while (true) {
      const auto columns = reader.NextColumns(RecordColumns::kAllFields);
      EXPECT_TRUE(columns.ok());
      if (!columns.ok() || *columns == nullptr) break;
      for (size_t i = 0; i < (*columns)->count; ++i) take((*columns)->Record(i));
    }
  }
  reading.skipped = reader.skipped_records();
  reading.lost_events = reader.lost_events();
  return reading;
}

class FrameSkipTest : public testing::TestWithParam<Way> {};

TEST_P(FrameSkipTest, OnlyFramesThatMayHoldIt) {
  const std::string trace = SomeTrace();
  const Reading whole = ReadBy(GetParam(), trace, nullptr);
  const Reading part = ReadBy(GetParam(), trace, MayHold8192);
  EXPECT_EQ(whole.skipped, 0u);
  EXPECT_EQ(whole.records, uint64_t{kFrames} * kPerFrame);
  // And that with the loss.
  EXPECT_EQ(part.records, 3u * kPerFrame);
  EXPECT_EQ(part.skipped, uint64_t{kFrames - 3} * kPerFrame);
  EXPECT_THAT(part.kept, SizeIs(2 * kPerFrame));
  EXPECT_EQ(part.kept, whole.kept);
  EXPECT_THAT(part.processes, ElementsAre("process 7", "process 12"));
  EXPECT_EQ(part.lost_events, 4u);
  EXPECT_THAT(part.observed.losses, SizeIs(1));
  EXPECT_THAT(part.observed.anchors, IsEmpty());
  EXPECT_THAT(whole.observed.anchors, SizeIs(1));
  EXPECT_LT(part.bytes, whole.bytes / 4);
}

TEST_P(FrameSkipTest, AnchorsAreReadWhereTheyAreWanted) {
  const Reading part =
      ReadBy(GetParam(), SomeTrace(), [](const proto::FrameContents& c) { return c.anchors(); });
  EXPECT_EQ(part.records, 2u * kPerFrame);
  EXPECT_THAT(part.observed.anchors, SizeIs(1));
}

TEST_P(FrameSkipTest, NothingIsWanted) {
  const Reading part =
      ReadBy(GetParam(), SomeTrace(), [](const proto::FrameContents&) { return false; });
  EXPECT_EQ(part.records, uint64_t{kPerFrame});
  EXPECT_EQ(part.records + part.skipped, uint64_t{kFrames} * kPerFrame);
  EXPECT_EQ(part.lost_events, 4u);
}

// Damage that is met is reported as a reader of all does.
TEST_P(FrameSkipTest, DamageWhereItIsRead) {
  std::string trace = SomeTrace();
  proto::Summary summary;
  {
    auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(trace));
    summary = *(*reader)->summary();
  }
  // In frame 7, and in 15, which holds nothing wanted.
  for (const int frame : {7, 15}) {
    trace.replace(summary.frames(frame).offset_bytes() + 500, 6, "damage");
  }
  const Reading whole = ReadBy(GetParam(), trace, nullptr);
  const Reading part = ReadBy(GetParam(), trace, MayHold8192);
  EXPECT_EQ(whole.lost_events, 2u * kPerFrame + 4);
  // It does not trust the index from the damage on.
  EXPECT_EQ(part.lost_events, whole.lost_events);
  ASSERT_THAT(part.observed.losses, SizeIs(3));
  EXPECT_EQ(part.observed.losses[1].from_bytes(), summary.frames(7).offset_bytes());
  EXPECT_EQ(part.observed.losses[1].to_bytes(), summary.frames(8).offset_bytes());
  EXPECT_EQ(part.observed.losses[1].count(), uint64_t{kPerFrame});
  EXPECT_EQ(part.kept, whole.kept);
}

// The index leads astray, and is not believed.
TEST_P(FrameSkipTest, AFrameIsMissing) {
  std::string trace = SomeTrace();
  proto::Summary summary;
  {
    auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(trace));
    summary = *(*reader)->summary();
  }
  for (const int frame : {2, 7, 13}) {
    std::string cut = trace;
    const uint64_t begin = summary.frames(frame).offset_bytes();
    cut.erase(begin, summary.frames(frame + 1).offset_bytes() - begin);
    const Reading whole = ReadBy(GetParam(), cut, nullptr);
    const Reading part = ReadBy(GetParam(), cut, MayHold8192);
    EXPECT_EQ(whole.lost_events, uint64_t{kPerFrame} + 4) << frame;
    EXPECT_EQ(part.lost_events, whole.lost_events) << frame;
    EXPECT_EQ(part.kept, whole.kept) << frame;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, FrameSkipTest,
                         testing::Values(Way::kRows, Way::kColumns, Way::kAhead));

TEST(FrameSkipSourceTest, APipeIsReadWhole) {
  auto reader = TraceReader::FromSource(std::make_unique<DripSource>(SomeTrace(), 1 << 16));
  ASSERT_TRUE(reader.ok());
  (*reader)->SkipFramesUnless([](const proto::FrameContents&) { return false; });
  uint64_t records = 0;
  ASSERT_TRUE(ForEachRecord(reader->get(), [&](const IoRecord&) { ++records; }).ok());
  EXPECT_EQ(records, uint64_t{kFrames} * kPerFrame);
  EXPECT_EQ((*reader)->skipped_records(), 0u);
}

TEST(FrameSkipSourceTest, AfterSkippingToATime) {
  const std::string trace = SomeTrace();
  auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(trace));
  ASSERT_TRUE(reader.ok());
  (*reader)->SkipFramesUnless(MayHold8192);
  ASSERT_TRUE((*reader)->SkipTo(1'000 * 9 * kPerFrame + 500'000).ok());
  IoRecord io;
  ASSERT_TRUE(*(*reader)->Next(&io));
  EXPECT_EQ((*reader)->ProcessName(*io.process), "process 12");
  EXPECT_EQ(io.bytes, 8192u);
}

}  // namespace
}  // namespace blktape
