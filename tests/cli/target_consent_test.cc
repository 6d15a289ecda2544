#include "cli/target_consent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "replay/replayer.h"
#include "tests/replay/plan/temp_trace.h"

namespace blktape {
namespace {

using testing::HasSubstr;

constexpr std::atomic<bool> kRunOn = false;

// The options of a replay of one write at `lba`, onto a file that is not there.
ReplayOptions WriteAt(uint64_t sectors) {
  IoRecord io;
  io.op = Op::kWrite;
  io.queue_ns = 10;
  io.lba = Lba(sectors);
  io.bytes = 4096;
  ReplayOptions options;
  options.trace_path = TempTrace("write.tape", {io});
  options.mappings = {{.device = "", .target_path = FreshPath("scratch.img")}};
  return options;
}

TEST(CreateScratchTargetsTest, AFileIsWholeMebibytesAndLargeEnough) {
  const ReplayOptions options = WriteAt(2040);  // ends at 1 MiB
  MadeFiles made;
  ASSERT_TRUE(
      CreateScratchTargets(options, /*create=*/true, /*prepared=*/false, kRunOn, &made).ok());
  EXPECT_EQ(std::filesystem::file_size(options.mappings[0].target_path), 2u << 20);
}

TEST(CreateScratchTargetsTest, AnAddressBeyondEveryFileLeavesNone) {
  for (const uint64_t sectors : {UINT64_MAX, UINT64_MAX / kSectorBytes, uint64_t{1} << 54}) {
    const ReplayOptions options = WriteAt(sectors);
    MadeFiles made;
    const Status status =
        CreateScratchTargets(options, /*create=*/true, /*prepared=*/false, kRunOn, &made);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << sectors;
    EXPECT_THAT(status.message(), HasSubstr("no file is as large")) << sectors;
    EXPECT_FALSE(std::filesystem::exists(options.mappings[0].target_path)) << sectors;
  }
}

TEST(CreateScratchTargetsTest, WhatWasMadeGoesAgainWhereNothingIsRun) {
  const ReplayOptions options = WriteAt(0);
  const std::string& path = options.mappings[0].target_path;
  {
    MadeFiles made;
    ASSERT_TRUE(
        CreateScratchTargets(options, /*create=*/true, /*prepared=*/false, kRunOn, &made).ok());
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    MadeFiles made;
    ASSERT_TRUE(
        CreateScratchTargets(options, /*create=*/true, /*prepared=*/false, kRunOn, &made).ok());
    made.Keep();
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  // What was there before is nobody's to remove.
  {
    MadeFiles made;
    ASSERT_TRUE(
        CreateScratchTargets(options, /*create=*/true, /*prepared=*/false, kRunOn, &made).ok());
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(TellLostFlushesTest, ATargetWhoseFlushesAreLostIsWarnedOfOthersAreNot) {
  ReplayPreview preview;
  proto::Device& drive = preview.targets.emplace_back();
  drive.set_path("/dev/sdx");
  drive.set_write_cache("write back");
  drive.set_drive_write_cache("write back");
  testing::internal::CaptureStderr();
  TellLostFlushes(preview);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  drive.set_write_cache("write through");
  testing::internal::CaptureStderr();
  TellLostFlushes(preview);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("warning: /dev/sdx has a volatile write cache, but its queue is set to "
                        "write through"));
}

}  // namespace
}  // namespace blktape
