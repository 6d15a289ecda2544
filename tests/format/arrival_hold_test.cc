#include "format/arrival_hold.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"

namespace blktape {
namespace {

IoRecord RecordOf(uint64_t bytes, std::optional<int64_t> arrival_ns) {
  IoRecord record;
  record.bytes = bytes;
  record.queue_ns = arrival_ns;
  return record;
}

// What left, in order: "N" for the record of N bytes, or the text of a message.
class ArrivalHoldTest : public testing::Test {
 protected:
  void Record(uint64_t name, int64_t arrival_ns) {
    EXPECT_TRUE(hold_.Push(RecordOf(name, arrival_ns)).ok());
  }
  void Message(const std::string& text, size_t bytes = 1) {
    EXPECT_TRUE(hold_
                    .Push(
                        [this, text] {
                          left_.push_back(text);
                          return OkStatus();
                        },
                        bytes)
                    .ok());
  }
  const std::vector<std::string>& Finished() {
    EXPECT_TRUE(hold_.Finish().ok());
    return left_;
  }

  std::vector<std::string> left_;
  ArrivalHold hold_{[this](const IoRecord& record) {
    left_.push_back(std::to_string(record.bytes));
    return OkStatus();
  }};
};

using Left = std::vector<std::string>;

TEST_F(ArrivalHoldTest, ALateRecordLeavesWhereItArrived) {
  Record(1, 100);
  Record(3, 300);
  Record(4, 400);
  Record(2, 200);
  Record(5, 500);
  EXPECT_EQ(Finished(), (Left{"1", "2", "3", "4", "5"}));
}

TEST_F(ArrivalHoldTest, WhatIsHeldBesideRecordsHasABoundOfItsOwn) {
  Record(1, 100);
  Message("half", ArrivalHold::kMessageBytes / 2);
  Record(2, 200);
  Message("another half", ArrivalHold::kMessageBytes / 2);
  EXPECT_EQ(left_, Left{});
  Message("a byte", 1);
  EXPECT_EQ(left_, (Left{"1", "half"}));
  Record(3, 150);
  Message("half again", ArrivalHold::kMessageBytes / 2 - 1);
  EXPECT_EQ(Finished(), (Left{"1", "half", "3", "2", "another half", "a byte", "half again"}));
}

TEST_F(ArrivalHoldTest, RecordsOfOneTimeStayAsTheyCame) {
  Record(2, 200);
  Record(3, 300);
  Record(22, 200);
  Record(23, 200);
  EXPECT_EQ(Finished(), (Left{"2", "22", "23", "3"}));
}

TEST_F(ArrivalHoldTest, ARecordWithoutATimeStaysBehindTheOneBeforeIt) {
  Record(1, 100);
  EXPECT_TRUE(hold_.Push(RecordOf(7, std::nullopt)).ok());
  Record(3, 300);
  EXPECT_EQ(Finished(), (Left{"1", "7", "3"}));
}

// In a closed loop I/Os are due in another order than that of the plan.
TEST_F(ArrivalHoldTest, AResultKeepsTheOrderOfItsPlan) {
  for (const int64_t due_ns : {300, 100, 200}) {
    IoRecord record = RecordOf(static_cast<uint64_t>(due_ns), due_ns);
    record.ordinal = 0;
    EXPECT_TRUE(hold_.Push(record).ok());
  }
  EXPECT_EQ(Finished(), (Left{"300", "100", "200"}));
}

TEST_F(ArrivalHoldTest, AMessageStaysBehindWhatHadArrived) {
  Record(1, 100);
  Record(3, 300);
  Message("loss");
  Record(2, 200);
  Record(4, 400);
  EXPECT_EQ(Finished(), (Left{"1", "2", "3", "loss", "4"}));
}

// So many others may lie between a record and its place, and one more.
TEST_F(ArrivalHoldTest, ItHoldsThirtyTwoThousandRecords) {
  constexpr int64_t kOthers = 32'767;
  Record(2, 10);
  for (int64_t i = 1; i <= kOthers - 1; ++i) Record(9, 10 + i);
  Record(1, 5);
  EXPECT_EQ(Finished().front(), "1");
  EXPECT_EQ(left_.size(), kOthers + 1);
}

TEST_F(ArrivalHoldTest, OneFurtherOffLeavesAsSoonAsItCan) {
  constexpr int64_t kOthers = 32'768;
  Record(2, 10);
  for (int64_t i = 1; i <= kOthers - 1; ++i) Record(9, 10 + i);
  Record(1, 5);
  EXPECT_EQ(Finished()[0], "2");
  EXPECT_EQ(left_[1], "1");
}

TEST_F(ArrivalHoldTest, AFailureIsTold) {
  ArrivalHold full([](const IoRecord&) { return Status(StatusCode::kUnavailable, "no space"); });
  EXPECT_TRUE(full.Push(RecordOf(1, 1)).ok());
  EXPECT_EQ(full.Finish().message(), "no space");
}

}  // namespace
}  // namespace blktape
