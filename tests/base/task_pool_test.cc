#include "base/task_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <vector>

namespace blktape {
namespace {

TEST(TaskPoolTest, WithoutHelpersTheCallerDoesAllInOrder) {
  TaskPool pool(0);
  std::vector<int> done;
  for (int i = 0; i < 3; ++i) pool.Run([&done, i] { done.push_back(i); });
  pool.Run([&done] { done.push_back(9); }, {.urgent = true});
  pool.HelpUntil([&done] { return done.size() == 4; });
  EXPECT_EQ(done, (std::vector<int>{9, 0, 1, 2}));
}

TEST(TaskPoolTest, TasksHandOutTasks) {
  for (const int helpers : {0, 1, 3}) {
    TaskPool pool(helpers);
    std::atomic<int> done = 0;
    const std::function<void(int)> spread = [&](int left) {
      if (left > 0) {
        pool.Run([&spread, left] { spread(left - 1); });
        pool.Run([&spread, left] { spread(left - 1); }, {.urgent = true, .home = left % 5});
      }
      ++done;
    };
    pool.Run([&spread] { spread(9); });
    pool.HelpUntil([&done] { return done == 1'023; });
    EXPECT_EQ(done, 1'023);
  }
}

TEST(TaskPoolTest, WhatHasNotBegunIsDropped) {
  std::atomic<int> done = 0;
  {
    TaskPool pool(0);
    pool.Run([&done] { ++done; });
  }
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace blktape
