#include "replay/issue/realtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Made by hand in the form of /proc/interrupts; CPU 2 is offline.
const std::string kTable =
    "           CPU0       CPU1       CPU3\n"
    " 28:          7          0          1  PCI-MSIX-0000:00:01.0   0-edge      nvme0q0\n"
    " 36:          0        100          5  PCI-MSIX-0000:00:02.0   1-edge      nvme0q1\n"
    "LOC:          0          0    9000000   Local timer interrupts\n"
    "ERR:          3\n";

TEST(QuietCpusTest, BeginWithThatOfTheFewestDeviceInterruptsOfThoseAllowed) {
  EXPECT_THAT(QuietCpus(kTable, {0, 1, 3}), ElementsAre(3, 0, 1));  // 6, 7 and 100
  EXPECT_THAT(QuietCpus(kTable, {0, 1}), ElementsAre(0, 1));
  EXPECT_THAT(QuietCpus(kTable, {1}), ElementsAre(1));
}

TEST(QuietCpusTest, OfEqualsTheLastIsFirst) {
  EXPECT_THAT(QuietCpus("  CPU0 CPU1\n 5:  2  2  dev\n", {0, 1}), ElementsAre(1, 0));
  EXPECT_THAT(QuietCpus("  CPU0 CPU1\n", {0, 1}), ElementsAre(1, 0));
}

TEST(QuietCpusTest, NoneWhereTheTableNamesNone) {
  EXPECT_THAT(QuietCpus(kTable, {2}), IsEmpty());
  EXPECT_THAT(QuietCpus("", {0}), IsEmpty());
  EXPECT_THAT(QuietCpus("nonsense\n", {0}), IsEmpty());
}

TEST(GiveWayTest, LowersThePriorityOfTheCallingThreadAlone) {
  const int before = getpriority(PRIO_PROCESS, 0);
  int nice = before;
  std::thread([&nice] {
    GiveWay();
    nice = getpriority(PRIO_PROCESS, 0);
  }).join();
  EXPECT_EQ(nice, 19);  // setpriority(2): the lowest
  EXPECT_EQ(getpriority(PRIO_PROCESS, 0), before);
}

constexpr int kWhoProcess = 1;
// The class of <linux/ioprio.h> in the upper bits: 0 none, 1 real time, 2 best effort, 3 idle.
constexpr int kClassShift = 13;
constexpr int kIdleClass = 3;

int64_t IoPriorityClass() { return syscall(SYS_ioprio_get, kWhoProcess, 0) >> kClassShift; }

// get_current_ioprio() of the kernel gives a SCHED_FIFO thread without one the real-time class.
TEST(RealtimeScopeTest, IoKeepsTheClassOfAnOrdinaryThread) {
  {
    const RealtimeScope scope({.punctual = true});
    EXPECT_EQ(IoPriorityClass(), 2);
  }
  EXPECT_EQ(IoPriorityClass(), 0);
}

// The smallest latency that anybody asked for, in us: what the kernel answers to a read of the
// file.
std::optional<int32_t> IdleExitLimitUs() {
  std::ifstream file("/dev/cpu_dma_latency", std::ios::binary);
  int32_t limit_us = 0;
  if (!file.read(reinterpret_cast<char*>(&limit_us), sizeof(limit_us))) return std::nullopt;
  return limit_us;
}

// A limit lasts as long as the file is open.
int LimitsHeld() {
  int held = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    held += std::filesystem::read_symlink(entry.path(), gone) == "/dev/cpu_dma_latency" ? 1 : 0;
  }
  return held;
}

// cpuidle-haltpoll.c states 1 us for a halt, so that any limit above 0 would allow it.
TEST(IdleLimitTest, AGuestDoesNotHalt) {
  EXPECT_EQ(IdleLimitUs("haltpoll"), 0);
  EXPECT_EQ(IdleLimitUs("intel_idle"), 20);
  EXPECT_EQ(IdleLimitUs("none"), 20);
  EXPECT_EQ(IdleLimitUs(""), 20);
}

TEST(RealtimeScopeTest, DeepIdleStatesAreKeptAwayWhileItLives) {
  if (!IdleExitLimitUs()) GTEST_SKIP() << "SKIPPED: /dev/cpu_dma_latency needs rights";
  for (const bool punctual : {false, true}) {
    const RealtimeScope scope({.punctual = punctual});
    EXPECT_LE(IdleExitLimitUs(), 20);
    EXPECT_EQ(LimitsHeld(), 1);
  }
  EXPECT_EQ(LimitsHeld(), 0);
  const RealtimeScope without({.limit_idle_states = false});
  EXPECT_EQ(LimitsHeld(), 0);
}

uint64_t LockedKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == "VmLck:" && status >> kib) return kib;
  }
  return 0;
}

TEST(RealtimeScopeTest, MemoryIsLockedUntilTheLastThreadEnds) {
  std::optional<RealtimeScope> first(std::in_place, RealtimeScope::Wish{});
  if (!testing::Value(first->granted(), testing::Contains("memory locked"))) {
    GTEST_SKIP() << "SKIPPED: locking memory needs rights";
  }
  {
    const RealtimeScope second({.punctual = true, .lane = 1});
  }
  EXPECT_GT(LockedKiB(), 0u);
  first.reset();
  EXPECT_EQ(LockedKiB(), 0u);
}

TEST(RealtimeScopeTest, AnIoPriorityThatTheUserGaveStays) {
  // In a thread that ends with the test: priorities are a thread's own.
  std::thread([] {
    ASSERT_EQ(syscall(SYS_ioprio_set, kWhoProcess, 0, kIdleClass << kClassShift), 0);
    {
      const RealtimeScope scope({.punctual = true});
      EXPECT_EQ(IoPriorityClass(), kIdleClass);
    }
    EXPECT_EQ(IoPriorityClass(), kIdleClass);
  }).join();
}

}  // namespace
}  // namespace blktape
