#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "replay/engine/engine_factory.h"

namespace blktape {
namespace {

using testing::ElementsAre;

class SimulatedEngineTest : public testing::Test {
 protected:
  void Open(EngineOptions options) {
    options.clock = &clock_;
    auto engine = OpenEngine("simulated", options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
  }
  size_t Submit(uint64_t tag, Op op = Op::kRead, uint64_t bytes = 4096) {
    const EngineRequest request{.tag = tag, .op = op, .bytes = bytes};
    return *engine_->Submit({&request, 1});
  }
  std::vector<uint64_t> Reap(int64_t deadline_ns) {
    std::array<EngineCompletion, 16> out;
    const size_t count = *engine_->Reap(out, deadline_ns);
    std::vector<uint64_t> tags;
    for (size_t i = 0; i < count; ++i) {
      tags.push_back(out[i].tag);
      last_ = out[i];
    }
    return tags;
  }
  // Services 100, 90, 80 ... ns by tag 0, 1, 2 ...
  static EngineOptions EarlierForLater() {
    EngineOptions options;
    options.script = [](const EngineRequest& request) -> EngineOptions::ScriptedService {
      return {.service_ns = 100 - 10 * static_cast<int64_t>(request.tag),
              .error = request.tag == 3 ? 5u : 0u};
    };
    return options;
  }

  FakeClock clock_{1'000};
  std::unique_ptr<Engine> engine_;
  EngineCompletion last_;
};

TEST_F(SimulatedEngineTest, WaitingMovesTheClockToTheNextCompletionAndNoFurther) {
  Open(EarlierForLater());
  Submit(0);
  Submit(1);
  EXPECT_THAT(Reap(INT64_MAX), ElementsAre(1));
  EXPECT_EQ(clock_.NowNs(), 1'090);
  EXPECT_EQ(last_.complete_ns, 1'090);
  EXPECT_EQ(last_.bytes_done, 4096u);
  EXPECT_THAT(Reap(INT64_MAX), ElementsAre(0));
  EXPECT_EQ(clock_.NowNs(), 1'100);
}

TEST_F(SimulatedEngineTest, WaitingEndsAtTheDeadline) {
  Open(EarlierForLater());
  Submit(0);
  EXPECT_THAT(Reap(1'050), ElementsAre());
  EXPECT_EQ(clock_.NowNs(), 1'050);
  EXPECT_EQ(engine_->in_flight(), 1u);
}

TEST_F(SimulatedEngineTest, ADeadlineInThePastDoesNotWait) {
  Open(EarlierForLater());
  Submit(0);
  EXPECT_THAT(Reap(0), ElementsAre());
  EXPECT_EQ(clock_.NowNs(), 1'000);
}

TEST_F(SimulatedEngineTest, ReapedLateACompletionKeepsItsTime) {
  Open(EarlierForLater());
  Submit(2);
  clock_.AdvanceNs(10'000);
  EXPECT_THAT(Reap(0), ElementsAre(2));
  EXPECT_EQ(last_.complete_ns, 1'080);
}

TEST_F(SimulatedEngineTest, CompletionsOfOneMomentKeepTheOrderOfSubmission) {
  EngineOptions options;
  options.script = [](const EngineRequest&) -> EngineOptions::ScriptedService {
    return {.service_ns = 5};
  };
  Open(options);
  for (uint64_t tag : {7, 3, 9, 1}) Submit(tag);
  EXPECT_THAT(Reap(INT64_MAX), ElementsAre(7, 3, 9, 1));
}

TEST_F(SimulatedEngineTest, AScriptedErrorIsTheRequestsAlone) {
  Open(EarlierForLater());
  Submit(3);
  EXPECT_THAT(Reap(INT64_MAX), ElementsAre(3));
  EXPECT_EQ(last_.error, 5u);
  EXPECT_EQ(last_.bytes_done, 0u);
  EXPECT_EQ(Submit(4), 1u);
}

TEST_F(SimulatedEngineTest, WithoutAScriptTheReferenceDriveServes) {
  Open({});
  Submit(0);
  EXPECT_THAT(Reap(INT64_MAX), ElementsAre(0));
  EXPECT_EQ(clock_.NowNs(), 1'000 + 80'000 + 2'048);
}

}  // namespace
}  // namespace blktape
