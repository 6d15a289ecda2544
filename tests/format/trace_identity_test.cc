// Which frames are a trace's own, where its header can be read from, and what a reader must know.
#include "format/trace_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "format/column_codec.h"
#include "format/frame_writer.h"
#include "format/message_stream.h"
#include "format/recover.h"
#include "format/zstd_frame.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kPerFrame = 10;

std::vector<IoRecord> Records(uint64_t from, uint64_t count) {
  std::vector<IoRecord> records;
  for (uint64_t i = from; i < from + count; ++i) {
    records.push_back(Write4k(static_cast<int64_t>(1000 * (i + 1)), 8 * i));
  }
  return records;
}

// A trace of frames of ten records; `ends` are where its frames end, the header's first.
struct Trace {
  std::string bytes;
  std::vector<uint64_t> ends;
  std::string frame(size_t number) const {
    return bytes.substr(ends[number - 1], ends[number] - ends[number - 1]);
  }
};

Trace TraceFrom(const std::string& host, const std::vector<IoRecord>& records, bool finish = true) {
  proto::Header header = TestHeader();
  header.set_host(host);
  MemorySink sink;
  const auto writer = TraceWriter::ToSink(&sink, header, {.records_per_frame = kPerFrame});
  EXPECT_TRUE(writer.ok());
  Trace trace;
  trace.ends.push_back((*writer)->bytes_written());
  for (const IoRecord& io : records) {
    EXPECT_TRUE((*writer)->Write(io).ok());
    if ((*writer)->bytes_written() != trace.ends.back()) {
      trace.ends.push_back((*writer)->bytes_written());
    }
  }
  if (finish) {
    EXPECT_TRUE((*writer)->Finish({}).ok());
  }
  trace.bytes = sink.bytes();
  return trace;
}

TEST(TraceIdentityTest, AFrameOfAnotherTraceIsDamageThoughItsNumbersFit) {
  const Trace ours = TraceFrom("ours", Records(0, 30));
  const Trace other = TraceFrom("other", Records(500, 30));
  const std::string mixed =
      ours.bytes.substr(0, ours.ends[1]) + other.frame(2) + ours.bytes.substr(ours.ends[2]);
  const ReadBack back = ReadAll(mixed);
  ASSERT_TRUE(back.status.ok()) << back.status.message();
  std::vector<IoRecord> expected = Records(0, 10);
  for (const IoRecord& io : Records(20, 10)) expected.push_back(io);
  EXPECT_EQ(back.records, expected);
  ASSERT_FALSE(back.losses.empty());
  EXPECT_EQ(back.losses[0].reason(), proto::DAMAGED_INPUT);
  EXPECT_EQ(back.losses[0].count(), 10);
  EXPECT_THAT(back.losses[0].detail(), HasSubstr("another trace"));
}

// After a power cut: what an older file left in the same place follows the last frame written.
TEST(TraceIdentityTest, WhatAnOlderFileLeftBehindTheLastFrameIsNotTaken) {
  const Trace ours = TraceFrom("ours", Records(0, 20), /*finish=*/false);
  const Trace older = TraceFrom("older", Records(500, 40));
  const ReadBack back = ReadAll(ours.bytes + older.bytes.substr(older.ends[2]));
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records, Records(0, 20));
  EXPECT_FALSE(back.summary_before) << "the summary at the end is the older file's";
  EXPECT_FALSE(back.summary);
  EXPECT_GT(back.lost_events, 0);
}

TEST(TraceIdentityTest, ACopyHasAnotherIdAndTheSameHeaderTheSame) {
  proto::Header header = TestHeader();
  const std::string id = NewTraceId(header);
  EXPECT_EQ(id.size(), 16);
  EXPECT_EQ(NewTraceId(header), id);
  header.set_trace_id(id);
  EXPECT_NE(NewTraceId(header), id);
  // The first eight bytes, lowest first.
  header.set_trace_id(std::string("\x01\x02\x00\x00\x00\x00\x00\x80zzzzzzzz", 16));
  EXPECT_EQ(FrameTrace(header), 0x8000000000000201);
  header.clear_trace_id();
  EXPECT_EQ(FrameTrace(header), 0);
}

TEST(TraceIdentityTest, ADamagedHeaderIsReadFromItsCopyAtTheCostOfNothing) {
  const Trace trace = TraceFrom("ours", Records(0, 10));  // the only copy is behind the summary
  const ReadBack whole = ReadAll(trace.bytes);
  EXPECT_THAT(whole.losses, IsEmpty());
  for (size_t at = 0; at < trace.ends[0]; ++at) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string damaged = trace.bytes;
    damaged[at] = static_cast<char>(~damaged[at]);
    const ReadBack back = ReadAll(damaged);
    ASSERT_TRUE(back.status.ok()) << back.status.message();
    EXPECT_EQ(back.records, Records(0, 10));
    EXPECT_TRUE(back.summary_before);
    if (back.losses.empty()) continue;  // a bit that zstd ignores
    EXPECT_EQ(back.losses[0].reason(), proto::DAMAGED_INPUT);
    EXPECT_EQ(back.losses[0].from_bytes(), 0);
    EXPECT_EQ(back.losses[0].to_bytes(), trace.ends[0]);
    EXPECT_THAT(back.losses[0].detail(), HasSubstr("copy in the frame at byte"));
    EXPECT_EQ(back.lost_events, 0);
  }
}

TEST(TraceIdentityTest, ARecordingThatDiedHasCopiesOfItsHeader) {
  const Trace trace = TraceFrom("ours", Records(0, 30), /*finish=*/false);
  std::string damaged = trace.bytes;
  for (uint64_t at = 0; at < trace.ends[1]; ++at) damaged[at] = 'x';  // header and first frame
  const ReadBack back = ReadAll(damaged);
  ASSERT_TRUE(back.status.ok()) << back.status.message();
  EXPECT_EQ(back.records, Records(10, 20));
  EXPECT_EQ(back.losses[0].count(), 10);
  // Its beginning cut off.
  const ReadBack cut = ReadAll(trace.bytes.substr(trace.ends[1]));
  ASSERT_TRUE(cut.status.ok()) << cut.status.message();
  EXPECT_EQ(cut.records, Records(10, 20));
  EXPECT_EQ(cut.losses[0].count(), 10);
}

TEST(TraceIdentityTest, WithoutACopyOrFromAPipeADamagedHeaderIsRefused) {
  const Trace trace = TraceFrom("ours", Records(0, 30));
  std::string damaged = trace.bytes;
  damaged[trace.ends[0] - 1] = static_cast<char>(~damaged[trace.ends[0] - 1]);
  EXPECT_EQ(ReadAll(std::make_unique<DripSource>(damaged, 100)).status.code(),
            StatusCode::kDataLoss);
  EXPECT_EQ(ReadAll(damaged.substr(0, trace.ends[1])).status.code(), StatusCode::kDataLoss);
}

TEST(TraceIdentityTest, FramesWithACopyAreFew) {
  EXPECT_FALSE(HasHeaderCopy(1));
  EXPECT_TRUE(HasHeaderCopy(2));
  EXPECT_FALSE(HasHeaderCopy(3));
  EXPECT_TRUE(HasHeaderCopy(4));
  EXPECT_FALSE(HasHeaderCopy(6));
  EXPECT_TRUE(HasHeaderCopy(uint64_t{1} << 40));
}

TEST(TraceIdentityTest, RecoveryRestoresADamagedHeader) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string damaged_path = std::string(folder) + "/damaged.tape";
  const std::string path = std::string(folder) + "/recovered.tape";
  std::string bytes = TraceFrom("ours", Records(0, 30)).bytes;
  bytes[20] = static_cast<char>(~bytes[20]);
  std::ofstream(damaged_path, std::ios::binary) << bytes;
  const Result<RecoverReport> report = RecoverTrace(damaged_path, path);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->whole);
  EXPECT_TRUE(report->harmlessly_damaged);
  const ReadBack back = ReadAll(*ReadFile(path));
  EXPECT_EQ(back.records, Records(0, 30));
  EXPECT_THAT(back.losses, IsEmpty());
}

// A trace of three writes whose header needs `needs`, with an op that is none of ours.
std::string NewerTrace(const std::vector<std::string>& needs, uint32_t version, bool newer_op,
                       bool newer_message = false) {
  MemorySink sink;
  FrameWriter frames(&sink, 1);
  proto::Message header;
  *header.mutable_header() = TestHeader();
  header.mutable_header()->set_tool_version("7.0");
  header.mutable_header()->set_format_version(version);
  for (const std::string& one : needs) header.mutable_header()->add_needs(one);
  std::string content;
  AppendDelimited(header, &content);
  EXPECT_TRUE(frames.Write(content).ok());
  proto::Message start;
  start.mutable_frame()->set_number(1);
  proto::Message batch;
  EncodeBatch(Records(0, 3), batch.mutable_batch());
  if (newer_op) batch.mutable_batch()->mutable_op()->set_planes("\x01\x63\x01");
  content.clear();
  AppendDelimited(start, &content);
  AppendDelimited(batch, &content);
  if (newer_message) {
    proto::Message newer;
    newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(2000, "of tomorrow");
    AppendDelimited(newer, &content);
  }
  EXPECT_TRUE(frames.Write(content).ok());
  start.mutable_frame()->set_number(2);
  start.mutable_frame()->set_first_record(3);
  proto::Message last;
  last.mutable_summary()->set_records(3);
  content.clear();
  AppendDelimited(start, &content);
  AppendDelimited(last, &content);
  EXPECT_TRUE(frames.Write(content).ok());
  EXPECT_TRUE(frames.WriteSeekTable().ok());
  return sink.bytes();
}

TEST(TraceFeaturesTest, ATraceThatNeedsWhatIsNotKnownIsRefusedByName) {
  const Status refused = ReadAll(NewerTrace({"folded times"}, 2, false)).status;
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(refused.message(), HasSubstr("needs \"folded times\""));
  EXPECT_THAT(refused.message(), HasSubstr("written by blktape 7.0"));
  const Status newer = ReadAll(NewerTrace({}, 3, false)).status;
  EXPECT_EQ(newer.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(newer.message(), HasSubstr("format version 3"));
}

TEST(TraceFeaturesTest, ATraceThatNeedsNothingIsReadWhateverOfTheTwoVersionsItSays) {
  for (const uint32_t version : {1u, 2u}) {
    const ReadBack back = ReadAll(NewerTrace({}, version, false));
    ASSERT_TRUE(back.status.ok());
    EXPECT_EQ(back.records, Records(0, 3));
  }
}

TEST(TraceFeaturesTest, AWriterNamesAHigherVersionOnlyWhereAReaderMustKnowMore) {
  const auto version = [](const std::vector<std::string>& needs) {
    proto::Header header = TestHeader();
    for (const std::string& one : needs) header.add_needs(one);
    MemorySink sink;
    EXPECT_TRUE(TraceWriter::ToSink(&sink, header).ok());
    MemorySource source(sink.bytes());
    FrameDecompressor decompressor;
    FrameWalk walk;
    const auto bytes = std::as_bytes(std::span(sink.bytes()));
    while (walk.Advance(bytes) == FrameWalk::State::kNeedMore) {
    }
    std::string_view content = *decompressor.Decompress(bytes, walk.content_bytes());
    proto::Message message;
    EXPECT_TRUE(TakeDelimited(&content, &message));
    return message.header().format_version();
  };
  EXPECT_EQ(version({}), 1);
  EXPECT_EQ(version({"folded times"}), 2);
}

TEST(TraceFeaturesTest, AnOperationOfTomorrowCostsItsOwnRecordsAlone) {
  const ReadBack back = ReadAll(NewerTrace({}, 1, true));
  ASSERT_TRUE(back.status.ok());
  ASSERT_THAT(back.records, SizeIs(2));
  EXPECT_EQ(back.records[0], Records(0, 1)[0]);
  EXPECT_EQ(back.records[1].queue_ns, 3000);
  ASSERT_THAT(back.losses, SizeIs(1));
  EXPECT_EQ(back.losses[0].reason(), proto::UNDECODABLE_EVENT);
  EXPECT_EQ(back.losses[0].count(), 1);
  EXPECT_EQ(back.lost_events, 1);
}

TEST(TraceFeaturesTest, RecoveryLosesNoOperationOfTomorrowAndCallsNothingWholeThatItDoesNotKnow) {
  const char* const folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder) + "/newer.tape";
  std::ofstream(path, std::ios::binary) << NewerTrace({}, 1, /*newer_op=*/true);
  const Result<RecoverReport> refused = RecoverTrace(path, std::string(folder) + "/none.tape");
  EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
  EXPECT_FALSE(std::filesystem::exists(std::string(folder) + "/none.tape"));

  std::ofstream(path, std::ios::binary) << NewerTrace({}, 1, false, /*newer_message=*/true);
  const Result<RecoverReport> report = RecoverTrace(path, std::string(folder) + "/kept.tape");
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->unknown_messages, 1);
  EXPECT_FALSE(report->whole);
  EXPECT_EQ(report->records, 3);
}

}  // namespace
}  // namespace blktape
