#include "replay/issue/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "replay/issue/buffer_arena.h"
#include "replay/plan/plan.h"
#include "tests/replay/plan/fake_records.h"

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::IsNull;
using testing::NotNull;

constexpr uint64_t kTargetBytes = uint64_t{1} << 30;

// All steps of these records. `return_all`: when there are no more, all buffers come back.
std::vector<PlannedIo> StepsOf(std::vector<IoRecord> records, BufferArena* arena,
                               const PayloadFill& fill, const ThreadedFeed::Options& options,
                               bool return_all = false) {
  PlanOptions plan_options;
  plan_options.target_of_device = {0};
  plan_options.address_map_of_device = {AddressMap({}, 0, kTargetBytes, kTargetBytes, 512)};
  plan_options.targets = {PlanTarget{.size_bytes = kTargetBytes, .abilities = {.discard = true}}};
  FakeRecords stream(std::move(records));
  Plan plan(&stream, plan_options);
  ThreadedFeed feed(&plan, arena, fill, options);
  feed.Start();
  std::vector<PlannedIo> steps;
  PlannedIo* step = nullptr;
  for (PlanFeed* const lane = feed.lane(0);;) {
    const PlanFeed::State state = lane->Peek(&step);
    if (state == PlanFeed::State::kEnd) break;
    if (state == PlanFeed::State::kNotYet) {
      std::this_thread::yield();
      continue;
    }
    steps.push_back(*step);
    lane->Pop();
  }
  if (return_all) {
    for (const PlannedIo& one : steps) feed.Return(0, one.buffer, one.bytes);
  }
  feed.Stop();
  EXPECT_TRUE(feed.status().ok());
  return steps;
}

TEST(ThreadedFeedTest, WritesAndTheLargerReadsHaveABufferAndOnlyWritesAreFilled) {
  Result<BufferArena> arena = BufferArena::Create(1 << 20);
  ASSERT_TRUE(arena.ok());
  std::vector<uint64_t> filled;
  const std::vector<PlannedIo> steps =
      StepsOf({Read(0, {}, 0, 4096), Read(1, {}, 8192, 4608), Write(2, {}, 16384, 512),
               Io(Op::kDiscard, 3, {}, 32768, 4096)},
              &*arena, [&filled](const PlannedIo& io) { filled.push_back(io.offset_bytes); },
              {.ahead_bytes = 1 << 19, .refill_bytes = 1 << 18, .unbuffered_read_bytes = 4096});
  std::vector<std::byte*> buffers;
  for (const PlannedIo& step : steps) buffers.push_back(step.buffer);
  EXPECT_THAT(buffers, ElementsAre(IsNull(), NotNull(), NotNull(), IsNull()));
  EXPECT_NE(steps[1].buffer, steps[2].buffer);
  EXPECT_THAT(filled, ElementsAre(16384));
}

TEST(ThreadedFeedTest, ItsThreadGivesWayWhereItIsTold) {
  for (const bool gives_way : {false, true}) {
    Result<BufferArena> arena = BufferArena::Create(1 << 20);
    ASSERT_TRUE(arena.ok());
    int nice = -1;
    StepsOf({Write(0, {}, 0, 4096)}, &*arena,
            [&nice](const PlannedIo&) { nice = getpriority(PRIO_PROCESS, 0); },
            {.ahead_bytes = 1 << 19, .refill_bytes = 1 << 18, .gives_way = gives_way});
    EXPECT_EQ(nice, gives_way ? 19 : getpriority(PRIO_PROCESS, 0));
  }
}

// As a closed replay does at its end, which holds more I/Os than the feed has steps ready.
TEST(ThreadedFeedTest, AllBuffersMayComeBackWhenItsThreadHasEnded) {
  constexpr int kWrites = 40'000;
  Result<BufferArena> arena = BufferArena::Create(uint64_t{kWrites} * 4096);
  ASSERT_TRUE(arena.ok());
  std::vector<IoRecord> records;
  for (int i = 0; i < kWrites; ++i) records.push_back(Write(i, {}, uint64_t{4096} * i, 4096));
  const std::vector<PlannedIo> steps = StepsOf(
      std::move(records), &*arena, [](const PlannedIo&) {},
      {.ahead_bytes = arena->capacity_bytes(), .refill_bytes = arena->capacity_bytes() / 2},
      /*return_all=*/true);
  EXPECT_EQ(steps.size(), size_t{kWrites});
}

}  // namespace
}  // namespace blktape
