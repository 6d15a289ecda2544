#include "replay/issue/recorder_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>

namespace blktape {
namespace {

IssuedIo Numbered(uint64_t sequence) {
  IssuedIo io;
  io.sequence = sequence;
  return io;
}

TEST(RecorderThreadTest, TakesEverythingAndTellsOfTheFirstFailure) {
  std::atomic<bool> halt = false;
  uint64_t taken = 0;
  RecorderThread thread(
      [&taken](uint32_t lane, const IssuedIo& io) {
        EXPECT_EQ(lane, io.sequence % 2);
        ++taken;
        return io.sequence == 7 ? Status(StatusCode::kResourceExhausted, "disk full") : OkStatus();
      },
      /*lanes=*/2, &halt, /*gives_way=*/false);
  for (uint64_t sequence = 0; sequence < 50'000; ++sequence) {
    thread.Done(static_cast<uint32_t>(sequence % 2), Numbered(sequence));
  }
  EXPECT_EQ(thread.Join().message(), "disk full");
  EXPECT_EQ(taken, 50'000u);
  EXPECT_TRUE(halt);
}

TEST(RecorderThreadTest, GivesWayWhereItIsTold) {
  for (const bool gives_way : {false, true}) {
    std::atomic<bool> halt = false;
    int nice = -1;
    RecorderThread thread(
        [&nice](uint32_t, const IssuedIo&) {
          nice = getpriority(PRIO_PROCESS, 0);
          return OkStatus();
        },
        /*lanes=*/1, &halt, gives_way);
    thread.Done(0, Numbered(0));
    EXPECT_TRUE(thread.Join().ok());
    EXPECT_EQ(nice, gives_way ? 19 : getpriority(PRIO_PROCESS, 0));
  }
}

}  // namespace
}  // namespace blktape
