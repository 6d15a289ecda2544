#include "replay/issue/frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace blktape {
namespace {

TEST(FrontierTest, StandsBeforeTheOldestThatIsOut) {
  Frontier frontier(3);
  EXPECT_EQ(frontier.complete_through(), 0u);
  frontier.Take(2);  // the 1st
  frontier.Take(0);  // the 2nd
  EXPECT_EQ(frontier.complete_through(), 0u);
  frontier.Done(0);
  EXPECT_EQ(frontier.complete_through(), 0u) << "the 1st is still out";
  frontier.Take(0);  // the 3rd
  frontier.Done(2);
  EXPECT_EQ(frontier.complete_through(), 2u);
  frontier.Done(0);
  EXPECT_EQ(frontier.complete_through(), 3u);
}

TEST(FrontierTest, AgreesWithCountingByHandWhateverTheOrderOfCompletion) {
  constexpr uint32_t kSlots = 16;
  Frontier frontier(kSlots);
  std::mt19937 random(1);
  std::vector<uint32_t> free;
  for (uint32_t slot = 0; slot < kSlots; ++slot) free.push_back(slot);
  std::map<uint64_t, uint32_t> out;  // number to slot
  uint64_t taken = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (!free.empty() && (out.empty() || random() % 2 == 0)) {
      std::swap(free[random() % free.size()], free.back());
      frontier.Take(free.back());
      out[++taken] = free.back();
      free.pop_back();
    } else {
      auto done = out.begin();
      std::advance(done, random() % out.size());
      frontier.Done(done->second);
      free.push_back(done->second);
      out.erase(done);
    }
    ASSERT_EQ(frontier.complete_through(), out.empty() ? taken : out.begin()->first - 1);
  }
}

}  // namespace
}  // namespace blktape
