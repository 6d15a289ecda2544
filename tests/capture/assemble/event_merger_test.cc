#include "capture/assemble/event_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EventMergerTest : public ::testing::Test, public EventMerger::Output {
 protected:
  EventMergerTest() { Restart({}); }
  void Restart(const EventMergerOptions& options) {
    merger_ = std::make_unique<EventMerger>(this, options);
  }
  void Add(uint32_t stream, int64_t ns, BlockAction action = BlockAction::kQueue) {
    BlockEvent event;
    event.time_ns = ns;
    event.cpu = stream;
    event.action = action;
    merger_->Add(stream, event);
  }
  void OnOrderedEvent(const BlockEvent& event) override {
    times_.push_back(event.time_ns);
    actions_.push_back(event.action);
  }
  void OnMergeLoss(const proto::Loss& loss) override { losses_[loss.reason()] += loss.count(); }

  std::unique_ptr<EventMerger> merger_;
  std::vector<int64_t> times_;
  std::vector<BlockAction> actions_;
  std::map<proto::LossReason, uint64_t> losses_;
};

TEST_F(EventMergerTest, StreamsBecomeOneOrderUpToTheWatermark) {
  Add(0, 10);
  Add(0, 40);
  Add(3, 20);
  Add(3, 30);
  merger_->Release(40);
  EXPECT_THAT(times_, ElementsAre(10, 20, 30));
  merger_->Finish();
  EXPECT_THAT(times_, ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(EventMergerTest, AtEqualTimesAnIssueGoesBeforeACompletionOfAnotherStream) {
  Add(0, 10, BlockAction::kComplete);
  Add(1, 10, BlockAction::kIssue);
  Add(2, 10, BlockAction::kQueue);
  merger_->Finish();
  EXPECT_THAT(actions_,
              ElementsAre(BlockAction::kQueue, BlockAction::kIssue, BlockAction::kComplete));
}

TEST_F(EventMergerTest, TooLateAnEventIsCountedAndDeliveredNext) {
  Add(0, 10);
  Add(0, 50);
  merger_->Release(60);
  Add(1, 20);
  Add(0, 70);
  merger_->Release(60);
  EXPECT_THAT(times_, ElementsAre(10, 50, 20));
  EXPECT_EQ(losses_[proto::MERGE_WINDOW_EXCEEDED], 1u);
}

TEST_F(EventMergerTest, SmallStepBackIsCountedAndPutInPlace) {
  Add(0, 10);
  Add(0, 30);
  Add(0, 20);
  Add(0, 40);
  merger_->Finish();
  EXPECT_THAT(times_, ElementsAre(10, 20, 30, 40));
  EXPECT_EQ(losses_[proto::CLOCK_STEP], 1u);
}

TEST_F(EventMergerTest, LoneStampFarAheadIsLeftOutAndStallsNobody) {
  Add(0, 10);
  Add(0, 1'000'000'000'000'000);
  Add(0, 11);
  Add(0, 12);
  Add(1, 13);
  merger_->Release(14);
  EXPECT_THAT(times_, ElementsAre(10, 11, 12, 13));
  merger_->Finish();
  EXPECT_THAT(times_, ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(losses_[proto::CLOCK_STEP], 1u);
}

TEST_F(EventMergerTest, LoneStampFarBackIsLeftOut) {
  Add(0, 1'000'000'000'000);
  Add(0, 5);
  Add(0, 1'000'000'000'010);
  merger_->Finish();
  EXPECT_THAT(times_, ElementsAre(1'000'000'000'000, 1'000'000'000'010));
  EXPECT_EQ(losses_[proto::CLOCK_STEP], 1u);
}

TEST_F(EventMergerTest, ClockThatStaysSetBackIsFollowedAndCountedOnce) {
  Add(0, 1'000'000'000'000);
  merger_->Release(2'000'000'000'000);
  Add(0, 5);
  Add(0, 6);
  Add(0, 7);
  merger_->Finish();
  EXPECT_THAT(times_, ElementsAre(1'000'000'000'000, 5, 6, 7));
  EXPECT_EQ(losses_[proto::CLOCK_STEP], 1u);
  EXPECT_EQ(losses_[proto::MERGE_WINDOW_EXCEEDED], 0u);
}

TEST_F(EventMergerTest, LongIdleIsNoStray) {
  Add(0, 10);
  Add(0, 7'200'000'000'000);
  Add(0, 7'200'000'000'010);
  merger_->Finish();
  EXPECT_THAT(times_, ElementsAre(10, 7'200'000'000'000, 7'200'000'000'010));
  EXPECT_THAT(losses_, IsEmpty());
}

TEST_F(EventMergerTest, HoldsNoMoreThanItMayWithoutAnyWatermark) {
  EventMergerOptions options;
  options.held_events = 100;
  Restart(options);
  for (int64_t ns = 0; ns < 10'000; ++ns) {
    Add(static_cast<uint32_t>(ns % 4), ns);
    EXPECT_LE(merger_->held(), 100u);
  }
  merger_->Finish();
  ASSERT_EQ(times_.size(), 10'000u);
  EXPECT_TRUE(std::is_sorted(times_.begin(), times_.end()));
  EXPECT_THAT(losses_, IsEmpty());
}

}  // namespace
}  // namespace blktape
