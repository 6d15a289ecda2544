// A recording that nobody watches: crashes, full disks, disks that vanish, its own I/O.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
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
#include "tests/live/loop_device.h"
#include "tests/live/recorder.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kDiskBytes = 64 * 1024 * 1024;

class UnattendedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    BLKTAPE_SKIP_UNLESS(geteuid() == 0, "live recording needs root");
    folder_ = ::testing::TempDir() + "/unattended_test";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    auto loop = LoopDevice::Create(folder_, kDiskBytes);
    BLKTAPE_SKIP_UNLESS(loop.ok(), loop.status().message());
    loop_ = std::move(loop).value();
    ASSERT_EQ(posix_memalign(&buffer_, 4096, 4096), 0);
    std::fill_n(static_cast<char*>(buffer_), 4096, 'x');
  }
  void TearDown() override {
    free(buffer_);
    if (!mounted_.empty()) umount(mounted_.c_str());
    loop_.reset();
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  UniqueFd OpenDirect() const {
    return UniqueFd(open(loop_->path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  }
  // 4 KiB at place `index`, counting in 4 KiB.
  void Write(const UniqueFd& fd, uint64_t index) const {
    const uint64_t at = index % (kDiskBytes / 4096) * 4096;
    ASSERT_EQ(pwrite(fd.get(), buffer_, 4096, static_cast<off_t>(at)), 4096);
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
  static void Sleep(int64_t ns) {
    Clock* clock = Clock::Monotonic();
    clock->SleepUntilNs(clock->NowNs() + ns);
  }

  std::string folder_;
  std::string mounted_;
  std::unique_ptr<LoopDevice> loop_;
  void* buffer_ = nullptr;
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
    ASSERT_EQ(pwrite(file.get(), buffer_, 4096, 0), 4096);
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
  auto other = LoopDevice::Create(folder_, kDiskBytes);
  ASSERT_TRUE(other.ok());
  MountExt4((*other)->path());
  Recorder recorder(folder_, {"record", "-d", loop_->path(), "-o", Path("mnt/a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  const UniqueFd disk = OpenDirect();
  for (uint64_t i = 0; i < 10; ++i) Write(disk, i);
  Sleep(kNanosPerSecond);
  {
    std::ofstream filler(Path("mnt/filler"));
    const std::string block(1 << 20, 'f');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
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
  auto other = LoopDevice::Create(folder_, kDiskBytes);
  ASSERT_TRUE(other.ok());
  MountExt4((*other)->path());
  Recorder recorder(folder_, {"record", "-d", loop_->path(), "-o", Path("mnt/a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  const UniqueFd disk = OpenDirect();
  for (uint64_t i = 0; i < 10; ++i) Write(disk, i);
  Sleep(kNanosPerSecond);
  {
    std::ofstream filler(Path("mnt/filler"));
    const std::string block(1 << 16, 'f');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
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
  auto other = LoopDevice::Create(folder_, kDiskBytes);
  ASSERT_TRUE(other.ok());
  Recorder recorder(folder_,
                    {"record", "-d", loop_->path(), "-d", (*other)->path(), "-o", Path("a.tape")});
  ASSERT_TRUE(recorder.WaitUntilRecording()) << recorder.err();
  const Status removed = (*other)->Remove();
  ASSERT_TRUE(removed.ok()) << removed.message();
  ASSERT_TRUE(recorder.WaitUntilItSays((*other)->name() + " is gone")) << recorder.err();
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
