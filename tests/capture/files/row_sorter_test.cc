#include "capture/files/row_sorter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/io_record.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;

class RowSorterTest : public ::testing::Test {
 protected:
  static IoRecord At(std::optional<int64_t> ns, uint64_t bytes = 512) {
    IoRecord io;
    io.issue_ns = ns;
    io.bytes = bytes;
    return io;
  }
  RowSorter Sorter(size_t window) {
    return RowSorter(window, [this](const IoRecord& io, std::string_view process) {
      left_.push_back(io);
      names_.emplace_back(process);
    });
  }
  std::vector<int64_t> Times() const {
    std::vector<int64_t> times;
    for (const IoRecord& io : left_) times.push_back(io.issue_ns.value_or(-1));
    return times;
  }

  std::vector<IoRecord> left_;
  std::vector<std::string> names_;
};

TEST_F(RowSorterTest, RowsWithinTheWindowLeaveInOrderOfArrival) {
  RowSorter sorter = Sorter(3);
  for (const int64_t ns : {30, 10, 20, 50, 40}) EXPECT_TRUE(sorter.Add(At(ns), "p"));
  sorter.Flush();
  EXPECT_THAT(Times(), ElementsAre(10, 20, 30, 40, 50));
  EXPECT_EQ(sorter.sorted(), 3u);  // 10 and 20 behind 30, 40 behind 50
}

TEST_F(RowSorterTest, ARowEarlierThanWhatHasLeftIsNotTaken) {
  RowSorter sorter = Sorter(2);
  for (const int64_t ns : {10, 20, 30}) EXPECT_TRUE(sorter.Add(At(ns), ""));  // 10 leaves
  EXPECT_TRUE(sorter.Add(At(10), ""));                                        // as early: may stay
  EXPECT_FALSE(sorter.Add(At(9), ""));
}

TEST_F(RowSorterTest, EqualAndUnknownTimesKeepTheOrderOfTheFile) {
  RowSorter sorter = Sorter(10);
  sorter.Add(At(10, 1), "");
  sorter.Add(At(std::nullopt, 2), "");
  sorter.Add(At(10, 3), "");
  sorter.Flush();
  EXPECT_EQ(left_[0].bytes, 1u);
  EXPECT_EQ(left_[1].bytes, 2u);
  EXPECT_EQ(left_[2].bytes, 3u);
}

TEST_F(RowSorterTest, AnEndFindsTheLastBeginOfItsId) {
  RowSorter sorter = Sorter(10);
  sorter.Begin(7, At(10), "a");
  sorter.Begin(7, At(20), "b");  // used again: the first never ended
  EXPECT_TRUE(sorter.End(7, 25, 5));
  EXPECT_FALSE(sorter.End(7, 26, 0));  // nobody waits
  sorter.Flush();
  EXPECT_EQ(left_[0].complete_ns, std::nullopt);
  EXPECT_EQ(left_[1].complete_ns, 25);
  EXPECT_EQ(left_[1].error, 5u);
  EXPECT_THAT(names_, ElementsAre("a", "b"));
  EXPECT_EQ(sorter.unended(), 1u);
}

TEST_F(RowSorterTest, WhatLeavesBeforeItsEndIsCounted) {
  RowSorter sorter = Sorter(1);
  sorter.Begin(1, At(10), "");
  sorter.Begin(2, At(20), "");  // the first leaves
  EXPECT_FALSE(sorter.End(1, 30, 0));
  EXPECT_TRUE(sorter.End(2, 30, 0));
  sorter.Flush();
  EXPECT_EQ(sorter.unended(), 1u);
}

}  // namespace
}  // namespace blktape
