#include "analysis/profile.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

struct At {
  int64_t queue_ns = 0;
  int64_t issue_ns = 0;
  int64_t complete_ns = 0;
};

IoRecord Io(Op op, uint64_t sector, uint64_t bytes, At at, uint32_t flags = 0) {
  IoRecord io;
  io.op = op;
  io.flags = flags;
  if (op != Op::kFlush) io.lba = Lba(sector);
  io.bytes = bytes;
  io.queue_ns = at.queue_ns;
  io.issue_ns = at.issue_ns;
  io.complete_ns = at.complete_ns;
  return io;
}

Profile ProfileOf(const std::vector<IoRecord>& records, const ProfileOptions& options = {}) {
  ProfileBuilder builder(options);
  for (const IoRecord& record : records) builder.Add(record);
  proto::Summary summary;
  summary.set_records(records.size());
  return builder.Finish(proto::Header(), summary,
                        [](uint32_t id) { return "process-" + std::to_string(id); });
}

TEST(ProfileTest, AnAddressNoDeviceHasDoesNotWrapRoundToOneThatItHas) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  // Sector 2^55 + 8 would wrap round to sector 8; the second ends at 2^64, which is not 0.
  const Profile profile = ProfileOf({Io(Op::kRead, (kMax / 512) + 9, 4096, {0, 0, 1}),
                                     Io(Op::kRead, (kMax / 512) - 7, 4096, {2, 2, 3}),
                                     Io(Op::kRead, 0, 4096, {4, 4, 5})});
  EXPECT_EQ(profile.max_end_bytes, kMax);
  EXPECT_EQ(profile.sequential_any, 0u);
  EXPECT_EQ(ProfileOf({Io(Op::kRead, kMax, 4096, {0, 0, 1})}).max_end_bytes, kMax);
}

TEST(ProfileTest, AnEmptyTraceIsAllZeroesAndWhole) {
  const Profile profile = ProfileOf({});
  EXPECT_EQ(profile.ios, 0u);
  EXPECT_EQ(profile.duration_ns, 0);
  EXPECT_EQ(profile.busy_ns, 0);
  EXPECT_EQ(profile.data.d2c.PercentileNs(kP99), std::nullopt);
  EXPECT_THAT(profile.devices, IsEmpty());
  EXPECT_FALSE(profile.DataMissing());
}

// Waited for: [0, 30] by two reads, [100, 180] by a flagged write and what was derived of it; the
// plain write is not.
TEST(ProfileTest, ForegroundWaitIsTheUnionFromArrivalToCompletion) {
  const Profile profile =
      ProfileOf({Io(Op::kRead, 0, 4096, {0, 5, 20}), Io(Op::kRead, 80, 4096, {10, 15, 30}),
                 Io(Op::kWrite, 160, 4096, {40, 40, 90}),
                 Io(Op::kWrite, 240, 512, {100, 130, 150}, kFlagSync | kFlagPreflush | kFlagFua),
                 Io(Op::kFlush, 0, 0, {151, 151, 180}, kFlagDerived)});
  EXPECT_EQ(profile.wait_ns, 30 + (150 - 100) + (180 - 151));
}

TEST(ProfileTest, ForegroundWaitInAResultLeavesOutTheHostsLateness) {
  IoRecord late = Io(Op::kRead, 0, 4096, {0, 50, 60});  // due at 0; 20 of the 50 are the drive's
  late.ordinal = 0;
  late.backlog_ns = 20;
  IoRecord blocked = Io(Op::kRead, 0, 4096, {100, 140, 160});
  blocked.ordinal = 1;
  blocked.backlog_ns = 40;
  EXPECT_EQ(ProfileOf({late, blocked}).wait_ns, (60 - 30) + (160 - 100));
}

// A closed loop's I/Os are due in another order than that of the plan: one that is due last, then a
// thousand that were due one after the other before it, 10 ns of waiting each.
TEST(ProfileTest, TimesOfAResultDoNotDependOnTheOrderOfItsPlan) {
  std::vector<IoRecord> records = {Io(Op::kRead, 0, 4096, {1'000'000, 1'000'000, 1'000'007})};
  for (int64_t i = 0; i < 1000; ++i) {
    records.push_back(Io(Op::kRead, 0, 4096, {100 * i, 100 * i, 100 * i + 10}));
  }
  for (size_t i = 0; i < records.size(); ++i) records[i].ordinal = i;
  const Profile profile = ProfileOf(records);
  EXPECT_EQ(profile.wait_ns, 7 + 1000 * 10);
  EXPECT_EQ(profile.busy_ns, 7 + 1000 * 10);
  EXPECT_EQ(profile.busy_cut, 0u);
}

TEST(ProfileTest, CountsByOperation) {
  const Profile profile = ProfileOf({
      Io(Op::kRead, 0, 4096, {0, 10, 20}),
      Io(Op::kWrite, 8, 8192, {5, 15, 25}, kFlagSync),
      Io(Op::kWrite, 80, 512, {6, 16, 26}),
      Io(Op::kDiscard, 800, 1 << 20, {7, 17, 27}),
      Io(Op::kFlush, 0, 0, {8, 18, 28}),
      Io(Op::kFlush, 0, 0, {9, 19, 29}, kFlagDerived),
  });
  EXPECT_EQ(profile.ios, 6u);
  EXPECT_EQ(profile.of(Op::kRead).ios, 1u);
  EXPECT_EQ(profile.of(Op::kWrite).ios, 2u);
  EXPECT_EQ(profile.of(Op::kWrite).bytes, 8704u);
  EXPECT_EQ(profile.of(Op::kDiscard).bytes, 1u << 20);
  EXPECT_EQ(profile.of(Op::kFlush).ios, 2u);
  EXPECT_EQ(profile.flushes_derived, 1u);
  EXPECT_EQ(profile.data_requests, 3u);
  // The read, the sync write and the flush that was asked for.
  EXPECT_EQ(profile.foreground.ios, 3u);
  EXPECT_EQ(profile.flushes_asked, std::nullopt);
}

TEST(ProfileTest, LatenciesAreThoseOfBlktrace) {
  const Profile profile = ProfileOf({
      Io(Op::kRead, 0, 4096, {100, 110, 150}),
      Io(Op::kWrite, 8, 4096, {200, 200, 300}),
      Io(Op::kFlush, 0, 0, {300, 300, 5000}),
  });
  // Data requests only; the flush has a row of its own.
  EXPECT_EQ(profile.data.d2c.count(), 2u);
  EXPECT_THAT(profile.data.d2c.mean_ns(), Optional(70.0));
  EXPECT_THAT(profile.data.q2c.max_ns(), Optional(100));
  EXPECT_THAT(profile.data.q2d.max_ns(), Optional(10));
  EXPECT_THAT(profile.latency_of(Op::kFlush).d2c.max_ns(), Optional(4700));
  EXPECT_EQ(profile.all.d2c.count(), 3u);
  EXPECT_EQ(profile.foreground_latency.q2c.count(), 2u);
}

TEST(ProfileTest, BusyIsAUnionAndDepthIsOfDataRequests) {
  const Profile profile = ProfileOf({
      Io(Op::kRead, 0, 4096, {0, 0, 100}),
      Io(Op::kRead, 100, 4096, {50, 50, 150}),
      Io(Op::kRead, 200, 4096, {100, 100, 200}),  // as the first ends: completions come first
      Io(Op::kFlush, 0, 0, {120, 120, 130}),
      Io(Op::kRead, 300, 4096, {1'000'200, 1'000'200, 1'000'300}),
  });
  EXPECT_EQ(profile.busy_ns, 300);
  EXPECT_EQ(profile.duration_ns, 1'000'200);
  EXPECT_EQ(profile.observed_ns, 1'000'300);
  EXPECT_EQ(profile.idle_ns, 1'000'000);
  EXPECT_EQ(profile.depth.max, 2u);
  EXPECT_EQ(profile.depth_all.max, 3u);
  EXPECT_DOUBLE_EQ(profile.depth.mean, 400.0 / 1'000'300);
  EXPECT_DOUBLE_EQ(profile.depth.mean_busy, 400.0 / 300);
  // One gap of exactly 1 ms: it belongs to the class that begins there.
  EXPECT_EQ(profile.idle[4].count, 1u);
  EXPECT_EQ(profile.idle[4].total_ns, 1'000'000);
}

TEST(ProfileTest, SequentialIsToldInOrderOfIssuePerDeviceAndPerOperation) {
  std::vector<IoRecord> records = {
      Io(Op::kRead, 0, 4096, {0, 100, 200}),
      Io(Op::kRead, 16, 4096, {1, 300, 400}),  // issued third: begins where the second ended
      Io(Op::kRead, 8, 4096, {2, 200, 300}),   // issued second: begins where the first ended
      Io(Op::kWrite, 500, 512, {3, 350, 400}),
      Io(Op::kRead, 24, 4096, {4, 400, 500}),  // follows the third, but a write came between
      Io(Op::kRead, 32, 4096, {5, 500, 600}),
      Io(Op::kRead, 900, 4096, {6, 600, 700}),
      Io(Op::kRead, 40, 4096, {7, 700, 800}),
  };
  records[6].device = 1;  // between the last two of device 0
  const Profile profile = ProfileOf(records);
  EXPECT_EQ(profile.sequential_any, 3u);
  EXPECT_EQ(profile.sequential_device, 4u);
  EXPECT_EQ(profile.sequential_direction, 5u);
}

TEST(ProfileTest, QueuedSizesStandBesideThoseOfRequests) {
  ProfileBuilder builder;
  proto::QueuedSizes sizes;
  const auto add = [&sizes](Op op, uint64_t bytes, uint64_t count) {
    proto::QueuedSizes::Entry* entry = sizes.add_entries();
    entry->set_op(static_cast<uint32_t>(op));
    entry->set_bytes(bytes);
    entry->set_count(count);
  };
  add(Op::kRead, 4096, 13);
  add(Op::kWrite, 4096, 7);
  add(Op::kFlush, 0, 5);
  sizes.set_flushes_asked(5);
  sizes.set_flagged_writes(2);
  builder.OnQueuedSizes(sizes);
  builder.OnQueuedSizes(sizes);
  const Profile profile =
      builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string(); });
  EXPECT_EQ(profile.queued_read_sizes.CountOf(4096), 26u);
  EXPECT_EQ(profile.queued_write_sizes.count(), 14u);
  EXPECT_THAT(profile.flushes_asked, Optional(10u));
  EXPECT_THAT(profile.flagged_writes_asked, Optional(4u));
}

TEST(ProfileTest, QueuedSizesOfOneDeviceAreNotKnown) {
  proto::QueuedSizes sizes;
  sizes.set_flushes_asked(5);
  ProfileOptions device;
  device.device = 0;
  ProfileBuilder builder(device);
  builder.OnQueuedSizes(sizes);
  const Profile profile =
      builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string(); });
  EXPECT_FALSE(profile.has_queued_sizes);
  EXPECT_EQ(profile.flushes_asked, std::nullopt);
}

// Three stretches: arrivals 100 to 190, 200 to 290, 300 to 390; the first arrival is 100. A window
// of 50 to 150 after it overlaps the first two.
TEST(ProfileTest, QueuedSizesOfAWindowAreThoseOfTheStretchesItOverlaps) {
  ProfileOptions window;
  window.from_ns = 50;
  window.to_ns = 150;
  ProfileBuilder builder(window);
  for (const int64_t begin_ns : {100, 200, 300}) {
    for (const int64_t at_ns : {begin_ns, begin_ns + 90}) {
      IoRecord io;
      io.queue_ns = at_ns;
      io.bytes = 4096;
      builder.Add(io);
    }
    proto::QueuedSizes sizes;
    sizes.set_flushes_asked(static_cast<uint64_t>(begin_ns));
    builder.OnQueuedSizes(sizes);
  }
  proto::QueuedSizes nowhere;
  nowhere.set_flushes_asked(7);
  builder.OnQueuedSizes(nowhere);
  const Profile profile =
      builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string(); });
  EXPECT_THAT(profile.flushes_asked, Optional(100u + 200u));
  ASSERT_TRUE(profile.queued_stretch);
  EXPECT_EQ(profile.queued_stretch->from_ns, 0);
  EXPECT_EQ(profile.queued_stretch->to_ns, 190);
}

TEST(ProfileTest, LossIsCountedByReasonAndInFlightIsNoLoss) {
  ProfileBuilder builder;
  const auto lose = [&builder](proto::LossReason reason, std::optional<uint64_t> count) {
    proto::Loss loss;
    loss.set_reason(reason);
    if (count) loss.set_count(*count);
    builder.OnLoss(loss);
  };
  lose(proto::RING_OVERRUN, 5);
  lose(proto::RING_OVERRUN, 6);
  lose(proto::IN_FLIGHT_AT_END, 3);
  proto::Summary summary;
  const auto nobody = [](uint32_t) { return std::string(); };
  const Profile profile = builder.Finish(proto::Header(), summary, nobody);
  EXPECT_EQ(profile.lost_events, 11u);
  EXPECT_EQ(profile.losses.at(proto::IN_FLIGHT_AT_END).count, 3u);
  EXPECT_TRUE(profile.finished_cleanly);
  EXPECT_TRUE(profile.DataMissing());

  ProfileBuilder uncountable;
  proto::Loss damage;
  damage.set_reason(proto::DAMAGED_INPUT);
  uncountable.OnLoss(damage);
  const Profile damaged = uncountable.Finish(proto::Header(), summary, nobody);
  EXPECT_EQ(damaged.lost_events, 0u);
  EXPECT_TRUE(damaged.losses_uncountable);
  EXPECT_TRUE(damaged.DataMissing());
}

TEST(ProfileTest, WithoutItsSummaryATraceIsNotWhole) {
  ProfileBuilder builder;
  const Profile profile =
      builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string(); });
  EXPECT_FALSE(profile.finished_cleanly);
  EXPECT_TRUE(profile.DataMissing());
}

TEST(ProfileTest, RecordsThatTheSummaryCountsAndNobodySawAreLost) {
  ProfileBuilder builder;
  builder.Add(Io(Op::kRead, 0, 4096, {0, 1, 2}));
  proto::Summary summary;
  summary.set_records(4);
  const Profile profile =
      builder.Finish(proto::Header(), summary, [](uint32_t) { return std::string(); });
  EXPECT_EQ(profile.lost_events, 3u);
}

TEST(ProfileTest, AbsentTimesAreCountedAndNeverInvented) {
  IoRecord no_issue = Io(Op::kRead, 0, 4096, {100, 0, 300});
  no_issue.issue_ns.reset();
  IoRecord no_completion = Io(Op::kRead, 8, 4096, {200, 210, 0});
  no_completion.complete_ns.reset();
  IoRecord backwards = Io(Op::kRead, 16, 4096, {400, 390, 380});
  IoRecord no_time = Io(Op::kRead, 24, 4096, {});
  no_time.queue_ns.reset();
  no_time.issue_ns.reset();
  no_time.complete_ns.reset();
  const Profile profile = ProfileOf({no_issue, no_completion, backwards, no_time});
  EXPECT_EQ(profile.ios, 4u);
  EXPECT_EQ(profile.without_issue, 2u);
  EXPECT_EQ(profile.without_completion, 2u);
  EXPECT_EQ(profile.negative_times, 2u);
  EXPECT_EQ(profile.data.d2c.count(), 0u);
  EXPECT_EQ(profile.data.q2c.count(), 1u);
  // Bio-based: its queue time stands for the issue.
  EXPECT_EQ(profile.busy_ns, 200);
}

TEST(ProfileTest, AWindowOfTimeAndADeviceCanBeChosen) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 10; ++i) {
    const int64_t at = 1000 + i * 10;
    records.push_back(Io(Op::kRead, i * 8, 4096, {at, at, at + 5}));
    records.back().device = static_cast<uint32_t>(i % 2);
  }
  EXPECT_EQ(ProfileOf(records, {.device = std::nullopt, .from_ns = 20, .to_ns = 50}).ios, 3u);
  EXPECT_EQ(ProfileOf(records, {.device = 1, .from_ns = {}, .to_ns = {}}).ios, 5u);
  EXPECT_EQ(ProfileOf(records, {.device = 1, .from_ns = 20, .to_ns = 50}).ios, 1u);
}

TEST(ProfileTest, TablesTellDevicesAndProcesses) {
  std::vector<IoRecord> records = {
      Io(Op::kRead, 0, 4096, {0, 1, 2}),
      Io(Op::kWrite, 0, 65'536, {10, 11, 12}),
      Io(Op::kRead, 8, 512, {20, 21, 22}),
  };
  records[0].process = 3;
  records[1].process = 1;
  records[1].device = 1;
  ProfileBuilder builder;
  for (const IoRecord& record : records) builder.Add(record);
  proto::Header header;
  header.add_devices()->set_name("sda");
  header.add_devices()->set_name("sdb");
  const Profile profile = builder.Finish(header, std::nullopt,
                                         [](uint32_t id) { return id == 1 ? "postgres" : "cat"; });
  ASSERT_EQ(profile.devices.size(), 2u);
  EXPECT_EQ(profile.devices[0].name, "sda");
  EXPECT_EQ(profile.devices[0].reads.ios, 2u);
  EXPECT_EQ(profile.devices[1].writes.bytes, 65'536u);
  ASSERT_EQ(profile.processes.size(), 3u);
  EXPECT_EQ(profile.processes[0].name, "postgres");
  EXPECT_EQ(profile.processes[1].name, "cat");
  EXPECT_EQ(profile.processes[2].name, "");
}

// Everything again by its definition, without regard to cost.
struct Naive {
  explicit Naive(const std::vector<IoRecord>& records) {
    std::set<int64_t> busy;
    std::set<std::pair<uint32_t, uint64_t>> blocks;
    std::vector<const IoRecord*> data;
    for (const IoRecord& io : records) {
      for (int64_t at = *io.issue_ns; at < *io.complete_ns; ++at) busy.insert(at);
      if (io.op != Op::kRead && io.op != Op::kWrite) continue;
      data.push_back(&io);
      const uint64_t begin = io.lba->bytes();
      for (uint64_t b = begin / 4096; b <= (begin + io.bytes - 1) / 4096; ++b) {
        blocks.insert({io.device, b});
      }
    }
    busy_ns = static_cast<int64_t>(busy.size());
    footprint_bytes = blocks.size() * 4096;
    for (const IoRecord* io : data) {
      uint64_t depth = 0;
      for (const IoRecord* other : data) {
        depth += *other->issue_ns <= *io->issue_ns && *io->issue_ns < *other->complete_ns;
      }
      depth_max = std::max(depth_max, depth);
    }
    std::stable_sort(data.begin(), data.end(), [](const IoRecord* a, const IoRecord* b) {
      return *a->issue_ns < *b->issue_ns;
    });
    for (size_t i = 0; i < data.size(); ++i) {
      for (size_t j = i; j-- > 0;) {
        if (data[j]->device != data[i]->device) continue;
        sequential += data[j]->lba->bytes() + data[j]->bytes == data[i]->lba->bytes();
        break;
      }
    }
  }
  int64_t busy_ns = 0;
  uint64_t footprint_bytes = 0;
  uint64_t depth_max = 0;
  uint64_t sequential = 0;
};

TEST(ProfileTest, AgreesWithTheDefinitionsOnRandomTraces) {
  std::mt19937_64 random(17);
  const auto below = [&random](uint64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    std::vector<IoRecord> records;
    int64_t arrival_ns = 0;
    uint64_t sector = 0;
    for (int i = 0; i < 150; ++i) {
      arrival_ns += below(20);
      const int64_t issue_ns = arrival_ns + below(i % 7 == 0 ? 300 : 3);
      // At least 1 ns long: the naive depth cannot see an interval of no length.
      const int64_t complete_ns = issue_ns + 1 + below(40);
      const Op op = static_cast<Op>(below(4));
      if (below(2) == 0) sector = static_cast<uint64_t>(below(4000));
      const uint64_t bytes = op == Op::kFlush ? 0 : 512 * (1 + random() % 64);
      records.push_back(Io(op, sector, bytes, {arrival_ns, issue_ns, complete_ns}));
      records.back().device = static_cast<uint32_t>(below(2));
      sector += bytes / 512;
    }
    const Naive naive(records);
    const Profile profile = ProfileOf(records);
    EXPECT_EQ(profile.busy_ns, naive.busy_ns);
    EXPECT_EQ(profile.depth.max, naive.depth_max);
    EXPECT_EQ(profile.footprint.bytes, naive.footprint_bytes);
    EXPECT_EQ(profile.sequential_device, naive.sequential);
  }
}

TEST(ProfileTest, OddRecordsNeverHurt) {
  std::mt19937_64 random(23);
  const std::vector<int64_t> times = {std::numeric_limits<int64_t>::min(),
                                      std::numeric_limits<int64_t>::max(),
                                      int64_t{1} << 60,
                                      -(int64_t{1} << 60),
                                      -1,
                                      0,
                                      1,
                                      1'700'000'000'000'000'000};
  const std::vector<uint64_t> sizes = {0, 1, 511, 4096, uint64_t{1} << 40, ~uint64_t{0}};
  for (int round = 0; round < 30; ++round) {
    ProfileBuilder builder;
    for (int i = 0; i < 2000; ++i) {
      IoRecord io;
      const auto time = [&]() -> std::optional<int64_t> {
        switch (random() % 3) {
          case 0:
            return std::nullopt;
          case 1:
            return times[random() % times.size()];
          default:
            return static_cast<int64_t>(random());
        }
      };
      const auto number = [&]() -> std::optional<uint32_t> {
        if (random() % 2 == 0) return std::nullopt;
        return static_cast<uint32_t>(random() >> (random() % 32));
      };
      io.op = static_cast<Op>(random() % kOpCount);
      io.flags = static_cast<uint32_t>(random());
      io.device = random() % 2 == 0 ? 0 : static_cast<uint32_t>(random());
      if (random() % 4 != 0) io.lba = Lba(random() >> (random() % 64));
      // Rarely huge: each such request walks over a million blocks.
      io.bytes = random() % 300 == 0 ? sizes[random() % sizes.size()] : random() % (1 << 20);
      io.queue_ns = time();
      io.issue_ns = time();
      io.complete_ns = time();
      io.error = number();
      io.process = number();
      io.merged_bios = number();
      builder.Add(io);
    }
    const Profile profile =
        builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string("x"); });
    EXPECT_EQ(profile.ios, 2000u);
    EXPECT_GE(profile.busy_ns, 0) << "no overflow";
    EXPECT_GE(profile.idle_ns, 0) << "no overflow";
  }
}

TEST(ProfileTest, LossesThatDoNotFitTheirNumberAreStillLosses) {
  ProfileBuilder builder;
  proto::Loss loss;
  loss.set_reason(proto::RING_OVERRUN);
  loss.set_count(uint64_t{1} << 63);
  builder.OnLoss(loss);
  builder.OnLoss(loss);  // 2 x 2^63 = 2^64, which is 0 in 64 bits
  const Profile profile =
      builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string(); });
  EXPECT_EQ(profile.lost_events, UINT64_MAX);
  EXPECT_TRUE(profile.DataMissing());
}

// 65,601 I/Os arrive at 0 and are issued at the end; then one arrives late that was issued, and
// complete, before all of them: more than the buffer holds.
TEST(ProfileTest, AnIoTooFarOutOfTheOrderOfIssueIsSaidToCountInPartOnly) {
  ProfileBuilder builder;
  IoRecord io;
  io.bytes = 4096;
  io.lba = Lba(0);
  for (int i = 0; i < 2 * 65'536; ++i) {
    io.queue_ns = i;
    io.issue_ns = 1'000'000 + i;
    io.complete_ns = 1'000'001 + i;
    builder.Add(io);
  }
  io.queue_ns = 2 * 65'536;
  io.issue_ns = 2 * 65'536;
  io.complete_ns = 900'000;
  builder.Add(io);
  const Profile profile =
      builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string(); });
  EXPECT_EQ(profile.busy_cut, 1u);
}

// 64 waits are held back at most where all arrive in order: the last one began, and ended, before
// those that are already counted.
TEST(ProfileTest, AWaitTooFarOutOfOrderIsSaidToCountInPartOnly) {
  ProfileBuilder builder;
  IoRecord io;
  io.bytes = 4096;
  io.lba = Lba(0);
  const auto wait = [&](int64_t from_ns, int64_t to_ns) {
    io.queue_ns = io.issue_ns = from_ns;
    io.complete_ns = to_ns;
    builder.Add(io);
  };
  for (int i = 0; i < 200; ++i) wait(1000 * int64_t{i}, 1000 * int64_t{i} + 100);
  wait(500, 950);
  const Profile profile =
      builder.Finish(proto::Header(), std::nullopt, [](uint32_t) { return std::string(); });
  EXPECT_EQ(profile.wait_cut, 1u);
  EXPECT_EQ(profile.wait_ns, 200 * 100);
}

}  // namespace
}  // namespace blktape
