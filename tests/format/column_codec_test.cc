#include "format/column_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/units.h"
#include "format/byte_planes.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;

// All values of `column`, which holds `count`.
std::vector<uint64_t> ValuesOf(const proto::Column& column, size_t count) {
  PlaneReader reader;
  EXPECT_TRUE(reader.Begin(column, count, 8));
  std::vector<uint64_t> values(reader.left());
  reader.Take(values);
  return values;
}

TEST(BytePlanesTest, TheExampleOfTheSpecification) {
  std::vector<IoRecord> records = {Write4k(1'000, 0), Write4k(1'500, 8)};
  proto::RecordBatch batch;
  EncodeBatch(records, &batch);
  EXPECT_EQ(batch.count(), 2);
  EXPECT_EQ(batch.base_ns(), 1'000);
  EXPECT_EQ(batch.op().plane_mask(), 1);
  EXPECT_EQ(batch.op().planes(), "\x01\x01");
  EXPECT_EQ(batch.bytes().plane_mask(), 2);
  EXPECT_EQ(batch.bytes().planes(), "\x10\x10");
  EXPECT_TRUE(batch.has_lba());
  EXPECT_EQ(batch.lba().plane_mask(), 0);
  EXPECT_EQ(batch.lba().planes(), "");
  EXPECT_EQ(batch.queue().plane_mask(), 3);
  EXPECT_EQ(batch.queue().planes(), std::string("\x00\xE8\x00\x03", 4));
  EXPECT_FALSE(batch.has_error());
}

TEST(BytePlanesTest, ZigZagAsProtobufDefinesIt) {
  EXPECT_EQ(ZigZag(0), 0);
  EXPECT_EQ(ZigZag(static_cast<uint64_t>(-1)), 1);
  EXPECT_EQ(ZigZag(1), 2);
  EXPECT_EQ(ZigZag(static_cast<uint64_t>(-2)), 3);
  constexpr auto kMin = static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ZigZag(kMin), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(UnZigZag(ZigZag(kMin)), kMin);
}

TEST(BytePlanesTest, APlaneThatComesAndGoesIsZeroInBetween) {
  PlaneWriter writer;
  writer.Add(std::vector<uint64_t>{1, 0});
  writer.Add(std::vector<uint64_t>{0x020000, 3});
  writer.Add(std::vector<uint64_t>{0});
  EXPECT_EQ(writer.count(), 5u);
  proto::Column column;
  writer.Finish(&column);
  EXPECT_EQ(column.plane_mask(), 0b101u);
  EXPECT_EQ(column.planes(), std::string("\x01\x00\x00\x03\x00"
                                         "\x00\x00\x02\x00\x00",
                                         10));
  EXPECT_EQ(ValuesOf(column, 5), (std::vector<uint64_t>{1, 0, 0x020000, 3, 0}));

  writer.Add(std::vector<uint64_t>{0, 0});
  writer.Finish(&column);
  EXPECT_EQ(column.plane_mask(), 0u) << "nothing is left of the column before";
  EXPECT_EQ(column.planes(), "");
}

TEST(ColumnCodecTest, StreamsOfDifferentOpsAndDevicesDoNotDisturbEachOther) {
  // Two sequential streams, taking turns: every delta but the first of each is zero.
  std::vector<IoRecord> records;
  for (uint64_t i = 0; i < 10; ++i) {
    records.push_back(Write4k(1, 1000 + 8 * i));
    IoRecord read = Write4k(1, 500'000 + 8 * i);
    read.op = Op::kRead;
    records.push_back(read);
  }
  proto::RecordBatch batch;
  EncodeBatch(records, &batch);
  const std::vector<uint64_t> deltas = ValuesOf(batch.lba(), records.size());
  ASSERT_EQ(deltas.size(), 20u);
  EXPECT_EQ(deltas[0], 2'000);
  EXPECT_EQ(deltas[1], 1'000'000);
  EXPECT_EQ(std::count(deltas.begin() + 2, deltas.end(), 0), 18);
}

TEST(ColumnCodecTest, ManyDevicesRoundTrip) {
  std::mt19937_64 random(1);
  std::vector<IoRecord> records;
  for (int i = 0; i < 3000; ++i) records.push_back(AnyRecord(&random, 4'000'000'000));
  proto::RecordBatch batch;
  EncodeBatch(records, &batch);
  std::vector<IoRecord> back;
  ASSERT_TRUE(DecodeBatch(batch, &back).ok());
  EXPECT_EQ(back, records);
}

TEST(ColumnCodecTest, ACompletionBeforeTheFirstArrivalIsTheBase) {
  IoRecord lonely;
  lonely.complete_ns = 700;
  const std::vector<IoRecord> records = {lonely, Write4k(1'000, 0)};
  proto::RecordBatch batch;
  EncodeBatch(records, &batch);
  EXPECT_EQ(batch.base_ns(), 700);
  EXPECT_EQ(batch.complete().planes(), std::string("\x00\xC8", 2)) << "zigzag of 0 and of 100";
  EXPECT_EQ(ValuesOf(batch.queue(), 1), std::vector<uint64_t>{600}) << "zigzag(1000 - 700)";
  std::vector<IoRecord> back;
  ASSERT_TRUE(DecodeBatch(batch, &back).ok());
  EXPECT_EQ(back, records);
}

TEST(ColumnCodecTest, PresentHasABitForEachOfManyRecords) {
  // 130 records, of which those of even number have a pid: their number.
  std::vector<IoRecord> records(130);
  for (uint32_t i = 0; i < 130; i += 2) records[i].pid = i;
  proto::RecordBatch batch;
  EncodeBatch(records, &batch);
  EXPECT_EQ(batch.pid().present(), std::string(16, '\x55') + '\x01');
  std::string planes;
  for (int i = 0; i < 130; i += 2) planes.push_back(static_cast<char>(i));
  EXPECT_EQ(batch.pid().planes(), planes);
  EXPECT_FALSE(batch.has_cpu());
}

TEST(ColumnCodecTest, ABatchKnowsNothingOfTheOneBefore) {
  IoRecord first = Write4k(1'000, 80);
  first.pid = 7;
  first.ordinal = 3;
  BatchEncoder encoder;
  encoder.Add(first);
  proto::RecordBatch batch;
  encoder.Finish(&batch);
  EXPECT_EQ(batch.count(), 1u);
  EXPECT_EQ(batch.base_ordinal(), 3u);
  EXPECT_EQ(encoder.count(), 0u);

  encoder.Add(Write4k(5'000, 8));
  encoder.Finish(&batch);
  EXPECT_EQ(batch.count(), 1u);
  EXPECT_EQ(batch.base_ns(), 5'000);
  EXPECT_EQ(batch.lba().planes(), "\x10") << "zigzag(8): no stream has ended at 88";
  EXPECT_FALSE(batch.has_pid());
  EXPECT_FALSE(batch.has_ordinal());
  EXPECT_EQ(batch.base_ordinal(), 0u);
}

TEST(ColumnCodecTest, TakenAHandfulAtATimeItIsTheSame) {
  std::mt19937_64 random(2);
  std::vector<IoRecord> records;
  for (int i = 0; i < 1000; ++i) records.push_back(AnyRecord(&random, 3));
  proto::RecordBatch batch;
  EncodeBatch(records, &batch);
  BatchDecoder decoder;
  ASSERT_TRUE(decoder.Begin(batch).ok());
  EXPECT_EQ(decoder.devices(), 3u);
  std::vector<IoRecord> back;
  std::vector<IoRecord> some;
  for (decoder.Take(&some); !some.empty(); decoder.Take(&some)) {
    back.insert(back.end(), some.begin(), some.end());
  }
  EXPECT_EQ(back, records);

  ASSERT_TRUE(decoder.Begin(batch).ok());
  decoder.Take(&some);
  EXPECT_EQ(some.front(), records.front());
  decoder.Drop();
  decoder.Take(&some);
  EXPECT_TRUE(some.empty());

  ASSERT_TRUE(decoder.Begin(proto::RecordBatch()).ok());
  EXPECT_EQ(decoder.devices(), 0u);
}

// An op of a newer version hides no record of the others, whatever its device and address.
TEST(ColumnCodecTest, RecordsOfAnUnknownOpAreLeftOutAndCounted) {
  std::vector<IoRecord> records;
  for (uint64_t i = 0; i < 1000; ++i) {
    records.push_back(Write4k(static_cast<int64_t>(i), 100 * i));
    records.back().device = static_cast<uint32_t>(i % 3);
  }
  const auto is_unknown = [](size_t i) { return i % 7 == 0 || (i >= 200 && i < 600); };
  std::vector<IoRecord> known;
  for (size_t i = 0; i < records.size(); ++i) {
    if (!is_unknown(i)) known.push_back(records[i]);
    // Each op has addresses of its own: those of the writes are told as if they were alone.
    if (is_unknown(i)) records[i].op = Op::kRead;
  }
  proto::RecordBatch batch;
  EncodeBatch(records, &batch);
  std::string& ops = *batch.mutable_op()->mutable_planes();
  ASSERT_EQ(ops.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    if (is_unknown(i)) ops[i] = static_cast<char>(200);
  }
  BatchDecoder decoder;
  ASSERT_TRUE(decoder.Begin(batch).ok());
  EXPECT_EQ(decoder.unknown_ops(), records.size() - known.size());
  std::vector<IoRecord> back;
  std::vector<IoRecord> some;
  for (decoder.Take(&some); !some.empty(); decoder.Take(&some)) {
    back.insert(back.end(), some.begin(), some.end());
  }
  EXPECT_EQ(back, known);
}

class ContradictoryBatchTest : public testing::Test {
 protected:
  ContradictoryBatchTest() {
    std::vector<IoRecord> records = {Write4k(1, 8), Write4k(2, 80), Write4k(3, 8)};
    records[1].pid = 4711;
    EncodeBatch(records, &batch_);
  }
  void ExpectRefused(const std::string& reason) {
    std::vector<IoRecord> records;
    const Status status = DecodeBatch(batch_, &records);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(reason));
  }
  proto::RecordBatch batch_;
};

TEST_F(ContradictoryBatchTest, AsItIsItDecodes) {
  std::vector<IoRecord> records;
  EXPECT_TRUE(DecodeBatch(batch_, &records).ok());
}
TEST_F(ContradictoryBatchTest, AMissingByteOfAPlane) {
  batch_.mutable_lba()->mutable_planes()->pop_back();
  ExpectRefused("column lba");
}
TEST_F(ContradictoryBatchTest, APlaneTooMany) {
  batch_.mutable_pid()->set_plane_mask(batch_.pid().plane_mask() | 1u << 7);
  batch_.mutable_pid()->mutable_planes()->push_back('x');
  ExpectRefused("column pid");
}
TEST_F(ContradictoryBatchTest, ABitmapOfAnotherSize) {
  batch_.mutable_pid()->mutable_present()->push_back('\0');
  ExpectRefused("column pid");
}
TEST_F(ContradictoryBatchTest, ABitmapThatNamesRecordsThatAreNotThere) {
  batch_.mutable_pid()->set_present("\x0A");
  ExpectRefused("column pid");
}
TEST_F(ContradictoryBatchTest, ARequiredColumnThatIsAbsent) {
  batch_.clear_bytes();
  ExpectRefused("column bytes");
}
TEST_F(ContradictoryBatchTest, MoreRecordsThanAllowed) {
  batch_.set_count(kMaxBatchRecords + 1);
  ExpectRefused("more than the format allows");
}

}  // namespace
}  // namespace blktape
