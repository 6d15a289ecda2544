#include "capture/blktrace/blktrace_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/capture/blktrace/blktrace_bytes.h"
#include "tests/capture/source/recording_sink.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// blktrace_api.h: what, and category << 16.
constexpr uint64_t kWrite = 2ull << 16;
constexpr uint64_t kRead = 1ull << 16;
constexpr uint64_t kFlush = 4ull << 16;
constexpr uint64_t kSync = 8ull << 16;
constexpr uint64_t kPc = 0x200ull << 16;
constexpr uint64_t kNotify = 0x400ull << 16;
constexpr uint64_t kAhead = 0x800ull << 16;
constexpr uint64_t kMeta = 0x1000ull << 16;
constexpr uint64_t kDiscard = 0x2000ull << 16;
constexpr uint64_t kFua = 0x8000ull << 16;
constexpr uint64_t kWriteZeroes = (1ull << 22) << 16;
constexpr uint64_t kZoneReset = (1ull << 17) << 16;
constexpr uint64_t kQueue = 1;
constexpr uint64_t kIssue = 7;
constexpr uint64_t kComplete = 8;

struct Variant {
  int version;
  bool big_endian;
};

class BlktraceDecoderTest : public ::testing::TestWithParam<Variant> {
 protected:
  BlktraceBytes Bytes() const { return BlktraceBytes(GetParam().version, GetParam().big_endian); }

  RecordingSink Decode(const std::string& bytes, size_t piece = std::string::npos) {
    RecordingSink sink;
    BlktraceDecoder decoder("file", /*stream_base=*/0);
    for (size_t at = 0; at < bytes.size(); at += std::min(piece, bytes.size() - at)) {
      const std::string part = bytes.substr(at, piece);
      decoder.Decode(std::as_bytes(std::span(part)), &sink);
    }
    decoder.Finish(&sink);
    EXPECT_EQ(decoder.bytes(), bytes.size());
    return sink;
  }
  BlockEvent DecodeOne(uint64_t action, uint32_t bytes, std::string payload = "") {
    BlktraceBytes file = Bytes();
    file.Add({.action = action, .bytes = bytes, .payload = std::move(payload)});
    const RecordingSink sink = Decode(file.bytes());
    EXPECT_THAT(sink.events, SizeIs(1));
    return sink.events.empty() ? BlockEvent() : sink.events[0].event;
  }
};

INSTANTIATE_TEST_SUITE_P(All, BlktraceDecoderTest,
                         ::testing::Values(Variant{7, false}, Variant{7, true}, Variant{8, false},
                                           Variant{8, true}),
                         [](const auto& info) {
                           return "V" + std::to_string(info.param.version) +
                                  (info.param.big_endian ? "BigEndian" : "LittleEndian");
                         });

TEST_P(BlktraceDecoderTest, EveryFieldArrives) {
  BlktraceBytes file = Bytes();
  file.Add({.sequence = 17,
            .time_ns = 123'456'789'012,
            .sector = 0x123456789a,
            .action = kComplete | kWrite | kSync | kMeta,
            .bytes = 8192,
            .pid = 4711,
            .device = (259u << 20) | 3,
            .cpu = 5,
            .error = 121});
  const RecordingSink sink = Decode(file.bytes());
  ASSERT_THAT(sink.events, SizeIs(1));
  EXPECT_EQ(sink.events[0].stream, 5u);
  const BlockEvent& event = sink.events[0].event;
  EXPECT_EQ(event.action, BlockAction::kComplete);
  EXPECT_EQ(event.op, Op::kWrite);
  EXPECT_EQ(event.flags, kFlagSync | kFlagMeta);
  EXPECT_EQ(event.sequence, 17u);
  EXPECT_EQ(event.time_ns, 123'456'789'012);
  EXPECT_EQ(event.lba, Lba(0x123456789a));
  EXPECT_EQ(event.bytes, 8192u);
  EXPECT_EQ(event.pid, 4711u);
  EXPECT_EQ(event.device, (259u << 20) | 3);
  EXPECT_EQ(event.cpu, 5u);
  EXPECT_EQ(event.error, 121u);
}

TEST_P(BlktraceDecoderTest, DiscardIsNoWriteThoughItCarriesTheBit) {
  EXPECT_EQ(DecodeOne(kIssue | kWrite | kDiscard | kSync, 4096).op, Op::kDiscard);
}

TEST_P(BlktraceDecoderTest, FlushOfTheDriveIsNoRead) {
  const BlockEvent event = DecodeOne(kIssue | kFlush, 0);
  EXPECT_EQ(event.op, Op::kFlush);
  EXPECT_EQ(event.flags, 0u);
}

TEST_P(BlktraceDecoderTest, FsyncIsAFlushAndAFlaggedWriteIsAWrite) {
  EXPECT_EQ(DecodeOne(kQueue | kWrite | kFlush | kSync, 0).op, Op::kFlush);
  const BlockEvent journal = DecodeOne(kQueue | kWrite | kFlush | kFua | kSync, 4096);
  EXPECT_EQ(journal.op, Op::kWrite);
  EXPECT_EQ(journal.flags, kFlagPreflush | kFlagFua | kFlagSync);
  // Its last completion: a write of nothing.
  EXPECT_EQ(DecodeOne(kComplete | kWrite | kSync, 0).op, Op::kWrite);
}

TEST_P(BlktraceDecoderTest, ReadaheadIsAFlag) {
  EXPECT_EQ(DecodeOne(kQueue | kRead | kAhead, 4096).flags, kFlagReadahead);
}

TEST_P(BlktraceDecoderTest, PassthroughIsMarked) {
  EXPECT_TRUE(DecodeOne(kIssue | kRead | kPc, 36, std::string(6, '\x12')).passthrough);
}

// The action of version 7 is 32 bits wide, and these bits lie above: what is left is a write.
TEST_P(BlktraceDecoderTest, OpsThatOnlyVersionEightNames) {
  const bool named = GetParam().version == 8;
  EXPECT_EQ(DecodeOne(kIssue | kWrite | kWriteZeroes, 65536).op,
            named ? Op::kWriteZeroes : Op::kWrite);
  EXPECT_EQ(DecodeOne(kIssue | kWrite | kZoneReset, 0).op, named ? Op::kZoneReset : Op::kWrite);
}

TEST_P(BlktraceDecoderTest, PayloadsOfSplitAndRemapAreBigEndianAlways) {
  const BlockEvent split =
      DecodeOne(13 | kWrite, 4096, std::string("\x00\x00\x00\x00\x00\x01\x02\x03", 8));
  EXPECT_EQ(split.action, BlockAction::kSplit);
  EXPECT_EQ(split.split_lba, Lba(0x010203));
  const BlockEvent remap = DecodeOne(
      15 | kRead, 4096,
      std::string("\x00\x80\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00", 16));
  EXPECT_EQ(remap.action, BlockAction::kRemap);
  EXPECT_EQ(remap.from_device, (8u << 20) | 1);
  EXPECT_EQ(remap.from_lba, Lba(2048));
}

TEST_P(BlktraceDecoderTest, CgroupIdBeforeThePayloadIsSkipped) {
  const BlockEvent split = DecodeOne(13 | 0x100 | kWrite, 4096,
                                     std::string("CGROUPID\x00\x00\x00\x00\x00\x00\x00\x07", 16));
  EXPECT_EQ(split.action, BlockAction::kSplit);
  EXPECT_EQ(split.split_lba, Lba(7));
}

TEST_P(BlktraceDecoderTest, NotifyRecordsNameProcessesAndAnchorTheClock) {
  BlktraceBytes file = Bytes();
  file.Add({.action = kNotify | 0, .pid = 42, .payload = std::string("jbd2/sda1-8\0\0\0\0\0", 16)});
  file.Add({.time_ns = 5000, .action = kNotify | 1, .payload = file.Words({1'600'000'000, 250})});
  file.Add({.action = kNotify | 2 | 0x100, .payload = "CGROUPIDcfq hello"});
  const RecordingSink sink = Decode(file.bytes());
  EXPECT_THAT(sink.events, IsEmpty());
  ASSERT_THAT(sink.names, SizeIs(1));
  EXPECT_EQ(sink.names[0].first, 42u);
  EXPECT_STREQ(sink.names[0].second.data(), "jbd2/sda1-8");
  ASSERT_THAT(sink.anchors, SizeIs(1));
  EXPECT_EQ(sink.anchors[0].monotonic_ns(), 5000);
  EXPECT_EQ(sink.anchors[0].wall_ns(), 1'600'000'000'000'000'250);
  EXPECT_THAT(sink.losses, IsEmpty());
}

TEST_P(BlktraceDecoderTest, MessagesAreForWhoListens) {
  BlktraceBytes file = Bytes();
  file.Add({.action = kNotify | 2 | 0x100, .pid = 42, .payload = "CGROUPIDone"});
  file.Add({.action = kNotify | 2, .pid = 43, .payload = std::string("two\0\0", 5)});
  file.Add({.action = kNotify | 2, .pid = 44});
  std::vector<std::pair<uint32_t, std::string>> heard;
  RecordingSink sink;
  BlktraceDecoder decoder("file", /*stream_base=*/0);
  decoder.ListenToMessages(
      [&](uint32_t pid, std::string_view text) { heard.emplace_back(pid, text); });
  decoder.Decode(std::as_bytes(std::span(file.bytes())), &sink);
  decoder.Finish(&sink);
  EXPECT_THAT(heard, ElementsAre(Pair(42, "one"), Pair(43, "two"), Pair(44, "")));
  EXPECT_THAT(sink.names, IsEmpty());
  EXPECT_THAT(sink.events, IsEmpty());
}

TEST_P(BlktraceDecoderTest, PlugsAreNoEvents) {
  BlktraceBytes file = Bytes();
  file.Add({.sequence = 1, .action = 9});
  file.Add({.sequence = 2, .action = 10, .payload = std::string(8, '\0')});
  const RecordingSink sink = Decode(file.bytes());
  EXPECT_THAT(sink.events, IsEmpty());
  EXPECT_THAT(sink.losses, IsEmpty());
}

TEST_P(BlktraceDecoderTest, SequenceGapIsALossWithItsPlace) {
  BlktraceBytes file = Bytes();
  file.Add({.sequence = 8, .time_ns = 100, .action = kIssue | kRead, .bytes = 512, .cpu = 1});
  file.Add({.sequence = 0, .time_ns = 110, .action = kNotify | 2, .payload = "x"});
  file.Add({.sequence = 12, .time_ns = 200, .action = kIssue | kRead, .bytes = 512, .cpu = 1});
  file.Add({.sequence = 3, .time_ns = 210, .action = kIssue | kRead, .bytes = 512, .cpu = 2});
  file.Add({.sequence = 13, .time_ns = 220, .action = kIssue | kRead, .bytes = 512, .cpu = 1});
  const RecordingSink sink = Decode(file.bytes());
  EXPECT_THAT(sink.events, SizeIs(4));
  ASSERT_THAT(sink.losses, SizeIs(1));
  EXPECT_EQ(sink.losses[0].reason(), proto::SEQUENCE_GAP);
  EXPECT_EQ(sink.losses[0].count(), 3u);
  EXPECT_EQ(sink.losses[0].from_ns(), 100);
  EXPECT_EQ(sink.losses[0].to_ns(), 200);
  EXPECT_EQ(sink.losses[0].cpu(), 1u);
}

TEST_P(BlktraceDecoderTest, PiecesOfAnySizeGiveTheSameEvents) {
  BlktraceBytes file = Bytes();
  for (uint32_t i = 1; i <= 40; ++i) {
    file.Add({.sequence = i,
              .time_ns = i,
              .sector = i * 8,
              .action = kIssue | kWrite,
              .bytes = 4096,
              .payload = std::string(i % 5, 'p')});
  }
  for (const size_t piece : {1, 3, 47, 48, 64, 100, 1000}) {
    const RecordingSink sink = Decode(file.bytes(), piece);
    ASSERT_THAT(sink.events, SizeIs(40)) << piece;
    EXPECT_EQ(sink.events[39].event.lba, Lba(320));
    EXPECT_THAT(sink.losses, IsEmpty());
  }
}

TEST_P(BlktraceDecoderTest, EndInsideARecordIsTruncatedInput) {
  BlktraceBytes file = Bytes();
  file.Add({.sequence = 1, .action = kIssue | kRead, .bytes = 512});
  const size_t whole = file.bytes().size();
  file.Add({.sequence = 2, .action = kIssue | kRead, .bytes = 512});
  for (size_t cut = whole + 1; cut < file.bytes().size(); ++cut) {
    const RecordingSink sink = Decode(file.bytes().substr(0, cut));
    EXPECT_THAT(sink.events, SizeIs(1));
    ASSERT_THAT(sink.losses, SizeIs(1)) << cut;
    EXPECT_EQ(sink.losses[0].reason(), proto::TRUNCATED_INPUT);
    EXPECT_EQ(sink.losses[0].from_bytes(), whole);
    EXPECT_EQ(sink.losses[0].to_bytes(), cut);
  }
}

TEST_P(BlktraceDecoderTest, GarbageIsReportedByRangeAndDecodingGoesOnAfterIt) {
  BlktraceBytes file = Bytes();
  file.Add({.sequence = 1, .action = kIssue | kRead, .bytes = 512});
  const size_t begin = file.bytes().size();
  file.AddRaw(std::string(1000, '\x5a'));
  const size_t end = file.bytes().size();
  file.Add({.sequence = 2, .action = kComplete | kRead, .bytes = 512});
  file.Add({.sequence = 3, .action = kIssue | kRead, .bytes = 512});
  for (const size_t piece : {size_t{7}, size_t{333}, std::string::npos}) {
    const RecordingSink sink = Decode(file.bytes(), piece);
    EXPECT_THAT(sink.events, SizeIs(3));
    ASSERT_THAT(sink.losses, SizeIs(1));
    EXPECT_EQ(sink.losses[0].reason(), proto::DAMAGED_INPUT);
    EXPECT_EQ(sink.losses[0].from_bytes(), begin);
    EXPECT_EQ(sink.losses[0].to_bytes(), end);
  }
}

TEST_P(BlktraceDecoderTest, DamagedPayloadLengthDoesNotSwallowWhatFollows) {
  BlktraceBytes file = Bytes();
  for (uint32_t i = 1; i <= 20; ++i) {
    file.Add({.sequence = i, .action = kIssue | kRead, .bytes = 512});
  }
  std::string bytes = file.bytes();
  const size_t record = bytes.size() / 20;
  const size_t length_at = GetParam().version == 7 ? 46 : 50;
  bytes[3 * record + length_at] = '\x02';
  const RecordingSink sink = Decode(bytes);
  EXPECT_THAT(sink.events, SizeIs(::testing::Ge(19u)));
}

// Any one byte changed: never a crash, and at most two of the records are lost or wrong. (A time is
// no redundancy: a record of which only a field changed cannot be told from a good one.)
TEST_P(BlktraceDecoderTest, OneFlippedByteCostsTwoRecordsAtMost) {
  BlktraceBytes file = Bytes();
  for (uint32_t i = 1; i <= 10; ++i) {
    file.Add({.sequence = i, .time_ns = i, .sector = i, .action = kIssue | kRead, .bytes = 512});
  }
  const std::string good = file.bytes();
  // Without the first magic nothing is known of the others.
  for (size_t at = 4; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xff);
    const RecordingSink sink = Decode(bytes);
    const auto right =
        std::count_if(sink.events.begin(), sink.events.end(), [](const auto& delivered) {
          return delivered.event.lba.sectors == delivered.event.sequence &&
                 delivered.event.time_ns == static_cast<int64_t>(delivered.event.sequence);
        });
    EXPECT_GE(right, 8) << at;
    EXPECT_TRUE(sink.events.size() >= 9 || !sink.losses.empty()) << at;
  }
}

TEST(LooksLikeBlktrace, KnowsBothVersionsInBothByteOrdersAndNothingElse) {
  const auto looks = [](const std::string& text) {
    return LooksLikeBlktrace(std::as_bytes(std::span(text)));
  };
  EXPECT_TRUE(looks("\x07tae"));
  EXPECT_TRUE(looks("\x08tae"));
  EXPECT_TRUE(looks("eat\x07"));
  EXPECT_TRUE(looks("eat\x08"));
  EXPECT_FALSE(looks("eat\x06"));
  EXPECT_FALSE(looks("eat"));
  EXPECT_FALSE(looks("fio version 2 iolog"));
}

}  // namespace
}  // namespace blktape
