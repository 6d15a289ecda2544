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
  // The third begins earlier than the second: a recorder that could not order its records.
  for (const int64_t first_ns : {10, 30, 20, 40}) {
    builder.Add(static_cast<uint64_t>(first_ns), first_ns, 0);
  }
  proto::Summary summary;
  builder.Store(&summary);
  EXPECT_EQ(FindFrame(summary, 5)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 10)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 25)->first_ns(), 10);
  EXPECT_EQ(FindFrame(summary, 39)->first_ns(), 20);
  EXPECT_EQ(FindFrame(summary, 99)->first_ns(), 40);
  EXPECT_EQ(FindFrame(proto::Summary(), 99), nullptr);
}

}  // namespace
}  // namespace blktape
