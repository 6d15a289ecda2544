#include "replay/realtime.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>

namespace blktape {
namespace {

// Made by hand in the form of /proc/interrupts; CPU 2 is offline.
const std::string kTable =
    "           CPU0       CPU1       CPU3\n"
    " 28:          7          0          1  PCI-MSIX-0000:00:01.0   0-edge      nvme0q0\n"
    " 36:          0        100          5  PCI-MSIX-0000:00:02.0   1-edge      nvme0q1\n"
    "LOC:          0          0    9000000   Local timer interrupts\n"
    "ERR:          3\n";

TEST(QuietestCpuTest, HasServedTheFewestDeviceInterruptsOfThoseAllowed) {
  EXPECT_EQ(QuietestCpu(kTable, {0, 1, 3}), 3);  // 7, 100 and 6
  EXPECT_EQ(QuietestCpu(kTable, {0, 1}), 0);
  EXPECT_EQ(QuietestCpu(kTable, {1}), 1);
}

TEST(QuietestCpuTest, OfEqualsTheLast) {
  EXPECT_EQ(QuietestCpu("  CPU0 CPU1\n 5:  2  2  dev\n", {0, 1}), 1);
  EXPECT_EQ(QuietestCpu("  CPU0 CPU1\n", {0, 1}), 1);
}

TEST(QuietestCpuTest, AbsentWhereTheTableNamesNone) {
  EXPECT_EQ(QuietestCpu(kTable, {2}), std::nullopt);
  EXPECT_EQ(QuietestCpu("", {0}), std::nullopt);
  EXPECT_EQ(QuietestCpu("nonsense\n", {0}), std::nullopt);
}

// The class of <linux/ioprio.h> in the upper bits: 0 none, 1 real time, 2 best effort.
int64_t IoPriorityClass() {
  constexpr int kWhoProcess = 1;
  return syscall(SYS_ioprio_get, kWhoProcess, 0) >> 13;
}

// get_current_ioprio() of the kernel gives a SCHED_FIFO thread without one the real-time class.
TEST(RealtimeScopeTest, IoKeepsTheClassOfAnOrdinaryThread) {
  {
    const RealtimeScope scope({.punctual = true});
    EXPECT_EQ(IoPriorityClass(), 2);
  }
  EXPECT_EQ(IoPriorityClass(), 0);
}

}  // namespace
}  // namespace blktape
