#include "format/frame_index.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace blktape {
namespace {

TEST(FrameIndexTest, AFrameWithoutATimeIsNotListed) {
  FrameIndexBuilder builder;
  builder.Add(100, 5, 0);
  builder.Add(200, std::nullopt, 10);
  builder.Add(300, 7, 10);
  proto::Summary summary;
  builder.Store(&summary);
  ASSERT_EQ(summary.frames_size(), 2);
  EXPECT_EQ(summary.frames(1).offset_bytes(), 300);
  EXPECT_EQ(summary.frames(1).first_record(), 10);
}

TEST(FrameIndexTest, ManyFramesAreListedEverySoMany) {
  FrameIndexBuilder builder;
  constexpr int64_t kFrames = 100'000;
  for (int64_t i = 0; i < kFrames; ++i) {
    builder.Add(static_cast<uint64_t>(i), i, static_cast<uint64_t>(i));
  }
  proto::Summary summary;
  builder.Store(&summary);
  EXPECT_LE(static_cast<size_t>(summary.frames_size()), FrameIndexBuilder::kMaxEntries);
  // 100,000 frames need a stride of 16 to fit into 8,192 entries.
  ASSERT_EQ(summary.frames_size(), kFrames / 16);
  for (int i = 0; i < summary.frames_size(); ++i) EXPECT_EQ(summary.frames(i).first_ns(), 16 * i);
}

TEST(FrameIndexTest, TheFrameToBeginAtMissesNothingOfThatTime) {
  FrameIndexBuilder builder;
  for (const int64_t first_ns : {10, 20, 30}) {
    builder.Add(static_cast<uint64_t>(first_ns), first_ns, 0);
  }
  proto::Summary summary;
  builder.Store(&summary);
  summary.set_late_ns_max(0);
  EXPECT_EQ(FindFrame(summary, 5)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 10)->first_ns(), 10);
  // The last record of the first frame may have arrived at 20 too.
  EXPECT_EQ(FindFrame(summary, 20)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 21)->first_ns(), 20);
  EXPECT_EQ(FindFrame(summary, 99)->first_ns(), 30);
  summary.clear_frames();
  EXPECT_EQ(FindFrame(summary, 99), nullptr);
}

TEST(FrameIndexTest, ARecordMayStandSoFarBehindItsPlace) {
  FrameIndexBuilder builder;
  // The third begins with a late record: a recorder that could not order its records.
  for (const int64_t first_ns : {10, 30, 20, 40}) {
    builder.Add(static_cast<uint64_t>(first_ns), first_ns, 0);
  }
  proto::Summary summary;
  builder.Store(&summary);
  // Nothing tells how far: it is read from the start.
  EXPECT_EQ(FindFrame(summary, 99), nullptr);
  // The second frame may hold a record of 35, so what is wanted from 35 on begins no later.
  summary.set_late_ns_max(15);
  EXPECT_EQ(FindFrame(summary, 35)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 45)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 46)->first_ns(), 20);
  EXPECT_EQ(FindFrame(summary, 55)->first_ns(), 20);
  EXPECT_EQ(FindFrame(summary, 56)->first_ns(), 40);
}

}  // namespace
}  // namespace blktape
