#include "replay/engine/engine_probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "replay/engine/engine_factory.h"
#include "replay/engine/nowait.h"
#include "tests/replay/target/test_devices.h"
#include "tests/support/loop_device.h"
#include "tests/support/requires.h"

namespace blktape {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(ChooseByFiguresTest, WhereTheKernelPuntsLibaioIsTaken) {
  // Measured on zram: fio's figures.
  const EngineChoice choice = ChooseByFigures({.latency_ns = 45'000, .reads_per_second = 346'000},
                                              {.latency_ns = 600, .reads_per_second = 400'000});
  EXPECT_EQ(choice.engine, "libaio");
  EXPECT_EQ(
      choice.reason,
      "4 KiB reads take 600 ns at queue depth 1 (45.0 us by io_uring), 400,000 a second at 32 "
      "(346,000)");
}

TEST(ChooseByFiguresTest, ATieGoesToIoUring) {
  EXPECT_EQ(ChooseByFigures({10'200, 100'000}, {10'000, 100'000}).engine, "io_uring");
  EXPECT_EQ(ChooseByFigures({12'900, 100'000}, {10'000, 100'000}).engine, "io_uring");
  EXPECT_EQ(ChooseByFigures({13'100, 100'000}, {10'000, 100'000}).engine, "libaio");
}

TEST(ChooseByFiguresTest, LatencyAndRateAreWeighedAgainstEachOther) {
  EXPECT_EQ(ChooseByFigures({12'000, 200'000}, {10'000, 100'000}).engine, "io_uring");
  EXPECT_EQ(ChooseByFigures({30'000, 200'000}, {10'000, 100'000}).engine, "libaio");
}

TEST(ChooseByFiguresTest, AnEngineThatReadNothingIsNotTaken) {
  EXPECT_EQ(ChooseByFigures({10'000, 0}, {10'000, 1000}).engine, "libaio");
}

TEST(ChooseEngineTest, ATargetInThePageCacheGetsIoUringUnprobed) {
  ScratchFolder folder;
  if (folder.path().rfind("/dev/shm", 0) != 0) GTEST_SKIP() << "SKIPPED: no tmpfs";
  const std::string path = folder.path() + "/target";
  MakeSparseFile(path, 1 << 20);
  const auto target = Target::Open(path, {});
  ASSERT_TRUE(target.ok());
  const auto choice = ChooseEngine({target->get()});
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->engine, "io_uring");
  EXPECT_THAT(choice->reason, HasSubstr("page cache"));
}

TEST(ChooseEngineTest, ALoopDeviceIsProbedWithoutBeingWritten) {
  ScratchFolder folder;
  const std::string path = folder.path() + "/backing";
  MakeSparseFile(path, 64 << 20);
  const auto loop = LoopDevice::Over(path);
  BLKTAPE_REQUIRE(loop.ok(), "loop devices");
  const std::string before = Checksum(path);
  const auto target = Target::Open((*loop)->path(), {.write = false});
  ASSERT_TRUE(target.ok());
  EXPECT_TRUE(IssuesWithoutBlocking((*target)->fd()));
  const auto choice = ChooseEngine({target->get()});
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_THAT(choice->engine, AnyOf("io_uring", "libaio"));
  EXPECT_THAT(choice->reason, HasSubstr("at queue depth 1"));
  EXPECT_EQ(Checksum(path), before);
  RecordProperty("reason", choice->engine + ": " + choice->reason);
}

// zram takes bios itself and may block, so that io_uring punts every request.
class ZramTest : public testing::Test {
 protected:
  static constexpr char kFolder[] = "/sys/block/zram0";
  void SetUp() override {
    const auto size = ReadAttribute(std::string(kFolder) + "/disksize");
    // Another test may be about to use it: the lock is ours until the descriptor is closed. Not
    // that of the device, which its user takes.
    node_ = UniqueFd(open(kFolder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!size.ok() || !node_ || flock(node_.get(), LOCK_EX | LOCK_NB) != 0 || *size != "0") {
      GTEST_SKIP() << "SKIPPED: no free zram0";
    }
    ASSERT_TRUE(WriteAttribute(std::string(kFolder) + "/disksize", "67108864").ok());
    ours_ = true;
  }
  void TearDown() override {
    node_.reset();
    if (!ours_) return;
    // The kernel takes a ring apart after its process has closed it: until then the device is busy.
    Status reset = WriteAttribute(std::string(kFolder) + "/reset", "1");
    for (int tries = 0; !reset.ok() && tries < 500; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      reset = WriteAttribute(std::string(kFolder) + "/reset", "1");
    }
    EXPECT_TRUE(reset.ok()) << reset.message();
  }
  UniqueFd node_;
  bool ours_ = false;
};

TEST_F(ZramTest, IoUringSaysThatItPuntsAndAutoGivesTheFiguresOfBoth) {
  {
    const auto target = Target::Open("/dev/zram0", {.overwrite = true});
    ASSERT_TRUE(target.ok()) << target.status().message();
    EXPECT_EQ((*target)->logical_block_bytes(), 4096u);
    EXPECT_FALSE(IssuesWithoutBlocking((*target)->fd()));
    EngineOptions options;
    options.targets = {target->get()};
    const auto engine = OpenEngine("io_uring", options);
    ASSERT_TRUE(engine.ok());
    EXPECT_THAT((*engine)->mode(), HasSubstr("punted to kernel workers"));
    const auto choice = ChooseEngine({target->get()});
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    // Which, a busy machine may turn round: ChooseByFiguresTest has the rule.
    EXPECT_THAT(choice->engine, AnyOf("io_uring", "libaio"));
    EXPECT_THAT(choice->reason,
                HasSubstr(choice->engine == "libaio" ? "by io_uring" : "by libaio"));
    RecordProperty("reason", choice->engine + ": " + choice->reason);
  }
}

}  // namespace
}  // namespace blktape
