// A recording that nobody watches: crashes, full disks, disks that vanish, its own I/O.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "tests/live/live_fixture.h"
#include "tests/live/recorder.h"
#include "tests/support/loop_device.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class UnattendedTest : public LiveTest {
 protected:
  void TearDown() override {
    if (!mounted_.empty()) umount(mounted_.c_str());
    other_.reset();
    LiveTest::TearDown();
  }

  // 4 KiB at place `index`, counting in 4 KiB.
  void Write(const UniqueFd& fd, uint64_t index) const {
    WriteAt(fd, index % (kDiskBytes / 4096) * 8, 4096);
  }
  // ext4 on `device`, mounted in the folder until the test ends.
  void MountExt4(const std::string& device) {
    const std::string point = Path("mnt");
    fs::create_directories(point);
    const std::string make = "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 " + device;
    ASSERT_EQ(system(make.c_str()), 0);
    ASSERT_EQ(mount(device.c_str(), point.c_str(), "ext4", 0, ""), 0) << strerror(errno);
    mounted_ = point;
  }
  void MakeOther() {
    auto other = LoopDevice::Make(folder_, kDiskBytes);
    ASSERT_TRUE(other.ok()) << other.status().message();
    other_ = std::move(other).value();
  }
  void MakeAndMountOther() {
    ASSERT_NO_FATAL_FAILURE(MakeOther());
    MountExt4(other_->path());
  }
  // Ten I/Os on `disk`, and time to store them; then what is mounted is written full, so much at a
  // time.
  void WriteTenAndFillMounted(const UniqueFd& disk, size_t block_bytes) const {
    for (uint64_t i = 0; i < 10; ++i) Write(disk, i);
    Sleep(kNanosPerSecond);
    std::ofstream filler(Path("mnt/filler"));
    const std::string block(block_bytes, 'f');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  static void Sleep(int64_t ns) {
    Clock* clock = Clock::Monotonic();
    clock->SleepUntilNs(clock->NowNs() + ns);
  }

  std::string mounted_;
  std::unique_ptr<LoopDevice> other_;
};

TEST_F(UnattendedTest, AKillAtAnyMomentCostsAtMostTheLastSecond) {
  srandom(7);
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    const std::string path = Path("kill" + std::to_string(round) + ".tape");
    Recorder recorder(folder_, {"record", "-d", loop_->path(), "-o", path});
    ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
    const UniqueFd disk = OpenDirect();
    std::vector<int64_t> done_ns;
    Clock* clock = Clock::Monotonic();
    const int64_t end_ns = clock->NowNs() + kNanosPerSecond * 3 / 2 + random() % kNanosPerSecond;
    while (clock->NowNs() < end_ns) {
      Write(disk, done_ns.size());
      done_ns.push_back(clock->NowNs());
      Sleep(kNanosPerMilli);
    }
    recorder.Signal(SIGKILL);
    const int64_t killed_ns = clock->NowNs();
    recorder.Wait();
    const Result<LoadedTrace> trace = LoadTrace(path + ".partial");
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    EXPECT_FALSE(trace->summary);
    const std::vector<IoRecord> mine = trace->By("unattended_test");
    for (size_t i = 0; i < mine.size(); ++i) ASSERT_EQ(mine[i].lba->sectors, i * 8);
    const size_t due = static_cast<size_t>(
        std::lower_bound(done_ns.begin(), done_ns.end(), killed_ns - kNanosPerSecond) -
        done_ns.begin());
    EXPECT_GT(due, 0u);
    EXPECT_GE(mine.size(), due) << "of " << done_ns.size();
  }
}

TEST_F(UnattendedTest, TheDiskUnderTheTraceComesToRest) {
  MountExt4(loop_->path());
  // What mkfs and mount left is not ours.
  sync();
  Recorder recorder(folder_, {"record", "-d", loop_->path(), "-o", Path("mnt/a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  // Somebody's work, so that there is something to write into the trace.
  {
    const UniqueFd file(open(Path("mnt/work").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    WriteAt(file, 0, 4096);
    ASSERT_EQ(fsync(file.get()), 0);
  }
  Sleep(16 * kNanosPerSecond);
  recorder.Signal(SIGTERM);
  ASSERT_EQ(recorder.Wait(), 0) << recorder.err();
  const Result<LoadedTrace> trace = LoadTrace(Path("mnt/a.tape"));
  ASSERT_TRUE(trace.ok());
  EXPECT_THAT(trace->By("blktape"), IsEmpty());
  EXPECT_GE(trace->By("unattended_test").size(), 1u);
  EXPECT_GT(trace->summary->own_excluded(), 0u);
  // Then it is quiet: nothing but what others on this machine may do to the disk (sync).
  int64_t last_ns = 0;
  for (size_t i = 0; i < trace->ios.size(); ++i) {
    const bool kernel =
        trace->names[i].rfind("jbd2/", 0) == 0 || trace->names[i].rfind("kworker/", 0) == 0;
    if (kernel || trace->names[i] == "unattended_test") {
      last_ns = std::max(last_ns, trace->ios[i].arrival_ns().value_or(0));
    }
  }
  EXPECT_LT(last_ns - trace->header.start().monotonic_ns(), 8 * kNanosPerSecond)
      << "the commit 5 s after the work is somebody else's, none after it";
}

TEST_F(UnattendedTest, AFullDiskStopsTheWritingAndSpaceResumesIt) {
  ASSERT_NO_FATAL_FAILURE(MakeAndMountOther());
  Recorder recorder(folder_, {"record", "-d", loop_->path(), "-o", Path("mnt/a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  const UniqueFd disk = OpenDirect();
  WriteTenAndFillMounted(disk, 1 << 20);
  uint64_t index = 10;
  for (int i = 0; i < 200 && recorder.err().find("is full") == std::string::npos; ++i) {
    Write(disk, index++);
    Sleep(100 * kNanosPerMilli);
  }
  EXPECT_THAT(recorder.err(), HasSubstr("the disk of the trace is full"));
  for (int i = 0; i < 20; ++i) Write(disk, index++);
  Sleep(kNanosPerSecond);
  ASSERT_TRUE(fs::remove(Path("mnt/filler")));
  ASSERT_TRUE(recorder.WaitUntilItSays("there is space for the trace again")) << recorder.err();
  for (int i = 0; i < 10; ++i) Write(disk, index++);
  recorder.Signal(SIGTERM);
  EXPECT_EQ(recorder.Wait(), 3) << recorder.err();
  const Result<LoadedTrace> trace = LoadTrace(Path("mnt/a.tape"));
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  const uint64_t failed = trace->LossCount(proto::WRITE_FAILED);
  EXPECT_GE(failed, 20u);
  EXPECT_EQ(trace->By("unattended_test").size() + failed, index);
  ASSERT_THAT(trace->marks, SizeIs(1));
  EXPECT_EQ(trace->marks[0].kind(), proto::RECORDING_RESUMED);
}

TEST_F(UnattendedTest, ItCanBeFinishedOnAFullDisk) {
  ASSERT_NO_FATAL_FAILURE(MakeAndMountOther());
  Recorder recorder(folder_, {"record", "-d", loop_->path(), "-o", Path("mnt/a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  const UniqueFd disk = OpenDirect();
  WriteTenAndFillMounted(disk, 1 << 16);
  Write(disk, 10);
  Sleep(kNanosPerSecond);
  for (uint64_t i = 0; i < 5; ++i) Write(disk, i);
  recorder.Signal(SIGTERM);
  recorder.Wait();
  const Result<LoadedTrace> trace = LoadTrace(Path("mnt/a.tape"));
  ASSERT_TRUE(trace.ok()) << trace.status().message() << recorder.err();
  EXPECT_TRUE(trace->summary);
  EXPECT_EQ(trace->By("unattended_test").size() + trace->LossCount(proto::WRITE_FAILED), 16u);
}

TEST_F(UnattendedTest, AFullDiskIsRefusedAtTheStart) {
  Recorder recorder(
      folder_, {"record", "-d", loop_->path(), "--leave-free", "1000000G", "-o", Path("a.tape")});
  EXPECT_EQ(recorder.Wait(), 1);
  EXPECT_THAT(recorder.err(), HasSubstr("its disk is full"));
  EXPECT_FALSE(fs::exists(Path("a.tape.partial")));
}

TEST_F(UnattendedTest, ADiskThatVanishesEndsItsPartNotTheRecording) {
  ASSERT_NO_FATAL_FAILURE(MakeOther());
  Recorder recorder(folder_,
                    {"record", "-d", loop_->path(), "-d", other_->path(), "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  const Status removed = other_->Remove();
  ASSERT_TRUE(removed.ok()) << removed.message();
  ASSERT_TRUE(recorder.WaitUntilItSays(other_->name() + " is gone")) << recorder.err();
  {
    const UniqueFd disk = OpenDirect();
    for (uint64_t i = 0; i < 5; ++i) Write(disk, i);
  }
  ASSERT_TRUE(loop_->Remove().ok());
  EXPECT_EQ(recorder.Wait(), 3) << "both disks are gone, so it ends by itself";
  const Result<LoadedTrace> trace = LoadTrace(Path("a.tape"));
  ASSERT_TRUE(trace.ok());
  EXPECT_THAT(trace->By("unattended_test"), SizeIs(5));
  std::vector<uint32_t> gone;
  for (const proto::Loss& loss : trace->losses) {
    if (loss.reason() == proto::DEVICE_REMOVED) gone.push_back(loss.device());
  }
  EXPECT_EQ(gone, (std::vector<uint32_t>{1, 0}));
  EXPECT_TRUE(trace->summary);
}

}  // namespace
}  // namespace blktape
