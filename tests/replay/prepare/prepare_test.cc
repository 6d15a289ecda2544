#include "replay/prepare/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "replay/prepare/prepare_journal.h"
#include "tests/replay/plan/fake_records.h"
#include "tests/replay/plan/temp_trace.h"

namespace blktape {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
const std::atomic<bool> kRunOn = false;

std::string SparseFile(const std::string& name, uint64_t bytes) {
  const std::string path = FreshPath(name);
  std::ofstream(path).put('x');
  std::filesystem::resize_file(path, bytes);
  return path;
}

uint64_t AllocatedBytes(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

std::string Content(const std::string& path, uint64_t offset, uint64_t bytes) {
  std::ifstream file(path);
  file.seekg(static_cast<std::streamoff>(offset));
  std::string content(bytes, '\0');
  file.read(content.data(), static_cast<std::streamsize>(bytes));
  return content;
}

PrepareOptions Quick(const std::string& target) {
  PrepareOptions options;
  options.target_path = target;
  options.replay.overwrite = true;
  options.round_ns = 50'000'000;
  options.max_rounds = 6;
  options.idle_ns = 0;
  return options;
}

TEST(PrepareTest, UsedFillsEveryBlockAndRunsRoundsOfRandomWrites) {
  const std::string target = SparseFile("used.img", 16 * kMiB);
  PrepareOptions options = Quick(target);
  const auto report = RunPrepare(options, kRunOn, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->filled_bytes, 2 * 16 * kMiB);
  EXPECT_GE(report->rounds_iops.size(), kSteadyWindow);
  EXPECT_LE(report->rounds_iops.size(), 6u);
  EXPECT_FALSE(report->resumed);
  EXPECT_EQ(AllocatedBytes(target), 16 * kMiB);
  for (uint64_t at = 0; at < 16 * kMiB; at += 4096) {
    ASSERT_NE(Content(target, at, 512), std::string(512, '\0')) << at;
  }
}

TEST(PrepareTest, AScratchFileNeedsNoOverwriteForItsSecondPass) {
  const std::string target = FreshPath("scratch.img");
  std::ofstream(target).put('\0');
  std::filesystem::resize_file(target, 4 * kMiB);
  PrepareOptions options = Quick(target);
  options.replay.overwrite = false;
  options.max_rounds = 1;
  const auto report = RunPrepare(options, kRunOn, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->filled_bytes, 2 * 4 * kMiB);
}

TEST(PrepareTest, FreshHoldsExactlyTheBlocksThatTheTraceReadsFirst) {
  const std::string target = SparseFile("fresh.img", 16 * kMiB);
  PrepareOptions options = Quick(target);
  options.state = PrepareOptions::State::kFresh;
  options.replay.trace_path =
      TempTrace("fresh.tape", {Read(0, 10, 4 * kMiB, 65536), Write(20, 30, 8 * kMiB, 65536),
                               Read(40, 50, 8 * kMiB, 65536), Read(60, 70, 15 * kMiB, 4096)});
  options.replay.mappings = {{"", target}};
  const auto report = RunPrepare(options, kRunOn, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->discarded_bytes, 16 * kMiB);
  EXPECT_EQ(report->prefilled_bytes, 65536u + 4096);
  EXPECT_EQ(AllocatedBytes(target), 65536u + 4096);
  EXPECT_NE(Content(target, 4 * kMiB, 65536), std::string(65536, '\0'));
  EXPECT_EQ(Content(target, 8 * kMiB, 65536), std::string(65536, '\0'));
  EXPECT_NE(Content(target, 15 * kMiB, 4096), std::string(4096, '\0'));
}

// As of a sample, which leaves out the write of the trace before.
TEST(PrepareTest, FreshHoldsWhatRecordsReadFirst) {
  const std::string target = SparseFile("records.img", 16 * kMiB);
  PrepareOptions options = Quick(target);
  options.state = PrepareOptions::State::kFresh;
  options.replay.records = {
      .name = "a sample", .open = []() -> Result<std::unique_ptr<RecordStream>> {
        return std::unique_ptr<RecordStream>(std::make_unique<FakeRecords>(
            std::vector<IoRecord>{Read(40, 50, 8 * kMiB, 65536), Write(60, 70, 0, 4096)}));
      }};
  options.replay.mappings = {{"", target}};
  const auto report = RunPrepare(options, kRunOn, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->prefilled_bytes, 65536u);
  EXPECT_EQ(AllocatedBytes(target), 65536u);
  EXPECT_NE(Content(target, 8 * kMiB, 65536), std::string(65536, '\0'));
}

TEST(PrepareTest, WhatTheTargetCannotDoIsLeftToTheReplay) {
  const std::string target = SparseFile("erase.img", 8 * kMiB);
  PrepareOptions options = Quick(target);
  options.state = PrepareOptions::State::kFresh;
  options.replay.trace_path = TempTrace(
      "erase.tape", {Io(Op::kSecureErase, 1'000, 2'000, 0, 4096), Read(3'000, 4'000, kMiB, 512)});
  const auto report = RunPrepare(options, kRunOn, nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->prefilled_bytes, 4096u);
}

TEST(PrepareTest, ATraceThatDoesNotFitIsRefusedWhileTheTargetHoldsWhatItHeld) {
  PrepareOptions options = Quick(SparseFile("small.img", 4 * kMiB));
  options.state = PrepareOptions::State::kFresh;
  options.replay.trace_path = TempTrace("far.tape", {Read(0, 10, 15 * kMiB, 4096)});
  const auto refused = RunPrepare(options, kRunOn, nullptr);
  EXPECT_THAT(refused.status().message(), HasSubstr("too small"));
  EXPECT_EQ(Content(options.target_path, 0, 1), "x");
}

TEST(PrepareTest, TimeLeftIsKnownWithTheSpeed) {
  EXPECT_EQ(LeastLeftNs(3'000, 0, 5'000), std::nullopt);
  EXPECT_EQ(LeastLeftNs(3'000, 1'000, 5'000), 3'000'005'000);
  EXPECT_EQ(LeastLeftNs(0, 0, 5'000), 5'000);
  // An end of time is no overflow.
  EXPECT_GT(LeastLeftNs(UINT64_MAX, 1, 5'000), 0);
}

TEST(PrepareTest, AStoppedPreparationGoesOnWhereItWas) {
  const std::string target = SparseFile("resume.img", 16 * kMiB);
  PrepareOptions options = Quick(target);
  options.progress_path = FreshPath("resume.json");
  options.idle_ns = 60'000'000'000;
  std::atomic<bool> stop = false;
  const auto stopped = RunPrepare(options, stop, [&stop](const PrepareProgress& progress) {
    if (progress.phase == "idle") stop = true;
  });
  EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
  options.idle_ns = 0;
  const auto resumed = RunPrepare(options, kRunOn, nullptr);
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(resumed->filled_bytes, 0u) << "the fill was not done again";
  EXPECT_GE(resumed->rounds_iops.size(), kSteadyWindow);
  EXPECT_FALSE(std::filesystem::exists(options.progress_path)) << "removed when done";
}

TEST(PrepareTest, QueueSettingsOfAFileAreRefusedBeforeAnythingIsWritten) {
  PrepareOptions options = Quick(SparseFile("no-queue.img", 4 * kMiB));
  options.replay.queue_settings = {{.name = "nomerges", .value = "2"}};
  const uint64_t before = AllocatedBytes(options.target_path);
  const auto refused = RunPrepare(options, kRunOn, nullptr);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(AllocatedBytes(options.target_path), before);
}

TEST(PrepareTest, AJournalOfAnotherTargetIsRefused) {
  PrepareOptions options = Quick(SparseFile("other.img", 4 * kMiB));
  options.progress_path = FreshPath("other.json");
  ASSERT_TRUE(SavePrepareJournal(options.progress_path,
                                 {.target = "/dev/sdz", .phase = "idle", .rounds_iops = {}})
                  .ok());
  EXPECT_THAT(RunPrepare(options, kRunOn, nullptr).status().message(),
              HasSubstr("belongs to another"));
}

TEST(PrepareJournalTest, ComesBackAsItWasSaved) {
  const std::string path = FreshPath("journal.json");
  EXPECT_EQ(LoadPrepareJournal(path).status().code(), StatusCode::kNotFound);
  const PrepareJournal journal{.target = "/dev/sdx 123 used",
                               .phase = "fill 2 of 2",
                               .done_bytes = uint64_t{1} << 40,
                               .rounds_iops = {1.5, 2.25}};
  ASSERT_TRUE(SavePrepareJournal(path, journal).ok());
  const auto back = LoadPrepareJournal(path);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, journal);
}

TEST(PrepareJournalTest, WhatIsNoJournalIsRefused) {
  const std::string path = FreshPath("junk.json");
  const char* const negative =
      R"({"target": "x", "phase": "y", "done_bytes": -1, "rounds_iops": []})";
  for (const char* junk : {"", "{", "[]", "{\"target\": 1}", negative}) {
    std::ofstream(path) << junk;
    EXPECT_EQ(LoadPrepareJournal(path).status().code(), StatusCode::kDataLoss) << junk;
  }
}

}  // namespace
}  // namespace blktape
