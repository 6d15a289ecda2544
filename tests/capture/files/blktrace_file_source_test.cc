#include "capture/files/blktrace_file_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "capture/files/file_source.h"
#include "tests/capture/blktrace/blktrace_bytes.h"
#include "tests/capture/files/import_for_test.h"
#include "tests/capture/source/recording_sink.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kReadIssue = (1ull << 16) | 7;
constexpr uint64_t kReadQueue = (1ull << 16) | 1;
constexpr uint64_t kReadComplete = (1ull << 16) | 8;
constexpr uint64_t kTimestamp = (0x400ull << 16) | 1;
constexpr uint64_t kProcess = 0x400ull << 16;
constexpr uint32_t kSda = 8u << 20;

class FileSourceTest : public ::testing::Test {
 protected:
  FileSourceTest()
      : folder_(testing::TempDir() + "/" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // Reads of `count` blocks, one each `step_ns` from `first_ns`; issued on `cpu`, completed 5 ns
  // later.
  static std::string Reads(uint32_t cpu, int count, uint64_t first_ns, uint64_t step_ns,
                           uint32_t device = kSda) {
    BlktraceBytes file(7, false);
    uint32_t sequence = 0;
    for (int i = 0; i < count; ++i) {
      const uint64_t at = first_ns + static_cast<uint64_t>(i) * step_ns;
      const uint64_t sector = cpu * 1'000'000 + static_cast<uint64_t>(i) * 8;
      file.Add({.sequence = ++sequence,
                .time_ns = at,
                .sector = sector,
                .action = kReadIssue,
                .bytes = 4096,
                .device = device,
                .cpu = cpu});
      file.Add({.sequence = ++sequence,
                .time_ns = at + 5,
                .sector = sector,
                .action = kReadComplete,
                .bytes = 4096,
                .device = device,
                .cpu = cpu});
    }
    return file.bytes();
  }

  std::string folder_;
};

TEST_F(FileSourceTest, CommonPartNamesAllFilesOfTheSetInOrderOfCpu) {
  for (const char* name : {"sda.blktrace.0", "sda.blktrace.10", "sda.blktrace.2",
                           "sda.blktrace.1.zst", "sdb.blktrace.0", "sda.blktrace.x"}) {
    Write(name, "");
  }
  const auto paths = ResolveInputs({folder_ + "/sda"});
  ASSERT_TRUE(paths.ok());
  EXPECT_THAT(*paths, ElementsAre(folder_ + "/sda.blktrace.0", folder_ + "/sda.blktrace.1.zst",
                                  folder_ + "/sda.blktrace.2", folder_ + "/sda.blktrace.10"));
  const auto none = ResolveInputs({folder_ + "/sdc"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), StatusCode::kNotFound);
}

TEST_F(FileSourceTest, OtherCpusFilesOfTheSameRecordingAreMissed) {
  for (const char* name : {"sda.blktrace.0", "sda.blktrace.1.zst", "sda.blktrace.2",
                           "sda.blktrace.2.zst", "sdb.blktrace.0"}) {
    Write(name, "");
  }
  EXPECT_THAT(MissingPerCpuFiles({folder_ + "/sda.blktrace.2", folder_ + "/sdb.blktrace.0"}),
              ElementsAre(folder_ + "/sda.blktrace.0", folder_ + "/sda.blktrace.1.zst"));
  EXPECT_THAT(MissingPerCpuFiles({folder_ + "/sda.blktrace.0", folder_ + "/sda.blktrace.1.zst",
                                  folder_ + "/sda.blktrace.2"}),
              ElementsAre());
  EXPECT_THAT(MissingPerCpuFiles({"-", folder_}), ElementsAre());
}

TEST_F(FileSourceTest, FilesOfSeveralCpusBecomeOneOrderHoweverLong) {
  // Two CPUs in turn, 20,000 events each: far more than is read at once.
  const ImportedTrace trace = ImportForTest({Write("sda.blktrace.0", Reads(0, 10'000, 100, 100)),
                                             Write("sda.blktrace.1", Reads(1, 10'000, 150, 100))});
  ASSERT_THAT(trace.records, SizeIs(20'000));
  for (size_t i = 0; i < trace.records.size(); ++i) {
    ASSERT_EQ(*trace.records[i].issue_ns, 100 + 50 * static_cast<int64_t>(i));
    ASSERT_EQ(*trace.records[i].cpu, i % 2);
  }
  EXPECT_THAT(trace.losses, IsEmpty());
  EXPECT_EQ(trace.header.devices(0).name(), "sda");
  EXPECT_EQ(trace.header.devices(0).major(), 8u);
}

TEST_F(FileSourceTest, EmptyFileOfAnIdleCpuIsNoError) {
  const ImportedTrace trace =
      ImportForTest({Write("sda.blktrace.0", ""), Write("sda.blktrace.1", Reads(1, 3, 100, 100))});
  EXPECT_THAT(trace.records, SizeIs(3));
}

TEST_F(FileSourceTest, TwoDisksOfOneRecordingAreTwoDevices) {
  const ImportedTrace trace =
      ImportForTest({Write("sda.blktrace.0", Reads(0, 3, 100, 100)),
                     Write("sdb.blktrace.0", Reads(0, 3, 150, 100, (8u << 20) | 16))});
  ASSERT_THAT(trace.records, SizeIs(6));
  EXPECT_EQ(trace.records[0].device, 0u);
  EXPECT_EQ(trace.records[1].device, 1u);
  EXPECT_EQ(trace.header.devices(1).name(), "sdb");
  EXPECT_EQ(trace.header.devices(1).minor(), 16u);
}

TEST_F(FileSourceTest, GzipIsReadAsWhatItHolds) {
  const std::string bytes = Reads(0, 500, 100, 100);
  const std::string path = folder_ + "/sda.blktrace.0.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  gzclose(file);
  EXPECT_THAT(ImportForTest({path}).records, SizeIs(500));

  // Cut inside: what came before the cut is there, and the cut is reported.
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const ImportedTrace cut = ImportForTest({path});
  EXPECT_GT(cut.records.size(), 50u);
  EXPECT_LT(cut.records.size(), 500u);
  bool damaged = false;
  for (const proto::Loss& loss : cut.losses) damaged |= loss.reason() == proto::DAMAGED_INPUT;
  EXPECT_TRUE(damaged);
}

TEST_F(FileSourceTest, PipeIsReadTwiceAllTheSame) {
  const std::string path = Write("sda.blktrace.0", Reads(0, 2000, 100, 100));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(std::system(("mkfifo " + pipe + " && (cat " + path + " > " + pipe + " &)").c_str()), 0);
  EXPECT_THAT(ImportForTest({pipe}).records, SizeIs(2000));
}

TEST_F(FileSourceTest, MergedDumpHoldsStreamsOfSeveralCpus) {
  BlktraceBytes dump(7, false);
  // Sequence numbers count per CPU: in one file they must not look like gaps.
  dump.Add(
      {.sequence = 5, .time_ns = 10, .sector = 0, .action = kReadIssue, .bytes = 512, .cpu = 0});
  dump.Add({.sequence = 90,
            .time_ns = 15,
            .sector = 0,
            .action = kReadComplete,
            .bytes = 512,
            .cpu = 1});
  dump.Add(
      {.sequence = 6, .time_ns = 20, .sector = 8, .action = kReadIssue, .bytes = 512, .cpu = 0});
  dump.Add({.sequence = 91,
            .time_ns = 25,
            .sector = 8,
            .action = kReadComplete,
            .bytes = 512,
            .cpu = 1});
  const ImportedTrace trace = ImportForTest({Write("dump.bin", dump.bytes())});
  EXPECT_THAT(trace.records, SizeIs(2));
  EXPECT_THAT(trace.losses, IsEmpty());
  EXPECT_EQ(trace.header.devices(0).name(), "8:0");
}

// blkparse -d: events count from the first one, notify records keep the machine's clock.
TEST_F(FileSourceTest, RelativeTimesOfADumpAreTiedToItsWallClock) {
  BlktraceBytes dump(7, false);
  dump.Add({.time_ns = 3'500'000'000'000,
            .action = kTimestamp,
            .payload = dump.Words({1'700'000'000, 5})});
  dump.Add({.sequence = 1, .time_ns = 7'563, .action = kReadIssue, .bytes = 512});
  dump.Add({.sequence = 2, .time_ns = 8'000, .action = kReadComplete, .bytes = 512});
  const std::string path = Write("dump.bin", dump.bytes());
  const auto source = OpenFileSource({path}, folder_);
  ASSERT_TRUE(source.ok());
  ASSERT_TRUE((*source)->Start().ok());
  ASSERT_TRUE((*source)->start().has_value());
  EXPECT_EQ((*source)->start()->monotonic_ns(), 0);
  EXPECT_EQ((*source)->start()->wall_ns(), 1'700'000'000'000'000'005);
  EXPECT_THAT(ImportForTest({path}).records, SizeIs(1));
}

TEST_F(FileSourceTest, NamesFollowAPidThroughItsPrograms) {
  BlktraceBytes file(7, false);
  const auto name = [](const char* text) {
    return std::string(text).append(16, '\0').substr(0, 16);
  };
  for (int i = 0; i < 2; ++i) {
    const uint64_t at = 100 + 100 * static_cast<uint64_t>(i);
    const uint64_t sector = static_cast<uint64_t>(i) * 8;
    file.Add(
        {.time_ns = at, .action = kProcess, .pid = 9, .payload = name(i == 0 ? "bash" : "git")});
    file.Add({.time_ns = at, .sector = sector, .action = kReadQueue, .bytes = 512, .pid = 9});
    file.Add({.time_ns = at + 1, .sector = sector, .action = kReadIssue, .bytes = 512, .pid = 9});
    file.Add(
        {.time_ns = at + 2, .sector = sector, .action = kReadComplete, .bytes = 512, .pid = 0});
  }
  EXPECT_THAT(ImportForTest({Write("sda.blktrace.0", file.bytes())}).process,
              ElementsAre("bash", "git"));
}

TEST_F(FileSourceTest, DeviceWithoutIssuesTakesBiosAsTheyAre) {
  BlktraceBytes file(7, false);
  file.Add({.time_ns = 100, .action = kReadQueue, .bytes = 4096});
  file.Add({.time_ns = 160, .action = kReadComplete, .bytes = 4096});
  const ImportedTrace trace = ImportForTest({Write("dm-0.blktrace.0", file.bytes())});
  ASSERT_THAT(trace.records, SizeIs(1));
  EXPECT_EQ(*trace.records[0].queue_ns, 100);
  EXPECT_FALSE(trace.records[0].issue_ns.has_value());
  EXPECT_EQ(*trace.records[0].complete_ns, 160);
  EXPECT_THAT(trace.losses, IsEmpty());
}

TEST_F(FileSourceTest, StrayStampOfOneFileStallsNoOther) {
  std::string bytes = Reads(0, 1000, 1'000'000, 1000);
  const uint64_t stray = 1ull << 60;
  std::memcpy(bytes.data() + 400 * 48 + 8, &stray, 8);  // the time of the 400th record
  const ImportedTrace trace = ImportForTest(
      {Write("sda.blktrace.0", bytes), Write("sda.blktrace.1", Reads(1, 1000, 1'000'500, 1000))});
  // The stray one is an issue: its completion has no partner then.
  EXPECT_THAT(trace.records, SizeIs(1999));
  EXPECT_TRUE(std::is_sorted(
      trace.records.begin(), trace.records.end(),
      [](const IoRecord& a, const IoRecord& b) { return a.arrival_ns() < b.arrival_ns(); }));
  EXPECT_LT(trace.summary.last_ns(), 3'000'000);
  uint64_t steps = 0;
  for (const proto::Loss& loss : trace.losses) {
    if (loss.reason() == proto::CLOCK_STEP) steps += loss.count();
  }
  EXPECT_EQ(steps, 1u);
}

TEST_F(FileSourceTest, WhatIsNoneOfTheKnownFormatsIsRefusedWithTheirNames) {
  const auto text = OpenFileSource({Write("x.txt", "these are words\n")}, folder_);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(text.status().message(), HasSubstr("x.txt"));
  EXPECT_THAT(text.status().message(), HasSubstr("blktrace"));
  EXPECT_FALSE(OpenFileSource({Write("empty", "")}, folder_).ok());
  EXPECT_FALSE(OpenFileSource({folder_ + "/absent"}, folder_).ok());
}

}  // namespace
}  // namespace blktape
