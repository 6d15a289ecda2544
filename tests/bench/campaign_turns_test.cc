#include "bench/campaign_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace blktape {
namespace {

using Step = std::pair<size_t, uint64_t>;  // campaign, cycle

// Each campaign does two runs a cycle. What ran, in order; two at once fail the test.
std::vector<Step> RunAll(const std::vector<uint64_t>& cycles, uint64_t seed) {
  CampaignTurns turns(cycles.size(), seed);
  std::mutex mutex;
  std::vector<Step> ran;
  std::vector<std::thread> threads;
  for (size_t campaign = 0; campaign < cycles.size(); ++campaign) {
    threads.emplace_back([&, campaign] {
      for (uint64_t cycle = 1; cycle <= cycles[campaign]; ++cycle) {
        for (int run = 0; run < 2; ++run) {
          turns.Begin(campaign, cycle);
          const std::unique_lock alone(mutex, std::try_to_lock);
          EXPECT_TRUE(alone.owns_lock()) << "two at once";
          ran.emplace_back(campaign, cycle);
        }
      }
      turns.Leave(campaign);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ran;
}

TEST(CampaignTurnsTest, AllDoACycleBeforeOneDoesTheNext) {
  const std::vector<Step> ran = RunAll({3, 3, 3}, /*seed=*/1);
  ASSERT_EQ(ran.size(), 18u);
  for (size_t i = 0; i < ran.size(); ++i) {
    EXPECT_EQ(ran[i].second, i / 6 + 1) << "run " << i;
    EXPECT_EQ(ran[i], ran[i / 2 * 2]) << "both runs of a cycle follow one another";
  }
}

TEST(CampaignTurnsTest, TheOrderIsRandomAndRepeatable) {
  EXPECT_EQ(RunAll({8, 8, 8}, 7), RunAll({8, 8, 8}, 7));
  std::set<std::vector<size_t>> orders;
  const std::vector<Step> ran = RunAll({8, 8, 8}, 7);
  for (size_t cycle = 0; cycle < 8; ++cycle) {
    orders.insert({ran[cycle * 6].first, ran[cycle * 6 + 2].first, ran[cycle * 6 + 4].first});
  }
  EXPECT_GT(orders.size(), 1u);
}

TEST(CampaignTurnsTest, OneThatLeavesEarlyHoldsUpNobody) {
  const std::vector<Step> ran = RunAll({1, 4, 0}, 3);
  EXPECT_EQ(std::count_if(ran.begin(), ran.end(), [](const Step& run) { return run.first == 1; }),
            8);
  EXPECT_EQ(ran.size(), 10u);
}

}  // namespace
}  // namespace blktape
