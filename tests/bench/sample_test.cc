#include "bench/sample.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/segments.h"
#include "base/units.h"
#include "bench/piece.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

constexpr uint64_t kIos = 8'000;
constexpr int64_t kEveryNs = 1'000'000;

// Reads of 4 KiB, one each millisecond that takes 100 us; every second record is of another device.
class SampleTest : public ::testing::Test {
 protected:
  SampleTest() {
    piece_.trace_path = ::testing::TempDir() + "/" +
                        ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".tape";
    piece_.device = "sda";
    std::filesystem::remove(piece_.trace_path);
    proto::Header header;
    header.add_devices()->set_name("sda");
    header.add_devices()->set_name("sdb");
    const auto writer = TraceWriter::Create(piece_.trace_path, header);
    EXPECT_TRUE(writer.ok());
    for (uint64_t i = 0; i < 2 * kIos; ++i) {
      IoRecord io;
      io.device = static_cast<uint32_t>(i % 2);
      io.op = Op::kRead;
      io.lba = Lba(i * 8);
      io.bytes = 4096;
      io.queue_ns = io.issue_ns = static_cast<int64_t>(i / 2) * kEveryNs;
      io.complete_ns = *io.issue_ns + 100'000;
      EXPECT_TRUE((*writer)->Write(io).ok());
    }
    EXPECT_TRUE((*writer)->Finish(proto::Summary()).ok());
    const auto whole = CutPiece(piece_, stop_);
    EXPECT_TRUE(whole.ok());
    whole_ = *whole;
    const auto cut = CutWindows(piece_, whole_, stop_);
    EXPECT_TRUE(cut.ok());
    cut_ = *cut;
    // Each window waits and works as long as its number says, and takes a second.
    WindowRuns runs;
    for (size_t i = 0; i < cut_.segment_of.size(); ++i) {
      const auto cost = static_cast<double>(i + 1);
      runs.waited.segments.push_back(
          {.wait_ns = cost, .busy_ns = cost, .span_ns = kNanosPerSecond});
      runs.max.segments.push_back({.wait_ns = cost, .busy_ns = cost, .span_ns = 0});
    }
    runs_ = {runs};
  }

  TracePiece piece_;
  std::atomic<bool> stop_ = false;
  Segmentation whole_;
  WindowCut cut_;
  std::vector<WindowRuns> runs_;
};

TEST_F(SampleTest, SegmentsAreCutIntoWindowsOfAHundredThatSomebodyWaitsFor) {
  ASSERT_EQ(whole_.segments.size(), 4u);
  EXPECT_EQ(cut_.fine.segments.size(), kIos / kForegroundPerWindow);
  for (size_t i = 0; i < cut_.fine.segments.size(); ++i) {
    EXPECT_EQ(cut_.fine.segments[i].foreground, 100u) << i;
    EXPECT_EQ(cut_.segment_of[i], i / 20);
  }
  EXPECT_EQ(cut_.fine.records, kIos) << "those of the other device are not replayed";
}

TEST_F(SampleTest, ABudgetThatHoldsAllNeedsNoSample) {
  const auto all = DrawSample(cut_, runs_, 80 * kNanosPerSecond, 1);
  ASSERT_TRUE(all.ok());
  EXPECT_FALSE(all->has_value());
}

TEST_F(SampleTest, ABudgetTooSmallIsRefusedWithTheLeast) {
  // Two windows of each of four segments, 1.5 s and 0.2 s each: 13.6 s.
  const auto none = DrawSample(cut_, runs_, 13 * kNanosPerSecond, 1);
  EXPECT_EQ(none.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(none.status().message().find("13.6 s"), std::string::npos) << none.status().message();
}

TEST_F(SampleTest, TwoWindowsOfEachStratumAreDrawnByTheSeedAlone) {
  const auto sample = DrawSample(cut_, runs_, 45 * kNanosPerSecond, 7);
  ASSERT_TRUE(sample.ok() && sample->has_value());
  // 1.7 s a window: three strata of two windows in each of four segments make 40.8 s.
  EXPECT_EQ((*sample)->design.strata.size(), 12u);
  EXPECT_EQ((*sample)->windows.size(), 24u);
  uint64_t windows = 0;
  for (const SampleDesign::Stratum& stratum : (*sample)->design.strata) windows += stratum.windows;
  EXPECT_EQ(windows, cut_.segment_of.size());
  const std::set<size_t> distinct((*sample)->windows.begin(), (*sample)->windows.end());
  EXPECT_EQ(distinct.size(), 24u);
  EXPECT_EQ((*DrawSample(cut_, runs_, 45 * kNanosPerSecond, 7))->windows, (*sample)->windows);
  EXPECT_NE((*DrawSample(cut_, runs_, 45 * kNanosPerSecond, 8))->windows, (*sample)->windows);
}

TEST_F(SampleTest, WhatIsReplayedIsTheWindowsWithTheirLeadInsWithoutTheTimeBetween) {
  const auto drawn = DrawSample(cut_, runs_, 45 * kNanosPerSecond, 7);
  ASSERT_TRUE(drawn.ok() && drawn->has_value());
  const Sample& sample = **drawn;
  const auto segmentation = CutSample(piece_, cut_, sample, stop_);
  ASSERT_TRUE(segmentation.ok());
  EXPECT_TRUE(segmentation->has_gaps);
  EXPECT_EQ(segmentation->foreground(), 24u * 100);
  const auto stream = OpenSample(piece_, sample.blocks);
  ASSERT_TRUE(stream.ok());
  IoRecord io;
  uint64_t ordinal = 0;
  uint64_t records = 0;
  std::optional<int64_t> before_ns;
  std::optional<uint64_t> before;
  while (*(*stream)->Next(&io, &ordinal)) {
    ++records;
    EXPECT_EQ(io.device, 0u);
    if (!before_ns) {
      EXPECT_EQ(*io.queue_ns, 0);
    } else {
      // A millisecond after the one before it, or 100 ms after that had completed.
      const int64_t gap_ns = ordinal == *before + 2 ? kEveryNs : 100'000 + kWindowGapNs;
      EXPECT_EQ(*io.queue_ns - *before_ns, gap_ns);
    }
    EXPECT_EQ(*io.complete_ns - *io.queue_ns, 100'000);
    before_ns = io.queue_ns;
    before = ordinal;
  }
  EXPECT_EQ(records, segmentation->records);
  // Half a window leads in to each block, unless the block begins with the trace.
  const size_t leads = sample.blocks.size() - (sample.windows[0] == 0 ? 1 : 0);
  EXPECT_EQ(records, 24u * 100 + leads * 50);
}

TEST(SampleOfDiscardsTest, KeepsWhatItReadsAndAWindowLeftOutWroteAgain) {
  TracePiece piece;
  piece.trace_path = ::testing::TempDir() + "/discards.tape";
  std::filesystem::remove(piece.trace_path);
  proto::Header header;
  header.add_devices()->set_name("sda");
  const auto writer = TraceWriter::Create(piece.trace_path, header);
  ASSERT_TRUE(writer.ok());
  std::vector<IoRecord> written;
  const auto write = [&](Op op, uint64_t block, uint64_t blocks) {
    IoRecord io;
    io.op = op;
    io.lba = Lba(block * 8);
    io.bytes = blocks * 4096;
    io.queue_ns = io.issue_ns = static_cast<int64_t>(written.size()) * kEveryNs;
    io.complete_ns = *io.queue_ns + 100'000;
    EXPECT_TRUE((*writer)->Write(io).ok());
    written.push_back(io);
  };
  write(Op::kDiscard, 100, 100);
  write(Op::kWrite, 140, 20);
  write(Op::kRead, 150, 1);
  ASSERT_TRUE((*writer)->Finish(proto::Summary()).ok());

  const std::atomic<bool> stop = false;
  const auto kept = [&](const std::vector<WindowBlock>& blocks) {
    const auto found = FindKeptBlocks(piece, blocks, stop);
    EXPECT_TRUE(found.ok());
    return *found;
  };
  const WindowBlock first = {.first_ordinal = 0, .end_ordinal = 1};
  const WindowBlock last = {.first_ordinal = 2, .end_ordinal = 3};
  IoRecord discard = written[0];
  EXPECT_TRUE(kept({first, last})->LeaveOut(&discard));
  EXPECT_EQ(discard.lba, Lba(100 * 8));
  EXPECT_EQ(discard.bytes, 50u * 4096);
  discard = written[0];
  EXPECT_TRUE(kept({{.first_ordinal = 0, .end_ordinal = 3}})->LeaveOut(&discard));
  EXPECT_EQ(discard.bytes, written[0].bytes) << "the whole writes it itself";
  EXPECT_EQ(kept({last}), nullptr) << "no discard is replayed";
}

}  // namespace
}  // namespace blktape
