#include "capture/assemble/capture_pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "capture/source/block_event.h"
#include "tests/live/collecting_writer.h"

namespace blktape {
namespace {

constexpr uint32_t kDisk = 259 << 20;
constexpr uint32_t kPid = 700;

class CapturePipelineTest : public testing::Test {
 protected:
  CapturePipelineTest() : pipeline_(&writer_, Disks(), {}) {}

  static std::vector<Disk> Disks() {
    std::vector<Disk> disks(1);
    disks[0].dev = kDisk;
    return disks;
  }

  // A read of 8 sectors that takes 100 ns, all of it on one CPU.
  void Read(uint32_t cpu, int64_t at_ns, uint64_t lba) {
    BlockEvent event;
    event.device = kDisk;
    event.cpu = cpu;
    event.op = Op::kRead;
    event.lba = Lba(lba);
    event.bytes = 4096;
    event.pid = kPid;
    event.action = BlockAction::kIssue;
    event.time_ns = at_ns;
    pipeline_.OnEvent(cpu, event);
    event.action = BlockAction::kComplete;
    event.time_ns = at_ns + 100;
    event.pid = 0;
    pipeline_.OnEvent(cpu, event);
  }

  void Name(const std::string& name, int64_t since_ns) {
    ProcessComm comm{};
    std::memcpy(comm.data(), name.data(), name.size());
    pipeline_.OnProcessName(kPid, since_ns, comm);
  }

  // In the order of their times.
  std::vector<std::string> ProcessesOfReads() {
    EXPECT_TRUE(pipeline_.Finish().ok());
    std::vector<std::string> names;
    for (const IoRecord& io : writer_.ios) {
      names.push_back(io.process ? writer_.processes[*io.process] : "");
    }
    return names;
  }

  CollectingWriter writer_;
  CapturePipeline pipeline_;
};

TEST_F(CapturePipelineTest, ANameIsKnownToWhatWasReadBeforeItFromAnotherStream) {
  // The process began on CPU 0 and moved to CPU 1, whose stream is read first.
  Read(1, 2000, 16);
  Name("dd", 990);
  Read(0, 1000, 8);
  pipeline_.OnWatermark(10'000);
  EXPECT_EQ(ProcessesOfReads(), (std::vector<std::string>{"dd", "dd"}));
}

TEST_F(CapturePipelineTest, WhatAProcessDidUnderAnOldNameKeepsIt) {
  Name("sh", 990);
  Read(0, 1000, 8);
  Name("dd", 1990);
  Read(0, 2000, 16);
  pipeline_.OnWatermark(10'000);
  EXPECT_EQ(ProcessesOfReads(), (std::vector<std::string>{"sh", "dd"}));
}

// A pid that a second process got while nobody read: both names are known before the I/O is seen.
TEST_F(CapturePipelineTest, AnIoHasTheNameOfItsTime) {
  Name("sh", 990);
  Name("dd", 1990);
  Read(1, 1000, 8);
  Read(1, 2000, 16);
  pipeline_.OnWatermark(10'000);
  EXPECT_EQ(ProcessesOfReads(), (std::vector<std::string>{"sh", "dd"}));
}

TEST_F(CapturePipelineTest, WithoutANameThereIsNone) {
  Read(0, 1000, 8);
  EXPECT_EQ(ProcessesOfReads(), std::vector<std::string>{""});
}

// A disk under an encrypted volume under a logical one, as the kernel's events tell of them.
class LayersTest : public CapturePipelineTest {
 protected:
  static constexpr uint32_t kCrypt = 253 << 20;
  static constexpr uint32_t kVolume = 253 << 20 | 1;
  static constexpr uint32_t kWorker = 9;
  static constexpr uint64_t kBytes = 4096;

  void SetUp() override { Layers(/*one_disk=*/true); }
  void Layers(bool one_disk) {
    pipeline_.SetLayers(
        {{.dev = kCrypt, .one_disk = one_disk}, {.dev = kVolume, .one_disk = one_disk}});
  }

  BlockEvent Event(BlockAction action, uint32_t device, uint64_t sector, uint32_t pid) {
    BlockEvent event;
    event.time_ns = now_ns_ += 100;
    event.action = action;
    event.device = device;
    event.op = Op::kWrite;
    event.flags = kFlagSync;
    event.lba = Lba(sector);
    event.bytes = kBytes;
    event.pid = pid;
    const std::string name = pid == kWorker ? "kworker/0:1" : "dd";
    std::memcpy(event.comm.data(), name.data(), name.size());
    return event;
  }
  int64_t Queue(uint32_t device, uint64_t sector, uint32_t pid, uint32_t flags = 0) {
    BlockEvent event = Event(BlockAction::kQueue, device, sector, pid);
    event.flags |= flags;
    pipeline_.OnEvent(0, event);
    return event.time_ns;
  }
  void Remap(uint32_t from, uint64_t from_sector, uint32_t to, uint64_t sector) {
    BlockEvent event = Event(BlockAction::kRemap, to, sector, kWorker);
    event.from_device = from;
    event.from_lba = Lba(from_sector);
    pipeline_.OnEvent(0, event);
  }
  void Serve(uint64_t sector, uint32_t flags = 0) {
    for (const BlockAction action : {BlockAction::kIssue, BlockAction::kComplete}) {
      BlockEvent event = Event(action, kDisk, sector, kWorker);
      event.flags |= flags;
      pipeline_.OnEvent(0, event);
    }
  }
  BlockEvent Flush(BlockAction action, uint32_t pid) {
    BlockEvent event = Event(action, kDisk, 0, pid);
    event.op = Op::kFlush;
    event.flags = kFlagSync;
    event.bytes = 0;
    pipeline_.OnEvent(0, event);
    return event;
  }
  // Down through both layers, of which the lower one submits by a thread of the kernel.
  void PassOn(uint64_t sector, uint32_t flags = 0) {
    Remap(kVolume, sector, kCrypt, sector + 10'000);
    Queue(kCrypt, sector + 10'000, kWorker, flags);
    Remap(kCrypt, sector + 10'000, kDisk, sector + 20'000);
    Queue(kDisk, sector + 20'000, kWorker, flags);
    Serve(sector + 20'000, flags);
  }
  const std::vector<IoRecord>& Records() {
    EXPECT_TRUE(pipeline_.Finish().ok());
    std::ranges::sort(writer_.ios, {}, [](const IoRecord& io) { return *io.issue_ns; });
    return writer_.ios;
  }

  int64_t now_ns_ = 0;
};

TEST_F(LayersTest, AnIoIsOfTheThreadThatQueuedItAbove) {
  Queue(kVolume, 8, 700);
  Queue(kVolume, 16, 701);
  PassOn(16);
  PassOn(8);
  // One that began on the disk itself, and where another lay before.
  const int64_t queued_ns = Queue(kDisk, 20'008, kWorker);
  Serve(20'008);
  const std::vector<IoRecord>& records = Records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].pid, 701u);
  EXPECT_EQ(writer_.processes[*records[0].process], "dd");
  EXPECT_EQ(records[1].pid, 700u);
  EXPECT_EQ(records[2].pid, kWorker);
  EXPECT_EQ(records[2].queue_ns, queued_ns);
  EXPECT_EQ(pipeline_.counts().unknown_device, 0u);
  EXPECT_EQ(pipeline_.counts().queued, 3u);
}

TEST_F(LayersTest, WhereABioIsSplitTheRestIsOfWhoSplitIt) {
  Queue(kVolume, 8, 700);
  BlockEvent split = Event(BlockAction::kSplit, kVolume, 8, 700);
  split.split_lba = Lba(12);
  pipeline_.OnEvent(0, split);
  PassOn(8);
  PassOn(12);
  EXPECT_EQ(Records().at(1).pid, 700u);
}

// device-mapper: a flush by who queued the write, then the write without PREFLUSH.
TEST_F(LayersTest, AWriteWithPreflushIsAsIfNothingWereBetween) {
  const int64_t queued_ns = Queue(kVolume, 8, 700, kFlagPreflush | kFlagFua);
  Flush(BlockAction::kQueue, 700);
  Flush(BlockAction::kIssue, kWorker);
  Flush(BlockAction::kComplete, kWorker);
  PassOn(8, kFlagFua);
  // What the thread flushes next is its own.
  Flush(BlockAction::kQueue, 700);
  Flush(BlockAction::kIssue, kWorker);
  Flush(BlockAction::kComplete, kWorker);
  const std::vector<IoRecord>& records = Records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].op, Op::kFlush);
  EXPECT_EQ(records[0].flags & kFlagDerived, kFlagDerived);
  EXPECT_EQ(records[0].queue_ns, std::nullopt);
  EXPECT_EQ(records[1].flags, kFlagSync | kFlagPreflush | kFlagFua | kFlagMapped);
  EXPECT_EQ(records[1].queue_ns, queued_ns);
  EXPECT_EQ(records[1].pid, 700u);
  EXPECT_EQ(records[2].flags & kFlagDerived, 0u);
  EXPECT_EQ(records[2].pid, 700u);
}

// Where the upper layer passes it on as it is, the lower one does it in two steps.
TEST_F(LayersTest, AWriteWithPreflushMayBeDividedByALowerLayer) {
  const int64_t queued_ns = Queue(kVolume, 8, 700, kFlagPreflush | kFlagFua);
  Remap(kVolume, 8, kCrypt, 10'008);
  Queue(kCrypt, 10'008, 700, kFlagPreflush | kFlagFua);
  Flush(BlockAction::kQueue, 700);
  Flush(BlockAction::kIssue, kWorker);
  Flush(BlockAction::kComplete, kWorker);
  Remap(kCrypt, 10'008, kDisk, 20'008);
  Queue(kDisk, 20'008, kWorker, kFlagFua);
  Serve(20'008, kFlagFua);
  const std::vector<IoRecord>& records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].flags & kFlagDerived, kFlagDerived);
  EXPECT_EQ(records[1].flags, kFlagSync | kFlagPreflush | kFlagFua | kFlagMapped);
  EXPECT_EQ(records[1].queue_ns, queued_ns);
  EXPECT_EQ(records[1].pid, 700u);
}

// Or none does: what the thread flushes next is its own.
TEST_F(LayersTest, AWriteWithPreflushMayBePassedOnAsItIs) {
  Queue(kVolume, 8, 700, kFlagPreflush | kFlagFua);
  Remap(kVolume, 8, kDisk, 20'008);
  const int64_t queued_ns = Queue(kDisk, 20'008, 700, kFlagPreflush | kFlagFua);
  Flush(BlockAction::kIssue, kWorker);
  Flush(BlockAction::kComplete, kWorker);
  Serve(20'008, kFlagFua);
  Flush(BlockAction::kQueue, 700);
  Flush(BlockAction::kIssue, kWorker);
  Flush(BlockAction::kComplete, kWorker);
  const std::vector<IoRecord>& records = Records();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].flags & kFlagDerived, kFlagDerived);
  EXPECT_EQ(records[1].flags, kFlagSync | kFlagPreflush | kFlagFua);
  EXPECT_EQ(records[1].queue_ns, queued_ns);
  EXPECT_EQ(records[2].flags & kFlagDerived, 0u);
  EXPECT_EQ(records[2].pid, 700u);
}

TEST_F(LayersTest, AFlushThatAnotherAskedForTooIsThatOnes) {
  Queue(kVolume, 8, 700, kFlagPreflush);
  Flush(BlockAction::kQueue, 700);
  const int64_t asked_ns = Flush(BlockAction::kQueue, 701).time_ns;
  Flush(BlockAction::kIssue, kWorker);
  Flush(BlockAction::kComplete, kWorker);
  const std::vector<IoRecord>& records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].flags & kFlagDerived, 0u);
  EXPECT_EQ(records[0].pid, 701u);
  EXPECT_EQ(records[0].queue_ns, asked_ns);
  EXPECT_EQ(records[0].merged_bios.value_or(0), 0u);
}

// The flush goes to each disk, the write to one.
TEST_F(LayersTest, OnSeveralDisksAFlushStaysWhatItIs) {
  Layers(/*one_disk=*/false);
  Queue(kVolume, 8, 700, kFlagPreflush);
  Flush(BlockAction::kQueue, 700);
  Flush(BlockAction::kIssue, kWorker);
  Flush(BlockAction::kComplete, kWorker);
  PassOn(8);
  const std::vector<IoRecord>& records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].flags & kFlagDerived, 0u);
  EXPECT_EQ(records[0].pid, 700u);
  EXPECT_EQ(records[1].flags & kFlagPreflush, 0u);
  EXPECT_EQ(records[1].pid, 700u);
}

}  // namespace
}  // namespace blktape
