#include "capture/assemble/capture_pipeline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
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

}  // namespace
}  // namespace blktape
