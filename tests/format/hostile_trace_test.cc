// Traces made to hurt: checksums hold, and what the messages say is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/column_codec.h"
#include "format/frame_writer.h"
#include "format/loss.h"
#include "format/message_stream.h"
#include "format/process_dictionary.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kRecords = 3;

// A trace of one device and three writes; `edit` changes its summary, `extra` are messages between
// the records and it.
std::string TraceWith(const std::function<void(proto::Summary*)>& edit,
                      const std::vector<proto::Message>& extra = {}) {
  MemorySink sink;
  FrameWriter frames(&sink, 1);
  std::string content;
  proto::Message header;
  *header.mutable_header() = TestHeader(1);
  header.mutable_header()->set_format_version(kFormatVersion);
  AppendDelimited(header, &content);
  EXPECT_TRUE(frames.Write(content).ok());

  content.clear();
  proto::Message start;
  start.mutable_frame()->set_number(1);
  AppendDelimited(start, &content);
  proto::Message batch;
  EncodeBatch(std::vector<IoRecord>{Write4k(1000, 0), Write4k(2000, 8), Write4k(3000, 16)},
              batch.mutable_batch());
  AppendDelimited(batch, &content);
  for (const proto::Message& one : extra) AppendDelimited(one, &content);
  EXPECT_TRUE(frames.Write(content).ok());

  content.clear();
  start.mutable_frame()->set_number(2);
  start.mutable_frame()->set_first_record(kRecords);
  AppendDelimited(start, &content);
  proto::Message last;
  proto::Summary* const summary = last.mutable_summary();
  summary->set_records(kRecords);
  summary->set_first_ns(1000);
  summary->set_last_ns(3000);
  summary->set_late_ns_max(0);
  summary->set_completed(kRecords);
  (*summary->mutable_records_by_op())[static_cast<uint32_t>(Op::kWrite)] = kRecords;
  proto::DeviceExtent* const extent = summary->add_extents();
  extent->set_records(kRecords);
  extent->set_end_bytes(12'288);
  edit(summary);
  AppendDelimited(last, &content);
  EXPECT_TRUE(frames.Write(content).ok());
  EXPECT_TRUE(frames.WriteSeekTable().ok());
  return sink.bytes();
}

struct HostileSummary {
  const char* reason;
  std::function<void(proto::Summary*)> edit;
};

class HostileSummaryTest : public testing::TestWithParam<HostileSummary> {};

TEST(HostileTraceTest, ASummaryThatAgreesIsBelieved) {
  const ReadBack back = ReadAll(TraceWith([](proto::Summary*) {}));
  ASSERT_TRUE(back.status.ok()) << back.status.message();
  EXPECT_TRUE(back.summary_before);
  EXPECT_THAT(back.losses, IsEmpty());
}

TEST_P(HostileSummaryTest, IsDamageAndNobodyGetsIt) {
  const ReadBack back = ReadAll(TraceWith(GetParam().edit));
  ASSERT_TRUE(back.status.ok()) << back.status.message();
  EXPECT_THAT(back.records, SizeIs(kRecords));
  EXPECT_FALSE(back.summary_before);
  EXPECT_FALSE(back.summary);
  ASSERT_THAT(back.losses, SizeIs(1));
  EXPECT_EQ(back.losses[0].reason(), proto::DAMAGED_INPUT);
  EXPECT_THAT(back.losses[0].detail(), HasSubstr(GetParam().reason));
  EXPECT_GT(back.losses[0].from_bytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileSummaryTest,
    testing::Values(
        HostileSummary{
            "an extent of a device that the header does not have",
            [](proto::Summary* summary) { summary->mutable_extents(0)->set_device(0xFFFFFFFF); }},
        HostileSummary{
            "two extents of one device",
            [](proto::Summary* summary) { *summary->add_extents() = summary->extents(0); }},
        HostileSummary{
            "an extent that ends before it begins",
            [](proto::Summary* summary) { summary->mutable_extents(0)->set_begin_bytes(1 << 20); }},
        HostileSummary{"extents of more records than the trace has",
                       [](proto::Summary* summary) {
                         summary->mutable_extents(0)->set_records(kRecords + 1);
                       }},
        HostileSummary{"extents of fewer records than the trace has",
                       [](proto::Summary* summary) {
                         summary->mutable_extents(0)->set_records(kRecords - 1);
                       }},
        HostileSummary{
            "operations of more records than the trace has",
            [](proto::Summary* summary) { (*summary->mutable_records_by_op())[7] = UINT64_MAX; }},
        HostileSummary{"more completions than records",
                       [](proto::Summary* summary) { summary->set_completed(kRecords + 1); }},
        HostileSummary{"a last arrival before the first",
                       [](proto::Summary* summary) { summary->set_last_ns(999); }},
        HostileSummary{"a disorder below zero",
                       [](proto::Summary* summary) { summary->set_late_ns_max(-1); }},
        HostileSummary{
            "an index of a frame beyond the end of the file",
            [](proto::Summary* summary) { summary->add_frames()->set_offset_bytes(1 << 20); }},
        HostileSummary{
            "an index of a frame beyond the last record",
            [](proto::Summary* summary) { summary->add_frames()->set_first_record(kRecords + 1); }},
        HostileSummary{"an index of frames that is not in order",
                       [](proto::Summary* summary) {
                         summary->add_frames()->set_offset_bytes(20);
                         summary->add_frames()->set_offset_bytes(10);
                       }},
        HostileSummary{"an index of a frame whose contents end before they begin",
                       [](proto::Summary* summary) {
                         summary->add_frames()->mutable_contents()->set_begin_lba(1);
                       }},
        HostileSummary{"an index of a frame whose contents end before they begin",
                       [](proto::Summary* summary) {
                         summary->add_frames()->mutable_contents()->set_least_bytes(1);
                       }},
        HostileSummary{"more names of processes than a trace may have",
                       [](proto::Summary* summary) {
                         for (uint32_t i = 0; i <= ProcessDictionary::kMaxNames; ++i) {
                           summary->add_process_names("x");
                         }
                       }}));

TEST(HostileTraceTest, NamesOfProcessesAreBoundedInNumberAndLength) {
  proto::Message names;
  names.mutable_process_names()->set_first_id(ProcessDictionary::kMaxNames - 1);
  names.mutable_process_names()->add_names(std::string(1000, 'a'));
  names.mutable_process_names()->add_names("one too many");
  const std::string trace = TraceWith([](proto::Summary*) {}, {names});
  const auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(trace));
  ASSERT_TRUE(reader.ok());
  IoRecord io;
  for (Result<bool> more = true; more.ok() && *more;) more = (*reader)->Next(&io);
  EXPECT_EQ((*reader)->ProcessName(ProcessDictionary::kMaxNames - 1),
            std::string(ProcessDictionary::kMaxNameBytes, 'a'));
  EXPECT_EQ((*reader)->ProcessName(ProcessDictionary::kMaxNames), "");
}

TEST(HostileTraceTest, ALossNamesNoDeviceAndNoReasonThatThereIsNot) {
  proto::Message loss;
  loss.mutable_loss()->set_reason(static_cast<proto::LossReason>(1'000'000));
  loss.mutable_loss()->set_device(1);
  loss.mutable_loss()->set_count(5);
  const ReadBack back = ReadAll(TraceWith([](proto::Summary*) {}, {loss}));
  ASSERT_THAT(back.losses, SizeIs(1));
  EXPECT_EQ(back.losses[0].reason(), proto::LOSS_REASON_UNSPECIFIED);
  EXPECT_FALSE(back.losses[0].has_device());
  EXPECT_EQ(back.lost_events, 5);
}

// protobuf takes the last of several kinds, so a batch may come first in a message of another kind.
TEST(HostileTraceTest, OnlyABatchAloneMayBeLarge) {
  proto::Message batch;
  batch.mutable_batch()->set_count(0);
  std::string message = batch.SerializeAsString();
  proto::Message names;
  while (names.ByteSizeLong() <= kMaxSmallMessageBytes) {
    names.mutable_process_names()->add_names(std::string(60'000, 'n'));
  }
  message += names.SerializeAsString();
  std::string delimited;
  for (size_t left = message.size(); left != 0; left >>= 7) {
    delimited += static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
  }
  delimited += message;
  std::string_view from = delimited;
  proto::Message taken;
  EXPECT_FALSE(TakeDelimited(&from, &taken));
}

std::string LengthOf(size_t bytes) {
  std::string prefix;
  for (size_t left = bytes; left != 0; left >>= 7) {
    prefix += static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
  }
  return prefix;
}

bool Taken(const std::string& message) {
  const std::string delimited = LengthOf(message.size()) + message;
  std::string_view from = delimited;
  proto::Message taken;
  return TakeDelimited(&from, &taken);
}

TEST(HostileTraceTest, AMessageOfVeryManyFieldsIsNotParsed) {
  // Two bytes each, some 200 once parsed: empty devices of a header.
  const auto devices = [](int count) {
    proto::Message message;
    for (int i = 0; i < count; ++i) message.mutable_header()->add_devices();
    return message.SerializeAsString();
  };
  EXPECT_TRUE(Taken(devices(4096)));
  EXPECT_FALSE(Taken(devices(300'000)));
  // Fields that nobody knows (15, of two bytes), in a batch too.
  std::string unknown;
  for (int i = 0; i < 300'000; ++i) unknown += "\x78\x01";
  EXPECT_FALSE(Taken(unknown));
  EXPECT_FALSE(Taken("\x12" + LengthOf(unknown.size()) + unknown));
  // The largest that a writer makes: a whole dictionary and a whole index.
  proto::Message summary;
  for (int i = 0; i < 65'536; ++i) summary.mutable_summary()->add_process_names("name");
  for (int i = 0; i < 8192; ++i) {
    auto* const frame = summary.mutable_summary()->add_frames();
    frame->set_offset_bytes(i + 1);
    frame->set_first_ns(i + 1);
    frame->set_first_record(i + 1);
  }
  EXPECT_TRUE(Taken(summary.SerializeAsString()));
}

TEST(HostileTraceTest, AHeaderHasNoMoreDevicesThanTheFormatAllows) {
  MemorySink sink;
  EXPECT_TRUE(TraceWriter::ToSink(&sink, TestHeader(kMaxDevices)).ok());
  EXPECT_FALSE(TraceWriter::ToSink(&sink, TestHeader(kMaxDevices + 1)).ok());
  proto::Message header;
  *header.mutable_header() = TestHeader(kMaxDevices + 1);
  header.mutable_header()->set_format_version(1);
  std::string content;
  AppendDelimited(header, &content);
  MemorySink hostile;
  FrameWriter frames(&hostile, 1);
  ASSERT_TRUE(frames.Write(content).ok());
  const Status status = ReadAll(hostile.bytes()).status;
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("4097 devices"));
}

TEST(HostileTraceTest, AnEmptyMessageIsNone) { EXPECT_FALSE(Taken("")); }

TEST(HostileTraceTest, AFrameHasNoMoreMessagesThanTheFormatAllows) {
  proto::Message loss;
  loss.mutable_loss()->set_count(1);
  // With the batch before them one too many.
  std::vector<proto::Message> losses(kMaxFrameMessages, loss);
  const ReadBack back = ReadAll(TraceWith([](proto::Summary*) {}, losses));
  ASSERT_FALSE(back.losses.empty());
  const auto damage = std::ranges::find_if(
      back.losses, [](const proto::Loss& one) { return one.reason() == proto::DAMAGED_INPUT; });
  ASSERT_NE(damage, back.losses.end());
  EXPECT_THAT(damage->detail(), HasSubstr("more messages"));
}

TEST(HostileTraceTest, AFrameHasNoMoreRecordsThanTheFormatAllows) {
  proto::Message batch;
  EncodeBatch(std::vector<IoRecord>(kMaxBatchRecords - kRecords + 1), batch.mutable_batch());
  const ReadBack back = ReadAll(TraceWith([](proto::Summary*) {}, {batch}));
  EXPECT_THAT(back.records, SizeIs(kRecords));
  ASSERT_FALSE(back.losses.empty());
  EXPECT_THAT(back.losses[0].detail(), HasSubstr("more records"));
}

TEST(HostileTraceTest, OfTheTextOfALossOrAMarkSoMuchIsKept) {
  proto::Message loss;
  loss.mutable_loss()->set_detail(std::string(kMaxDetailBytes + 1, 'l'));
  const ReadBack back = ReadAll(TraceWith([](proto::Summary*) {}, {loss}));
  ASSERT_THAT(back.losses, SizeIs(1));
  EXPECT_EQ(back.losses[0].detail(), std::string(kMaxDetailBytes, 'l'));
}

TEST(HostileTraceTest, ReasonsOfLossesInASummaryAreBoundedToo) {
  const ReadBack back = ReadAll(TraceWith([](proto::Summary* summary) {
    for (int i = 0; i < 1000; ++i) {
      proto::LossTotal* const total = summary->add_losses();
      total->set_reason(static_cast<proto::LossReason>(1'000'000 + i));
      total->set_count(1);
    }
  }));
  ASSERT_TRUE(back.summary);
  const LossTally tally = TallyOf(*back.summary);
  EXPECT_THAT(tally.by_reason(), SizeIs(1));
  EXPECT_EQ(tally.lost_events(), 1000);
}

// As a recovery may have to: sizes of which no two are alike, and never a record between them.
TEST(HostileTraceTest, AWriterEndsFramesOfSizesToo) {
  MemorySink sink;
  const auto writer = TraceWriter::ToSink(&sink, TestHeader(1));
  ASSERT_TRUE(writer.ok());
  constexpr uint64_t kSizes = 4'000'000;  // some 40 MiB: more than a frame may hold
  for (uint64_t i = 1; i <= kSizes; ++i) (*writer)->CountQueued(Op::kWrite, i << 20, i);
  ASSERT_TRUE((*writer)->Finish({}).ok());
  Observed observed;
  const auto reader =
      TraceReader::FromSource(std::make_unique<MemorySource>(sink.bytes()), &observed);
  ASSERT_TRUE(reader.ok());
  IoRecord io;
  const Result<bool> more = (*reader)->Next(&io);
  ASSERT_TRUE(more.ok());
  EXPECT_FALSE(*more);
  uint64_t sizes = 0;
  for (const proto::QueuedSizes& one : observed.queued_sizes) {
    sizes += static_cast<uint64_t>(one.entries_size());
  }
  EXPECT_EQ(sizes, kSizes);
  EXPECT_THAT(observed.losses, IsEmpty());
}

}  // namespace
}  // namespace blktape
