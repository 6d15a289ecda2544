#include "analysis/details.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/address_heat_map.h"
#include "analysis/in_flight.h"
#include "analysis/latency_histogram.h"
#include "analysis/profile.h"
#include "analysis/timeline.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMs = kNanosPerMilli;

IoRecord Io(Op op, uint64_t offset_bytes, uint64_t bytes, int64_t queue_ns, int64_t issue_ns,
            int64_t complete_ns) {
  IoRecord io;
  io.op = op;
  io.lba = Lba(offset_bytes / kSectorBytes);
  io.bytes = bytes;
  io.queue_ns = queue_ns;
  io.issue_ns = issue_ns;
  io.complete_ns = complete_ns;
  return io;
}

class DetailsTest : public ::testing::Test {
 protected:
  DetailsTest() : builder_({.details = true}) {}

  Profile Finish() {
    proto::Header header;
    header.add_devices()->set_name("sda");
    header.add_devices()->set_name("sdb");
    return builder_.Finish(header, proto::Summary(),
                           [](uint32_t id) { return "process" + std::to_string(id); });
  }
  // Steps of 1 ms, for a trace of that length.
  void ExpectLength(int64_t length_ns) {
    proto::Summary summary;
    summary.set_first_ns(0);
    summary.set_last_ns(length_ns);
    builder_.Expect(summary);
  }

  ProfileBuilder builder_;
};

TEST_F(DetailsTest, TheTimelineCountsByArrivalAndSpreadsTimeAtTheDrive) {
  ExpectLength(1'999 * kMs);  // fewer than 2,000 steps of 1 ms
  builder_.Add(Io(Op::kRead, 0, 4096, 0, 0, 2 * kMs));
  builder_.Add(Io(Op::kWrite, 8192, 8192, 0, kMs / 2, kMs));
  builder_.Add(Io(Op::kRead, 4096, 4096, 3 * kMs, 3 * kMs, 3 * kMs + 100'000));
  IoRecord flush = Io(Op::kFlush, 0, 0, 3 * kMs, 3 * kMs + 500'000, 4 * kMs);
  flush.lba.reset();
  builder_.Add(flush);
  const Profile profile = Finish();
  const Timeline& timeline = profile.details->timeline;
  ASSERT_EQ(timeline.step_ns, kMs);
  ASSERT_EQ(timeline.steps.size(), 4u);
  const Timeline::Step& first = timeline.steps[0];
  EXPECT_EQ(first.reads, 1u);
  EXPECT_EQ(first.writes, 1u);
  EXPECT_EQ(first.read_bytes, 4096u);
  EXPECT_EQ(first.write_bytes, 8192u);
  EXPECT_DOUBLE_EQ(first.reads_per_s, 1'000);  // one in a millisecond
  EXPECT_DOUBLE_EQ(first.write_bytes_per_s, 8'192'000);
  EXPECT_DOUBLE_EQ(first.depth_mean, 1.5);  // the read all the time, the write half of it
  EXPECT_DOUBLE_EQ(first.busy_share, 1);
  EXPECT_DOUBLE_EQ(first.share_4k.value(), 0.5);
  EXPECT_EQ(first.d2c_max_ns, 2 * kMs);
  EXPECT_FALSE(first.d2c_p99_ns.has_value());  // of two samples
  EXPECT_DOUBLE_EQ(timeline.steps[1].depth_mean, 1);
  EXPECT_FALSE(timeline.steps[1].share_4k.has_value());
  EXPECT_DOUBLE_EQ(timeline.steps[2].busy_share, 0);
  EXPECT_EQ(timeline.steps[3].others, 1u);
  EXPECT_DOUBLE_EQ(timeline.steps[3].depth_mean, 0.1);  // a flush is no data request
  EXPECT_DOUBLE_EQ(timeline.steps[3].busy_share, 0.6);  // 100 us and 500 us
}

TEST_F(DetailsTest, TheLatencyMapHoldsEachReadAndWriteOnce) {
  ExpectLength(1'999 * kMs);
  builder_.Add(Io(Op::kRead, 0, 4096, 0, 0, 1'024));  // half a power of two: 1024 to 1536 ns
  builder_.Add(Io(Op::kRead, 0, 4096, 0, 0, 1'535));
  builder_.Add(Io(Op::kRead, 0, 4096, 0, 0, 1'536));  // 1536 to 2048 ns
  builder_.Add(Io(Op::kRead, 0, 4096, kMs, kMs, kMs + 2'048));
  const Profile profile = Finish();
  const Timeline::LatencyMap& map = profile.details->timeline.d2c_map;
  EXPECT_THAT(map.row_from_ns, ElementsAre(1'024, 1'536, 2'048, 3'072));
  ASSERT_EQ(map.columns, 2u);
  EXPECT_THAT(map.counts, ElementsAre(2, 1, 0, 0, 0, 1));
}

TEST_F(DetailsTest, SeeksAreFromTheEndOfOneToTheBeginningOfTheNextOnTheDevice) {
  builder_.Add(Io(Op::kRead, 0, 4096, 0, 30, 50));
  builder_.Add(Io(Op::kRead, 4096, 4096, 1, 10, 50));  // issued before the first
  IoRecord other = Io(Op::kRead, 4096, 4096, 2, 35, 50);
  other.device = 1;
  builder_.Add(other);
  builder_.Add(Io(Op::kWrite, 12'288, 4096, 3, 40, 50));
  const Profile profile = Finish();
  const Details::Seeks& q2q =
      profile.details->q2q;  // 0, then 4096: sequential, then 4096 B further
  EXPECT_EQ(q2q.count, 2u);
  EXPECT_EQ(q2q.sequential, 1u);
  EXPECT_EQ(q2q.forward[12], 1u);  // 2^12
  EXPECT_DOUBLE_EQ(q2q.mean_bytes, 2'048);
  const Details::Seeks& d2d =
      profile.details->d2d;  // ends at 8192, back to 0, ends at 4096, on to 12288
  EXPECT_EQ(d2d.count, 2u);
  EXPECT_EQ(d2d.sequential, 0u);
  EXPECT_EQ(d2d.backward[13], 1u);
  EXPECT_EQ(d2d.forward[13], 1u);
  EXPECT_DOUBLE_EQ(d2d.mean_bytes, 8'192);
}

TEST_F(DetailsTest, InterleavedRunsAreEachFollowed) {
  // Two runs in turn: neither continues the request before it, both continue their own.
  for (uint64_t i = 0; i < 10; ++i) {
    const auto at_ns = static_cast<int64_t>(i) * 100;
    builder_.Add(Io(Op::kRead, i * 4096, 4096, at_ns, at_ns, at_ns + 10));
    builder_.Add(Io(Op::kRead, (1 << 20) + i * 4096, 4096, at_ns + 50, at_ns + 50, at_ns + 60));
  }
  const Profile profile = Finish();
  EXPECT_EQ(profile.sequential_device, 0u);
  EXPECT_EQ(profile.details->continues_stream, 18u);
}

TEST_F(DetailsTest, BurstsAreTheFullestWindowAgainstTheMean) {
  for (const int64_t ms : {0, 0, 0, 500, 1'500, 1'999}) {
    builder_.Add(Io(Op::kRead, 0, 4096, ms * kMs, ms * kMs, ms * kMs + (ms == 1'999 ? kMs : 10)));
  }
  const Profile profile = Finish();  // 6 I/Os in 2 s
  const auto& bursts = profile.details->bursts;
  EXPECT_EQ(bursts[0].window_ns, kMs);
  EXPECT_EQ(bursts[0].peak_ios, 3u);
  EXPECT_DOUBLE_EQ(bursts[0].mean_ios, 0.003);
  EXPECT_EQ(bursts[1].peak_ios, 4u);
  EXPECT_DOUBLE_EQ(bursts[1].mean_ios, 3);
  EXPECT_EQ(bursts[2].peak_ios, 6u);
  EXPECT_EQ(profile.details->inter_arrival.count(), 5u);
  EXPECT_EQ(profile.details->inter_arrival.max_ns(), 1'000 * kMs);
}

TEST_F(DetailsTest, LatencyIsSplitBySizeFlagAndProcess) {
  IoRecord small = Io(Op::kRead, 0, 4096, 0, 10, 110);
  small.process = 3;
  small.flags = kFlagSync | kFlagMeta;
  builder_.Add(small);
  IoRecord large = Io(Op::kWrite, 0, 4097, 0, 20, 320);
  large.process = 4;
  builder_.Add(large);
  large.bytes = 8192;
  builder_.Add(large);
  const Profile profile = Finish();
  const Details& details = *profile.details;
  ASSERT_EQ(details.by_size.size(), 2u);
  EXPECT_EQ(details.by_size[0].to_bytes, 4096u);
  EXPECT_EQ(details.by_size[0].reads.d2c.count(), 1u);
  EXPECT_EQ(details.by_size[0].reads.q2d.max_ns(), 10);
  EXPECT_EQ(details.by_size[1].to_bytes, 8192u);  // above 4096, up to 8192
  EXPECT_EQ(details.by_size[1].writes.d2c.count(), 2u);
  EXPECT_EQ(details.by_size[1].writes.q2c.max_ns(), 320);
  ASSERT_EQ(details.by_flag.size(), 3u);
  EXPECT_EQ(details.by_flag[0].name, "sync");
  EXPECT_EQ(details.by_flag[1].name, "meta");
  EXPECT_EQ(details.by_flag[2].name, "none");
  EXPECT_EQ(details.by_flag[2].all.d2c.count(), 2u);
  ASSERT_EQ(details.by_process.size(), 2u);
  EXPECT_EQ(details.by_process[0].name, "process4");
  EXPECT_EQ(details.by_process[1].all.d2c.max_ns(), 100);
}

TEST_F(DetailsTest, WithoutThemTheyAreNull) {
  EXPECT_EQ(ProfileBuilder()
                .Finish(proto::Header(), proto::Summary(), [](uint32_t) { return std::string(); })
                .details,
            nullptr);
}

TEST(AddressMapTest, RowsAndColumnsDoubleAsTheyMust) {
  AddressMapBuilder builder(0, 0);
  builder.Add(0, 0, /*write=*/false);
  builder.Add(0, 65'536, /*write=*/true);       // the second row of 64 KiB
  builder.Add(0, 64 * 65'536, /*write=*/true);  // beyond 64 rows: of 128 KiB now
  const AddressHeatMap map = builder.Finish(0);
  EXPECT_EQ(map.row_bytes, 131'072u);
  EXPECT_EQ(map.rows, 33u);
  EXPECT_EQ(map.columns, 1u);
  EXPECT_EQ(map.reads[0], 1u);
  EXPECT_EQ(map.writes[0], 1u);
  EXPECT_EQ(map.writes[32], 1u);
}

TEST(AddressMapTest, WhatIsKnownBeforeIsFineAtOnce) {
  // 1 GiB in 64 rows is 16 MiB each; the last byte is in the last row.
  AddressMapBuilder builder(1'000 * kMs, uint64_t{1} << 30);
  builder.Add(999 * kMs, (uint64_t{1} << 30) - 1, /*write=*/false);
  const AddressHeatMap map = builder.Finish(1'000 * kMs);
  EXPECT_EQ(map.row_bytes, 16u << 20);
  EXPECT_EQ(map.rows, 64u);
  EXPECT_EQ(map.column_ns, 10 * kMs);
  EXPECT_EQ(map.columns, 100u);
  EXPECT_EQ(map.reads.back(), 1u);
}

TEST(DepthClassesTest, CountWhatIsIssuedAtADepthAndHowLongItLasts) {
  InFlight in_flight;
  in_flight.Add(0, 100);    // alone
  in_flight.Add(10, 40);    // the second
  in_flight.Add(20, 30);    // the third
  in_flight.Add(200, 210);  // alone again
  const auto& classes = in_flight.FinishClasses();
  EXPECT_EQ(classes[0].issued, 2u);
  EXPECT_EQ(classes[1].issued, 1u);
  EXPECT_EQ(classes[2].issued, 1u);             // 3 to 4
  EXPECT_EQ(classes[0].time_ns, 10 + 60 + 10);  // 0 to 10, 40 to 100, 200 to 210
  EXPECT_EQ(classes[1].time_ns, 10 + 10);       // 10 to 20, 30 to 40
  EXPECT_EQ(classes[2].time_ns, 10);            // 20 to 30
}

TEST(ProfileFiguresTest, AlignmentSequenceAndIdleCaps) {
  ProfileBuilder builder;
  builder.Add(Io(Op::kRead, 0, 4096, 0, 0, 10 * kMs));
  builder.Add(Io(Op::kRead, 4096, 512, 40 * kMs, 40 * kMs, 41 * kMs));  // idle for 30 ms before it
  builder.Add(Io(Op::kWrite, 4608, 4096, 40 * kMs, 42 * kMs, 43 * kMs));  // sequential, not aligned
  builder.Add(Io(Op::kWrite, 8192, 8192, 45 * kMs, 45 * kMs, 46 * kMs));  // idle for 2 ms before it
  const Profile profile =
      builder.Finish(proto::Header(), proto::Summary(), [](uint32_t) { return std::string(); });
  EXPECT_EQ(profile.sequential_device, 2u);
  EXPECT_EQ(profile.sequential_reads, 1u);
  EXPECT_EQ(profile.aligned_reads.requests, 2u);
  EXPECT_EQ(profile.aligned_reads.begin_4k, 2u);
  EXPECT_EQ(profile.aligned_reads.whole_4k, 1u);
  EXPECT_EQ(profile.aligned_writes.begin_4k, 1u);
  EXPECT_EQ(profile.aligned_writes.whole_4k, 1u);
  EXPECT_EQ(profile.idle_caps[0].cap_ns, kMs);
  EXPECT_EQ(profile.idle_caps[0].cut_ns, 29 * kMs + kMs);
  EXPECT_EQ(profile.idle_caps[1].cut_ns, 20 * kMs);  // cap of 10 ms
  EXPECT_EQ(profile.idle_caps[2].cut_ns, 5 * kMs);   // 25 ms
  EXPECT_EQ(profile.idle_caps[3].cut_ns, 0);         // 100 ms
}

TEST(ProfileFiguresTest, WritersAreTheKernelsWorkersAndTheFirstProgram) {
  Profile profile;
  const auto add = [&profile](const char* name, uint64_t write_bytes) {
    profile.processes.emplace_back().name = name;
    profile.processes.back().writes.bytes = write_bytes;
  };
  EXPECT_EQ(WritersOf(profile).program, nullptr);
  add("kworker/u8:1", 700);
  add("", 900);  // nobody knows who
  add("cp", 300);
  add("dpkg", 400);
  add("kworker/1:0", 50);
  EXPECT_EQ(WritersOf(profile).kernel_bytes, 750u);
  EXPECT_EQ(WritersOf(profile).program->name, "dpkg");
}

TEST(ProfileFiguresTest, LossesAndMarksHaveTheirPlace) {
  ProfileBuilder builder;
  builder.Add(Io(Op::kRead, 0, 4096, 1'000, 1'000, 9'000));
  proto::Loss loss;
  loss.set_reason(proto::RING_OVERRUN);
  loss.set_count(5);
  loss.set_from_ns(3'000);
  loss.set_to_ns(4'000);
  builder.OnLoss(loss);
  proto::Mark mark;
  mark.set_kind(proto::SUSPEND);
  mark.set_at_ns(5'000);
  builder.OnMark(mark);
  mark.set_at_ns(INT64_MAX);  // no time at all
  builder.OnMark(mark);
  const Profile profile =
      builder.Finish(proto::Header(), proto::Summary(), [](uint32_t) { return std::string(); });
  ASSERT_EQ(profile.events.size(), 2u);
  EXPECT_EQ(profile.events[0].from_ns, 2'000);
  EXPECT_EQ(profile.events[0].to_ns, 3'000);
  EXPECT_EQ(profile.events[1].from_ns, 4'000);
  EXPECT_EQ(profile.events[1].what, "the machine slept");
}

TEST(LatencyRowsTest, CountsAreExactWhetherSamplesAreKeptOrNot) {
  LatencyHistogram few;
  for (const int64_t ns : {1'024, 1'151, 1'152, 5'000}) few.Add(ns);
  const auto rows = few.Rows();
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front().from_ns, 1'024);
  EXPECT_EQ(rows.front().to_ns, 1'152);  // an eighth of 1,024 further
  EXPECT_EQ(rows.front().count, 2u);
  EXPECT_DOUBLE_EQ(rows.front().share_slower, 0.5);
  EXPECT_EQ(rows[1].count, 1u);
  EXPECT_EQ(rows.back().from_ns, 4'608);  // 4,096 and one eighth
  EXPECT_EQ(rows.back().count, 1u);
  EXPECT_DOUBLE_EQ(rows.back().share_slower, 0);
  LatencyHistogram many;
  for (uint64_t i = 0; i < LatencyHistogram::kExactSamples; ++i) many.Merge(few);
  ASSERT_FALSE(many.exact());
  ASSERT_EQ(many.Rows().size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(many.Rows()[i].from_ns, rows[i].from_ns);
    EXPECT_EQ(many.Rows()[i].count, rows[i].count * LatencyHistogram::kExactSamples);
  }
}

}  // namespace
}  // namespace blktape
