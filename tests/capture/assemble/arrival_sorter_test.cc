#include "capture/assemble/arrival_sorter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/units.h"
#include "capture/assemble/arrival_queue.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ArrivalSorterTest : public ::testing::Test {
 protected:
  // A record is known by its address.
  void Add(uint64_t lba, std::optional<int64_t> queue_ns, int64_t issue_ns) {
    IoRecord record;
    record.lba = Lba(lba);
    record.queue_ns = queue_ns;
    record.issue_ns = issue_ns;
    sorter_.Add(record, /*device=*/0, /*comm=*/{});
  }
  std::vector<uint64_t> Left() {
    std::vector<uint64_t> left;
    left.swap(left_);
    return left;
  }

  std::vector<uint64_t> left_;
  ArrivalSorter sorter_{/*hold_records=*/4,
                        [this](const FinishedIo& io) { left_.push_back(io.record.lba->sectors); }};
};

TEST_F(ArrivalSorterTest, WhatCompletedFirstLeavesInOrderOfArrival) {
  Add(3, 30, 31);
  Add(1, 10, 35);
  Add(2, 20, 21);
  EXPECT_THAT(Left(), IsEmpty());
  sorter_.Release(30);
  EXPECT_THAT(Left(), ElementsAre(1, 2)) << "all that arrived before 30";
  sorter_.Release(31);
  EXPECT_THAT(Left(), ElementsAre(3));
  EXPECT_EQ(sorter_.late(), 0u);
}

TEST_F(ArrivalSorterTest, WhatWasNeverQueuedArrivesWithItsIssue) {
  Add(2, std::nullopt, 20);
  Add(3, 21, 25);
  Add(1, 19, 30);
  sorter_.Release(100);
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3));
}

TEST_F(ArrivalSorterTest, ABatchOfOneStampLeavesInOrderOfIssue) {
  Add(4, 10, 14);
  Add(1, 10, 11);
  Add(3, 10, 13);
  Add(2, 10, 12);
  sorter_.Release(100);
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3, 4));
}

TEST_F(ArrivalSorterTest, WhoComesAfterYoungerOnesLeftLeavesAtOnceAndIsLate) {
  Add(2, 20, 21);
  sorter_.Release(30);
  EXPECT_THAT(Left(), ElementsAre(2));
  Add(1, 10, 11);
  EXPECT_THAT(Left(), ElementsAre(1));
  EXPECT_EQ(sorter_.late(), 1u);
  Add(3, 20, 22);
  EXPECT_THAT(Left(), IsEmpty()) << "of the same moment as what left: not late";
  EXPECT_EQ(sorter_.late(), 1u);
}

TEST_F(ArrivalSorterTest, BeyondItsBoundTheOldestLeaves) {
  for (const uint64_t lba : {5, 4, 3, 2}) {
    Add(lba, static_cast<int64_t>(10 * lba), static_cast<int64_t>(10 * lba));
  }
  EXPECT_THAT(Left(), IsEmpty());
  Add(6, 60, 60);
  EXPECT_THAT(Left(), ElementsAre(2));
  // A place that became free holds the record that came then.
  Add(7, 70, 70);
  sorter_.Release(100);
  EXPECT_THAT(Left(), ElementsAre(3, 4, 5, 6, 7));
}

TEST_F(ArrivalSorterTest, RoundsThatOverlapLeaveInOneOrder) {
  // A round reads the ring of one CPU after the other, each disordered by up to 150, and all that
  // arrived 300 ago leaves.
  std::vector<uint64_t> left;
  ArrivalSorter sorter(/*hold_records=*/10'000,
                       [&](const FinishedIo& io) { left.push_back(io.record.lba->sectors); });
  std::mt19937_64 random(1);
  std::vector<std::pair<int64_t, uint64_t>> added;  // arrival, address
  for (int64_t round_ns = 1000; round_ns < 21'000; round_ns += 100) {
    for (int i = 0; i < 60; ++i) {
      const int64_t in_ring_ns = round_ns + i % 30 * 3;
      IoRecord record;
      record.lba = Lba(added.size());
      record.queue_ns = in_ring_ns - static_cast<int64_t>(random() % 150);
      added.emplace_back(*record.queue_ns, added.size());
      sorter.Add(record, /*device=*/0, /*comm=*/{});
    }
    sorter.Release(round_ns - 300);
  }
  sorter.Release(30'000);
  // Of one moment and without an issue: in the order they came.
  std::stable_sort(added.begin(), added.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<uint64_t> expected;
  for (const auto& [arrival_ns, lba] : added) expected.push_back(lba);
  EXPECT_EQ(left, expected);
  EXPECT_EQ(sorter.late(), 0u);
}

TEST_F(ArrivalSorterTest, ARecordLeavesAsItCame) {
  // One with every field that a finished record can have, its like with none.
  IoRecord full;
  full.op = Op::kWriteZeroes;
  full.flags = kFlagSync | kFlagFua | kFlagAtomic;
  full.lba = Lba(1ULL << 40);
  full.bytes = 1ULL << 33;
  full.queue_ns = 0;
  full.issue_ns = 2;
  full.complete_ns = 3;
  full.error = 5;
  full.pid = 4711;
  full.cpu = 1023;
  full.merged_bios = 6;
  full.prio = 0x6007;
  full.waker = 4712;
  full.since_wake_ns = 7;
  IoRecord bare;
  bare.op = Op::kFlush;
  const ProcessComm comm = {'f', 's', 'y', 'n', 'c'};
  std::vector<FinishedIo> left;
  ArrivalSorter sorter(/*hold_records=*/10, [&](const FinishedIo& io) { left.push_back(io); });
  sorter.Add(full, /*device=*/3, comm);
  sorter.Release(100);
  // In the place of the first.
  sorter.Add(bare, /*device=*/4, /*comm=*/{});
  sorter.Release(100);
  ASSERT_EQ(left.size(), 2u);
  full.device = 3;
  bare.device = 4;
  EXPECT_EQ(left[0].record, full);
  EXPECT_EQ(left[0].comm, comm);
  EXPECT_EQ(left[1].record, bare);
  EXPECT_EQ(left[1].comm, ProcessComm());
  EXPECT_EQ(sorter.late(), 0u);
}

}  // namespace
}  // namespace blktape
