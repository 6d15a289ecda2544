#include "capture/session/record_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IoRecord Io(Op op, uint64_t sector, uint64_t bytes) {
  IoRecord record;
  record.op = op;
  record.lba = Lba(sector);
  record.bytes = bytes;
  return record;
}

TEST(RecordFilterTest, WithoutRulesAllIsKept) {
  const RecordFilter filter;
  EXPECT_TRUE(filter.empty());
  EXPECT_TRUE(filter.Keeps(Io(Op::kRead, 0, 512)));
}

TEST(RecordFilterTest, OnlyTheOperationsNamedAreKept) {
  RecordFilter filter;
  ASSERT_TRUE(filter.AddOps("read,flush").ok());
  EXPECT_TRUE(filter.Keeps(Io(Op::kRead, 0, 512)));
  EXPECT_TRUE(filter.Keeps(Io(Op::kFlush, 0, 0)));
  EXPECT_FALSE(filter.Keeps(Io(Op::kWrite, 0, 512)));
  EXPECT_THAT(filter.Words(), ElementsAre("op=read", "op=flush"));
}

TEST(RecordFilterTest, AnUnknownOperationIsRefusedWithTheListOfThem) {
  RecordFilter filter;
  const Status status = filter.AddOps("read,reed");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("\"reed\""));
  EXPECT_THAT(status.message(), HasSubstr("write_zeroes"));
}

TEST(RecordFilterTest, AnIoThatTouchesTheRangeWithOneSectorIsKept) {
  RecordFilter filter;
  ASSERT_TRUE(filter.AddRange("100-199").ok());
  EXPECT_FALSE(filter.Keeps(Io(Op::kRead, 92, 4096))) << "sectors 92 to 99";
  EXPECT_TRUE(filter.Keeps(Io(Op::kRead, 93, 4096))) << "sectors 93 to 100";
  EXPECT_TRUE(filter.Keeps(Io(Op::kRead, 199, 512)));
  EXPECT_FALSE(filter.Keeps(Io(Op::kRead, 200, 512)));
  EXPECT_TRUE(filter.Keeps(Io(Op::kRead, 0, 1 << 20)));
}

TEST(RecordFilterTest, AnOpenRangeGoesToTheEndOfTheDisk) {
  RecordFilter filter;
  ASSERT_TRUE(filter.AddRange("1000-").ok());
  EXPECT_TRUE(filter.Keeps(Io(Op::kWrite, ~uint64_t{0} / 512, 512)));
  EXPECT_FALSE(filter.Keeps(Io(Op::kWrite, 999, 512)));
}

TEST(RecordFilterTest, AFlushHasNoPlaceAndStays) {
  RecordFilter filter;
  ASSERT_TRUE(filter.AddRange("0-7").ok());
  IoRecord flush;
  flush.op = Op::kFlush;
  EXPECT_TRUE(filter.Keeps(flush));
}

TEST(RecordFilterTest, NonsenseIsNoRange) {
  RecordFilter filter;
  for (const char* range : {"", "-", "12", "9-3", "a-b", "1-2-3", "-5", "1 - 2"}) {
    EXPECT_EQ(filter.AddRange(range).code(), StatusCode::kInvalidArgument) << range;
  }
}

}  // namespace
}  // namespace blktape
