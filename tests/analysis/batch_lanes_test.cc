// What passes through lanes arrives once, in order, prepared; and once all have passed the lanes
// may be destroyed at once (under the address sanitizer a thread that is late is found).
#include "analysis/batch_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/task_pool.h"

namespace blktape {
namespace {

using testing::ElementsAre;

struct NumberedBatch : LaneBatch {
  int number = 0;
  int prepared = 0;
  bool first_lane_done = false;
};

struct Outcome {
  std::vector<int> first, second;
  int out_of_turn = 0;
};

Outcome PassThree(TaskPool* pool) {
  Outcome outcome;
  std::atomic<int> prepared = 0, recycled = 0;
  auto lanes = std::make_unique<BatchLanes<NumberedBatch>>(
      /*most=*/2,
      [&](NumberedBatch* batch) {
        batch->prepared = batch->number * 10;
        ++prepared;
      },
      [&](NumberedBatch* batch) {
        batch->first_lane_done = false;
        ++recycled;
      });
  auto* const first = lanes->Add([&](NumberedBatch* batch) {
    outcome.first.push_back(batch->prepared);
    batch->first_lane_done = true;
  });
  auto* const second = lanes->Add([&](NumberedBatch* batch) {
    outcome.second.push_back(batch->prepared);
    if (!batch->first_lane_done) ++outcome.out_of_turn;
  });
  second->after = first;
  lanes->Add([](NumberedBatch*) { ADD_FAILURE() << "a lane that is not used"; })->used = false;
  if (pool != nullptr) lanes->WorkOn(pool);
  for (int number = 1; number <= 3; ++number) {
    const std::shared_ptr<NumberedBatch> batch = lanes->NewBatch(/*home=*/0);
    batch->number = number;
    batch->weight = 1;
    lanes->Pass(batch);
  }
  lanes->Wait();
  EXPECT_EQ(prepared, 3);
  EXPECT_EQ(recycled, 3);
  lanes.reset();
  return outcome;
}

void ExpectInOrder(const Outcome& outcome) {
  ASSERT_THAT(outcome.first, ElementsAre(10, 20, 30));
  ASSERT_THAT(outcome.second, ElementsAre(10, 20, 30));
  ASSERT_EQ(outcome.out_of_turn, 0);
}

TEST(BatchLanesTest, PassesInOrderWithoutAPool) { ExpectInOrder(PassThree(nullptr)); }

TEST(BatchLanesTest, PassesInOrderOnThreadsAndEndsWhenAllHavePassed) {
  TaskPool pool(3);
  for (int round = 0; round < 3000; ++round) ExpectInOrder(PassThree(&pool));
}

}  // namespace
}  // namespace blktape
