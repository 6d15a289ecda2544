// Traces of every released version of the format stay readable for ever. Expectations are written
// down here by hand; see WriteGolden for what each record means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/units.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

constexpr char kVersion1[] = "tests/format/golden/v1.tape";

// Version 1 with identity: frames say which trace they are of, the header stands there twice.
constexpr char kVersion1Identity[] = "tests/format/golden/v1_identity.tape";

class TraceGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(TraceGoldenTest, Version1IsReadAsItWasWritten) {
  Observed observed;
  auto opened = TraceReader::Open(GetParam(), &observed);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  TraceReader& reader = **opened;

  EXPECT_EQ(reader.header().format_version(), 1);
  EXPECT_EQ(reader.header().trace_id().size(), GetParam() == kVersion1 ? 0 : 16);
  EXPECT_EQ(reader.header().host(), "golden");
  ASSERT_EQ(reader.header().devices_size(), 2);
  EXPECT_EQ(reader.header().devices(0).name(), "nvme0n1");
  EXPECT_EQ(reader.header().devices(0).size_bytes(), 500'107'862'016);
  EXPECT_TRUE(reader.header().devices(0).has_rotational());
  EXPECT_FALSE(reader.header().devices(1).has_rotational());
  EXPECT_EQ(reader.header().start().wall_ns(), 1'700'000'000'000'000'000);
  ASSERT_TRUE(reader.summary().has_value());  // known before the first record

  std::vector<IoRecord> records;
  IoRecord io;
  while (*reader.Next(&io)) records.push_back(io);
  ASSERT_EQ(records.size(), 5);

  EXPECT_EQ(records[0].op, Op::kRead);
  EXPECT_EQ(records[0].flags, 0b11000);
  EXPECT_EQ(records[0].lba, Lba(2048));
  EXPECT_EQ(records[0].bytes, 16384);
  EXPECT_EQ(records[0].queue_ns, 1'500);
  EXPECT_EQ(records[0].issue_ns, 2'500);
  EXPECT_EQ(records[0].complete_ns, 90'000);
  EXPECT_EQ(records[0].error, 0);
  EXPECT_EQ(records[0].pid, 77);
  EXPECT_EQ(reader.ProcessName(records[0].process.value()), "updatedb");
  EXPECT_EQ(records[0].cpu, 3);
  EXPECT_EQ(records[0].merged_bios, 3);
  EXPECT_EQ(records[0].prio, 0x4001);
  EXPECT_EQ(records[0].ordinal, std::nullopt);

  EXPECT_EQ(records[1].lba, Lba(2080));
  EXPECT_EQ(records[1].error, 5);
  EXPECT_EQ(records[1].complete_ns, 80'000);

  EXPECT_EQ(records[2].op, Op::kFlush);
  EXPECT_EQ(records[2].flags, 0b100100);
  EXPECT_EQ(records[2].lba, std::nullopt);
  EXPECT_EQ(records[2].bytes, 0);
  EXPECT_EQ(records[2].queue_ns, std::nullopt);
  EXPECT_EQ(records[2].complete_ns, 5'000'000'004'000);
  EXPECT_EQ(records[2].pid, std::nullopt);

  EXPECT_EQ(records[3].device, 1);
  EXPECT_EQ(records[3].op, Op::kDiscard);
  EXPECT_EQ(records[3].lba, Lba(1'099'511'627'776));
  EXPECT_EQ(records[3].bytes, 3'298'534'883'328);
  EXPECT_EQ(records[3].queue_ns, -5);
  EXPECT_EQ(records[3].issue_ns, std::nullopt);
  EXPECT_EQ(records[3].complete_ns, std::nullopt);
  EXPECT_EQ(reader.ProcessName(records[3].process.value()), "fstrim");
  EXPECT_EQ(records[3].ordinal, 1'000'000);

  EXPECT_EQ(records[4].op, Op::kZoneAppend);
  EXPECT_EQ(records[4].flags, 0x80000000);
  EXPECT_EQ(records[4].arrival_ns(), std::nullopt);

  ASSERT_EQ(observed.losses.size(), 1);
  EXPECT_EQ(observed.losses[0].reason(), proto::RING_OVERRUN);
  EXPECT_EQ(observed.losses[0].count(), 12);
  EXPECT_EQ(observed.losses[0].cpu(), 1);
  ASSERT_EQ(observed.queued_sizes.size(), 1);
  EXPECT_EQ(observed.queued_sizes[0].entries(0).count(), 9);
  EXPECT_EQ(observed.queued_sizes[0].flushes_asked(), 2);

  EXPECT_EQ(reader.summary()->records(), 5);
  EXPECT_EQ(reader.summary()->first_ns(), -5);
  EXPECT_EQ(reader.summary()->last_ns(), 4'000);
  EXPECT_EQ(reader.summary()->read_bytes(), 20'480);
  EXPECT_EQ(reader.summary()->end().monotonic_ns(), 9'000);
  EXPECT_EQ(reader.lost_events(), 12);
}

INSTANTIATE_TEST_SUITE_P(All, TraceGoldenTest, testing::Values(kVersion1, kVersion1Identity));

TEST_P(TraceGoldenTest, TodaysWriterStillWritesWhatVersion1Says) {
  const std::string path = testing::TempDir() + "/golden.tape";
  std::remove(path.c_str());
  ASSERT_TRUE(WriteGolden(path).ok());
  Observed then_observed, now_observed;
  auto then = TraceReader::Open(GetParam(), &then_observed);
  auto now = TraceReader::Open(path, &now_observed);
  ASSERT_TRUE(then.ok() && now.ok());
  IoRecord then_io, now_io;
  while (*(*then)->Next(&then_io)) {
    ASSERT_TRUE(*(*now)->Next(&now_io));
    EXPECT_EQ(then_io, now_io);
  }
  EXPECT_FALSE(*(*now)->Next(&now_io));
  EXPECT_EQ(then_observed.losses.size(), now_observed.losses.size());
}

}  // namespace
}  // namespace blktape
