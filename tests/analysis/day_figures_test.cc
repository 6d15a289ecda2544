// Hours of the day, working set and reuse distance, each worked by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "analysis/details.h"
#include "analysis/hours_of_day.h"
#include "analysis/profile.h"
#include "analysis/reuse_distance.h"
#include "analysis/working_set.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {
namespace {

constexpr int64_t kMinute = 60 * kNanosPerSecond;
constexpr int64_t kHour = 60 * kMinute;
constexpr uint64_t kBlock = 4096;

TEST(HoursOfDayTest, AnHourBeginsWithItsFirstNanosecond) {
  HoursOfDay hours;
  hours.Add(13 * kHour, Op::kRead, 512);
  hours.Add(14 * kHour - 1, Op::kRead, 512);
  hours.Add(14 * kHour + 3 * 24 * kHour, Op::kWrite, 4096);
  hours.Add(-1, Op::kFlush, 0);  // the last of 1969
  hours.Add(std::nullopt, Op::kRead, 512);
  EXPECT_EQ(hours.hours[13].reads, 2);
  EXPECT_EQ(hours.hours[13].read_bytes, 1024);
  EXPECT_EQ(hours.hours[14].writes, 1);
  EXPECT_EQ(hours.hours[14].write_bytes, 4096);
  EXPECT_EQ(hours.hours[23].others, 1);
  EXPECT_EQ(hours.unplaced, 1);
}

// 12:30 UTC is 14:30 where the disk was; then the machine slept for three hours, which the trace's
// clock does not know.
TEST(HoursOfDayTest, FollowTheAnchorsOfTheTrace) {
  ProfileBuilder builder({.details = true});
  proto::Header header;
  header.add_devices()->set_name("sda");
  header.set_timezone("+02:00");
  header.mutable_start()->set_monotonic_ns(1'000);
  header.mutable_start()->set_wall_ns(19'000 * 24 * kHour + 12 * kHour + 30 * kMinute);
  builder.Begins(header);
  IoRecord io;
  io.bytes = 512;
  io.lba = Lba(8);
  io.queue_ns = 1'000 + 29 * kMinute;
  builder.Add(io);
  io.queue_ns = 1'000 + 31 * kMinute;
  builder.Add(io);
  proto::ClockAnchor anchor = header.start();
  anchor.set_wall_ns(anchor.wall_ns() + 3 * kHour);
  builder.OnAnchor(anchor);
  io.queue_ns = 1'000 + 32 * kMinute;
  builder.Add(io);
  const Profile profile = builder.Finish(header, std::nullopt, [](uint32_t) { return ""; });
  EXPECT_EQ(profile.details->hours.hours[14].reads, 1);
  EXPECT_EQ(profile.details->hours.hours[15].reads, 1);
  EXPECT_EQ(profile.details->hours.hours[18].reads, 1);
}

TEST(WorkingSetTest, EachWindowCountsItsOwnBlocks) {
  WorkingSetBuilder builder;
  const int64_t start_ns = 77;
  builder.Add(start_ns, 0, 0, 3 * kBlock);                     // minute 0: blocks 0 to 2
  builder.Add(start_ns + kMinute - 1, 0, 2 * kBlock, kBlock);  // again block 2
  builder.Add(start_ns + kMinute, 0, 2 * kBlock, 5 * kBlock);  // minute 1: 2 to 6
  builder.Add(start_ns + 11 * kMinute, 0, 0, 1);               // minute 11: part of 0
  builder.Add(start_ns + 11 * kMinute, 1, 0, kBlock);          // and that of another device
  const WorkingSet set = builder.Finish();
  EXPECT_EQ(set.windows[0].window_ns, kMinute);
  EXPECT_EQ(set.windows[0].windows, 3);
  EXPECT_EQ(set.windows[0].peak_bytes, 5 * kBlock);
  EXPECT_DOUBLE_EQ(set.windows[0].mean_bytes, (3 + 5 + 2) * kBlock / 3.0);
  EXPECT_EQ(set.windows[1].windows, 2);  // ten minutes: blocks 0 to 6; 0 and the other's 0
  EXPECT_EQ(set.windows[1].peak_bytes, 7 * kBlock);
  EXPECT_DOUBLE_EQ(set.windows[1].mean_bytes, (7 + 2) * kBlock / 2.0);
  EXPECT_EQ(set.windows[2].windows, 1);
  EXPECT_EQ(set.windows[2].peak_bytes, 8 * kBlock);
}

TEST(ReuseDistanceTest, CountsOtherBlocksInBetween) {
  ReuseDistanceBuilder builder;
  const auto touch = [&builder](uint64_t block) { builder.Add(0, block * kBlock, kBlock); };
  for (const uint64_t block : {1, 2, 3, 1}) touch(block);  // 1 after 2 and 3
  touch(1);                                                // at once
  for (const uint64_t block : {2, 2, 3, 2}) touch(block);  // after 3, 1; at once; 3 after 1, 2; 3
  const ReuseDistance distance = builder.Finish();
  EXPECT_DOUBLE_EQ(distance.sampled_share, 1);
  EXPECT_EQ(distance.first_touches, 3);
  EXPECT_EQ(distance.again[0], 2);  // none between
  EXPECT_EQ(distance.again[1], 1);  // 1
  EXPECT_EQ(distance.again[2], 3);  // 2 or 3
  // Nine touches: a cache of one block holds two of them, of two blocks three, of four six.
  EXPECT_DOUBLE_EQ(distance.HitShare(0), 2.0 / 9);
  EXPECT_DOUBLE_EQ(distance.HitShare(1), 3.0 / 9);
  EXPECT_DOUBLE_EQ(distance.HitShare(2), 6.0 / 9);
  EXPECT_DOUBLE_EQ(distance.HitShare(ReuseDistance::kClasses - 1), 6.0 / 9);
  EXPECT_EQ(ReuseDistance().HitShare(3), 0);
}

// A loop over 40,000 blocks: each is touched again after the 39,999 others, between 2^15 and 2^16.
// 1,024 are followed, and the places run out many times.
TEST(ReuseDistanceTest, OfASampleEstimates) {
  constexpr uint64_t kBlocks = 40'000;
  ReuseDistanceBuilder builder(/*most=*/1'024);
  for (int round = 0; round < 10; ++round) {
    for (uint64_t block = 0; block < kBlocks; ++block) builder.Add(3, block * kBlock, kBlock);
  }
  const ReuseDistance distance = builder.Finish();
  EXPECT_LE(distance.sampled_share, 1.0 / 32);
  EXPECT_NEAR(static_cast<double>(distance.again[16]), 9.0 * kBlocks, 0.15 * 9 * kBlocks);
}

}  // namespace
}  // namespace blktape
