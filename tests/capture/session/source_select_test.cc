#include "capture/session/source_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/capture/session/fake_source.h"
#include "tests/capture/source/recording_sink.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What makes a source is a plain function.
FakeSource::State first_state;
FakeSource::State second_state;

class SourceSelectTest : public ::testing::Test {
 protected:
  SourceSelectTest() {
    first_state = {};
    second_state = {};
  }
  Result<StartedSource> Start(const std::string& kind) {
    static const SourceKind kKinds[] = {
        {"first",
         [](const SourceRequest&) -> std::unique_ptr<LiveSource> {
           return std::make_unique<FakeSource>("first", &first_state);
         }},
        {"second",
         [](const SourceRequest&) -> std::unique_ptr<LiveSource> {
           return std::make_unique<FakeSource>("second", &second_state);
         }},
    };
    SourceRequest request;
    request.kind = kind;
    return StartLiveSource(request, kKinds);
  }
};

TEST_F(SourceSelectTest, AutoTakesTheFirstThatWorks) {
  const auto started = Start("auto");
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->source->name(), "first");
}

TEST_F(SourceSelectTest, AutoGoesOnWhereASourceFailsToStart) {
  first_state.start = Status(StatusCode::kPermissionDenied, "no");
  const auto started = Start("auto");
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->source->name(), "second");
  EXPECT_THAT(started->refused, ElementsAre("no"));
}

TEST_F(SourceSelectTest, AutoGoesOnWhereASourceFailsWhenItIsFirstAsked) {
  first_state.poll = Status(StatusCode::kUnavailable, "a ring of no use");
  const auto started = Start("auto");
  ASSERT_TRUE(started.ok());
  EXPECT_EQ(started->source->name(), "second");
  EXPECT_THAT(started->refused, ElementsAre("a ring of no use"));
  EXPECT_EQ(Start("first").status().message(), "a ring of no use");
}

TEST_F(SourceSelectTest, WhatItToldWhenFirstAskedIsKept) {
  IoRecord record;
  record.bytes = 4096;
  first_state.to_tell = {record};
  auto started = Start("auto");
  ASSERT_TRUE(started.ok());
  RecordingSink sink;
  started->told.Replay(&sink);
  ASSERT_EQ(sink.finished.size(), 1u);
  EXPECT_EQ(sink.finished[0].bytes, 4096u);
}

TEST_F(SourceSelectTest, WhereNoneWorksAllAreNamed) {
  first_state.start = Status(StatusCode::kUnavailable, "not this");
  second_state.poll = Status(StatusCode::kUnavailable, "nor that");
  const auto started = Start("auto");
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.status().message(), HasSubstr("not this"));
  EXPECT_THAT(started.status().message(), HasSubstr("nor that"));
}

}  // namespace
}  // namespace blktape
