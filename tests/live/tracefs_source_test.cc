#include "capture/tracefs/tracefs_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
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
#include "base/process.h"
#include "base/status.h"
#include "base/units.h"
#include "capture/assemble/capture_pipeline.h"
#include "capture/source/capture_source.h"
#include "capture/tracefs/trace_instance.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "host/block_device.h"
#include "host/kernel_fs.h"
#include "tests/live/collecting_writer.h"
#include "tests/live/live_fixture.h"
#include "tests/support/loop_device.h"

namespace blktape {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DeviceFilterTest, NeighboursAreOneRange) {
  EXPECT_EQ(DeviceFilter({8388608}), "dev == 8388608");
  EXPECT_EQ(DeviceFilter({8388610, 8388608, 8388609}), "(dev >= 8388608 && dev <= 8388610)");
  EXPECT_EQ(DeviceFilter({5, 9, 9, 8, 20}), "dev == 5 || (dev >= 8 && dev <= 9) || dev == 20");
  EXPECT_EQ(DeviceFilter({}), "");
}

TEST(DeviceFilterTest, MoreDisksThanAPageHoldsBecomeWiderRanges) {
  std::vector<uint32_t> devs;
  for (uint32_t i = 0; i < 400; ++i) devs.push_back((8 + i / 100) << 20 | (i % 100 * 16 + i / 100));
  const std::string filter = DeviceFilter(devs);
  EXPECT_LT(filter.size(), 4096u);
  EXPECT_EQ(filter.substr(0, 40),
            "(dev >= 8388608 && dev <= 8390192) || (d");  // 8 << 20, + 99 * 16
  EXPECT_GT(DeviceFilter(devs, 1 << 20).size(), 4096u);
}

class TracefsSourceTest : public LiveTest {
 protected:
  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto disks = BlockDevices().Under(loop_->path());
    ASSERT_TRUE(disks.ok()) << disks.status().message();
    disks_ = *disks;
  }

  std::unique_ptr<TracefsSource> Start(uint64_t buffer_bytes = 1 << 20) {
    TracefsOptions options;
    options.buffer_bytes_per_cpu = buffer_bytes;
    auto source = std::make_unique<TracefsSource>(disks_, options);
    const Status started = source->Start();
    EXPECT_TRUE(started.ok()) << started.message();
    return source;
  }

  // Everything from Start to now.
  CollectingWriter Collect(TracefsSource* source) {
    CollectingWriter writer;
    CapturePipeline pipeline(&writer, disks_, CapturePipelineOptions());
    EXPECT_TRUE(source->Poll(0, &pipeline).ok());
    const Status stopped = source->Stop(&pipeline);
    EXPECT_TRUE(stopped.ok()) << stopped.message();
    EXPECT_TRUE(pipeline.Finish().ok());
    return writer;
  }

  const uint32_t pid_ = static_cast<uint32_t>(getpid());
  std::vector<Disk> disks_;
};

TEST_F(TracefsSourceTest, TwentyThreeWritesAndSeventeenReadsAreFortyRecords) {
  const UniqueFd disk = OpenDirect();
  const auto source = Start();
  std::vector<IoRecord> expected;
  const auto expect = [&](Op op, uint64_t sector, uint64_t bytes) {
    IoRecord io;
    io.op = op;
    io.lba = Lba(sector);
    io.bytes = bytes;
    expected.push_back(io);
  };
  for (uint64_t i = 0; i < 23; ++i) {
    const uint64_t sector = (i * 37 % 23) * 512;
    WriteAt(disk, sector, 4096);
    expect(Op::kWrite, sector, 4096);
  }
  for (uint64_t i = 0; i < 17; ++i) {
    const uint64_t sector = 65'536 + (i * 5 % 17) * 64;
    ReadAt(disk, sector, 16'384);
    expect(Op::kRead, sector, 16'384);
  }
  const CollectingWriter writer = Collect(source.get());
  const std::vector<IoRecord> mine = writer.Of(pid_);
  ASSERT_THAT(mine, SizeIs(40));
  for (size_t i = 0; i < mine.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(mine[i].op, expected[i].op);
    EXPECT_EQ(mine[i].lba->sectors, expected[i].lba->sectors);
    EXPECT_EQ(mine[i].bytes, expected[i].bytes);
    EXPECT_EQ(mine[i].error, 0u);
    ASSERT_TRUE(mine[i].queue_ns && mine[i].issue_ns && mine[i].complete_ns);
    EXPECT_LE(*mine[i].queue_ns, *mine[i].issue_ns);
    EXPECT_LE(*mine[i].issue_ns, *mine[i].complete_ns);
    if (i > 0) {
      EXPECT_GE(*mine[i].queue_ns, *mine[i - 1].complete_ns);
    }
    ASSERT_TRUE(mine[i].process);
    EXPECT_EQ(writer.processes[*mine[i].process], "tracefs_source_");
  }
  EXPECT_THAT(writer.losses, IsEmpty());
}

TEST_F(TracefsSourceTest, FlushAndDiscardAreSeenAsSuch) {
  const UniqueFd disk = OpenDirect();
  const auto source = Start();
  ASSERT_EQ(fsync(disk.get()), 0);
  std::array<uint64_t, 2> range = {1 << 20, 128 * 1024};
  ASSERT_EQ(ioctl(disk.get(), BLKDISCARD, range.data()), 0);
  const std::vector<IoRecord> mine = Collect(source.get()).Of(pid_);
  ASSERT_THAT(mine, SizeIs(2));
  EXPECT_EQ(mine[0].op, Op::kFlush);
  EXPECT_FALSE(mine[0].lba);
  EXPECT_EQ(mine[0].bytes, 0u);
  EXPECT_EQ(mine[1].op, Op::kDiscard);
  EXPECT_EQ(mine[1].lba->bytes(), uint64_t{1} << 20);
  EXPECT_EQ(mine[1].bytes, 128u * 1024);
}

TEST_F(TracefsSourceTest, ARequestThatTheKernelSplitsIsWhatTheDriveSaw) {
  // A loop device keeps its queue when it gets another file.
  const std::string limit_path = "/sys/block/" + loop_->name() + "/queue/max_sectors_kb";
  const Result<std::string> limit = ReadFile(limit_path);
  ASSERT_TRUE(limit.ok());
  std::ofstream(limit_path) << "128";
  const UniqueFd disk = OpenDirect();
  const auto source = Start();
  ReadAt(disk, 0, kBufferBytes);
  const std::vector<IoRecord> mine = Collect(source.get()).Of(pid_);
  std::ofstream(limit_path) << *limit;
  ASSERT_THAT(mine, SizeIs(kBufferBytes / (128 * 1024)));
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].lba->bytes(), i * 128 * 1024);
    EXPECT_EQ(mine[i].bytes, 128u * 1024);
  }
}

TEST_F(TracefsSourceTest, OtherDisksAreNotRecorded) {
  auto other = LoopDevice::Make(folder_, kDiskBytes);
  ASSERT_TRUE(other.ok());
  const UniqueFd elsewhere = OpenDirect((*other)->path());
  const auto source = Start();
  for (uint64_t i = 0; i < 10; ++i) WriteAt(elsewhere, i * 8, 4096);
  WriteAt(OpenDirect(), 800, 4096);
  const std::vector<IoRecord> mine = Collect(source.get()).Of(pid_);
  ASSERT_THAT(mine, SizeIs(1));
  EXPECT_EQ(mine[0].lba, Lba(800));
}

TEST_F(TracefsSourceTest, SeveralDisksAreRecordedOnOneClock) {
  auto other = LoopDevice::Make(folder_, kDiskBytes);
  ASSERT_TRUE(other.ok());
  disks_.push_back(BlockDevices().Under((*other)->path())->at(0));
  const UniqueFd first = OpenDirect();
  const UniqueFd second = OpenDirect((*other)->path());
  const auto source = Start();
  for (uint64_t i = 0; i < 5; ++i) {
    WriteAt(first, i * 8, 4096);
    WriteAt(second, i * 8, 4096);
  }
  const std::vector<IoRecord> mine = Collect(source.get()).Of(pid_);
  ASSERT_THAT(mine, SizeIs(10));
  for (size_t i = 0; i < mine.size(); ++i) EXPECT_EQ(mine[i].device, i % 2);
}

// A partition that no table names, as long as the object lives.
class Partition {
 public:
  Partition(const std::string& disk, uint64_t first_sector, uint64_t sectors)
      : disk_(open(disk.c_str(), O_RDWR | O_CLOEXEC)) {
    part_.start = static_cast<int64_t>(first_sector * kSectorBytes);
    part_.length = static_cast<int64_t>(sectors * kSectorBytes);
    part_.pno = 1;
    Ask(BLKPG_ADD_PARTITION);
  }
  ~Partition() { Ask(BLKPG_DEL_PARTITION); }
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

 private:
  void Ask(int what) {
    blkpg_ioctl_arg arg{};
    arg.op = what;
    arg.datalen = sizeof(part_);
    arg.data = &part_;
    EXPECT_EQ(ioctl(disk_.get(), BLKPG, &arg), 0) << strerror(errno);
  }
  UniqueFd disk_;
  blkpg_partition part_{};
};

TEST_F(TracefsSourceTest, IoOnAPartitionIsRecordedAtItsPlaceOnTheDisk) {
  // As a partition table would have it: 32,768 sectors from sector 2,048.
  const Partition one(loop_->path(), 2048, 32'768);
  const std::string partition = loop_->path() + "p1";
  ASSERT_TRUE(std::filesystem::exists(partition));
  disks_ = *BlockDevices().Under(partition);
  EXPECT_EQ(disks_.at(0).description.name(), loop_->name());
  const UniqueFd fd = OpenDirect(partition);
  const auto source = Start();
  WriteAt(fd, 8, 4096);
  const CollectingWriter writer = Collect(source.get());
  const std::vector<IoRecord> mine = writer.Of(pid_);
  ASSERT_THAT(mine, SizeIs(1));
  EXPECT_EQ(mine[0].device, 0u);
  EXPECT_EQ(mine[0].lba->sectors, 2048u + 8u);
  EXPECT_TRUE(mine[0].queue_ns) << "the bio names the partition, the request the disk";
  EXPECT_THAT(writer.losses, IsEmpty());
}

TEST_F(TracefsSourceTest, WhatAnOverrunCostIsWhatTheKernelCounted) {
  const UniqueFd disk = OpenDirect();
  const auto source = Start(/*buffer_bytes=*/8192);
  for (uint64_t i = 0; i < 3000; ++i) ReadAt(disk, i % 1000 * 8, 4096);
  CollectingWriter writer;
  CapturePipeline pipeline(&writer, disks_, CapturePipelineOptions());
  ASSERT_TRUE(source->Poll(0, &pipeline).ok());
  for (uint64_t i = 0; i < 3000; ++i) ReadAt(disk, i % 1000 * 8, 4096);
  ASSERT_TRUE(source->Poll(0, &pipeline).ok());
  for (uint64_t i = 0; i < 20; ++i) ReadAt(disk, i * 8, 4096);
  ASSERT_TRUE(source->Stop(&pipeline).ok());
  ASSERT_TRUE(pipeline.Finish().ok());
  const uint64_t kernel_lost = *source->KernelLost();
  EXPECT_GT(kernel_lost, 1000u);
  EXPECT_EQ(writer.LossCount(proto::RING_OVERRUN), kernel_lost);
}

TEST_F(TracefsSourceTest, BuffersGrowUpToTheirBound) {
  const auto source = Start(/*buffer_bytes=*/256 * 1024);
  EXPECT_TRUE(*source->Grow(uint64_t{1} << 40));
  EXPECT_EQ(source->buffer_bytes_per_cpu(), 512u * 1024);
  EXPECT_FALSE(*source->Grow(512 * 1024));
}

TEST_F(TracefsSourceTest, WhatIsNotRecordedWhileBuffersGrowIsALossOfUnknownSize) {
  const UniqueFd disk = OpenDirect();
  for (const bool in_poll : {true, false}) {
    SCOPED_TRACE(in_poll);
    const auto source = Start(/*buffer_bytes=*/256 * 1024);
    ReadAt(disk, 0, 4096);
    Clock* const clock = Clock::Monotonic();
    const int64_t before_ns = clock->NowNs();
    ASSERT_TRUE(*source->Grow(uint64_t{1} << 40));
    const int64_t after_ns = clock->NowNs();
    ReadAt(disk, 8, 4096);
    CollectingWriter writer;
    CapturePipeline pipeline(&writer, disks_, CapturePipelineOptions());
    if (in_poll) {
      for (int turn = 0; turn < 2; ++turn) ASSERT_TRUE(source->Poll(0, &pipeline).ok());
    }
    ASSERT_TRUE(source->Stop(&pipeline).ok());
    ASSERT_TRUE(pipeline.Finish().ok());
    EXPECT_THAT(writer.Of(pid_), SizeIs(2));
    ASSERT_THAT(writer.losses, SizeIs(1));
    EXPECT_EQ(writer.losses[0].reason(), proto::RING_OVERRUN);
    EXPECT_FALSE(writer.losses[0].has_count());
    EXPECT_GE(writer.losses[0].from_ns(), before_ns);
    EXPECT_LT(writer.losses[0].from_ns(), writer.losses[0].to_ns());
    EXPECT_LE(writer.losses[0].to_ns(), after_ns);
  }
}

TEST_F(TracefsSourceTest, TwoRecordersSeeTheSame) {
  const UniqueFd disk = OpenDirect();
  const auto one = Start();
  const auto two = Start();
  for (uint64_t i = 0; i < 7; ++i) WriteAt(disk, i * 16, 8192);
  const std::vector<IoRecord> first = Collect(one.get()).Of(pid_);
  const std::vector<IoRecord> second = Collect(two.get()).Of(pid_);
  ASSERT_THAT(first, SizeIs(7));
  EXPECT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].lba, second[i].lba);
}

class TraceInstanceTest : public TracefsSourceTest {
 protected:
  void SetUp() override {
    TracefsSourceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    auto tracefs = KernelFs::Tracefs();
    ASSERT_TRUE(tracefs.ok()) << tracefs.status().message();
    tracefs_ = std::make_unique<KernelFs>(std::move(tracefs).value());
  }
  // Names of instances of process `pid`.
  std::vector<std::string> InstancesOf(pid_t pid) const {
    std::vector<std::string> names;
    const std::string prefix = "blktape-" + std::to_string(pid) + "-";
    for (const auto& entry :
         std::filesystem::directory_iterator(tracefs_->folder() + "/instances")) {
      const std::string name = entry.path().filename().string();
      if (name.substr(0, prefix.size()) == prefix) names.push_back(name);
    }
    return names;
  }
  // A recorder that dies without a chance to clean up.
  pid_t RecordAndDie() {
    const pid_t pid = fork();
    if (pid == 0) {
      const auto source = Start();
      raise(SIGKILL);
    }
    waitpid(pid, nullptr, 0);
    return pid;
  }

  std::unique_ptr<KernelFs> tracefs_;
};

TEST_F(TraceInstanceTest, AnInstanceIsGoneAfterStop) {
  const auto source = Start();
  EXPECT_THAT(InstancesOf(getpid()), SizeIs(1));
  Collect(source.get());
  EXPECT_THAT(InstancesOf(getpid()), IsEmpty());
}

TEST_F(TraceInstanceTest, AnInstanceIsGoneWithoutStopToo) {
  Start().reset();
  EXPECT_THAT(InstancesOf(getpid()), IsEmpty());
}

TEST_F(TraceInstanceTest, WhatAKilledRecorderLeftIsRemovedByTheNextStart) {
  const pid_t dead = RecordAndDie();
  EXPECT_THAT(InstancesOf(dead), SizeIs(1));
  const auto source = Start();
  EXPECT_THAT(InstancesOf(dead), IsEmpty());
}

TEST_F(TraceInstanceTest, ALivingRecordersInstanceStays) {
  const auto one = Start();
  const auto two = Start();
  EXPECT_THAT(InstancesOf(getpid()), SizeIs(2));
  RemoveDeadInstances(tracefs_->folder());
  EXPECT_THAT(InstancesOf(getpid()), SizeIs(2));
}

TEST_F(TraceInstanceTest, AReusedPidIsNotMistakenForTheDeadOwner) {
  EXPECT_TRUE(ProcessLives(OwnPidAndStart()));
  EXPECT_FALSE(ProcessLives(std::to_string(getpid()) + "-1"));
  EXPECT_FALSE(ProcessLives("nonsense"));
}

}  // namespace
}  // namespace blktape
