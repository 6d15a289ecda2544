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
std::vector<Step> RunAll(const std::vector<uint64_t>& cycles, uint64_t seed, size_t per_round = 8) {
  CampaignTurns turns(cycles.size(), per_round, seed);
  std::mutex mutex;
  std::vector<Step> ran;
  std::vector<std::thread> threads;
  for (size_t campaign = 0; campaign < cycles.size(); ++campaign) {
    threads.emplace_back([&, campaign] {
      for (uint64_t cycle = 1; cycle <= cycles[campaign]; ++cycle) {
        for (int run = 0; run < 2; ++run) {
          EXPECT_TRUE(turns.Begin(campaign, cycle));
          const std::unique_lock alone(mutex, std::try_to_lock);
          EXPECT_TRUE(alone.owns_lock()) << "two at once";
          ran.emplace_back(campaign, cycle);
        }
      }
      turns.Leave(campaign, /*failed=*/false);
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

TEST(CampaignTurnsTest, ARoundBeginsWhenTheOneBeforeHasEnded) {
  // Two campaigns a round; 2 runs for each of 2, 1, 3 and 1 cycles.
  const std::vector<Step> ran = RunAll({2, 1, 3, 1}, /*seed=*/5, /*per_round=*/2);
  ASSERT_EQ(ran.size(), 14u);
  for (size_t i = 0; i < ran.size(); ++i) EXPECT_EQ(ran[i].first / 2, i < 6 ? 0u : 1u) << i;
}

TEST(CampaignTurnsTest, OneThatFailsBeforeTheFirstTurnCallsAllOff) {
  CampaignTurns turns(2, 2, /*seed=*/1);
  std::thread other([&turns] {
    EXPECT_FALSE(turns.Begin(0, 1));
    turns.Leave(0, /*failed=*/true);
  });
  turns.Leave(1, /*failed=*/true);
  other.join();
}

TEST(CampaignTurnsTest, OneThatFailsLaterDoesNot) {
  CampaignTurns turns(2, 2, /*seed=*/1);
  std::thread other([&turns] {
    EXPECT_TRUE(turns.Begin(0, 1));
    turns.Leave(0, /*failed=*/true);
  });
  EXPECT_TRUE(turns.Begin(1, 1));
  EXPECT_TRUE(turns.Begin(1, 2));  // once the other has left
  other.join();
  turns.Leave(1, /*failed=*/false);
}

}  // namespace
}  // namespace blktape
