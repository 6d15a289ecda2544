#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What a verb was given.
struct Options {
  std::string trace;
  std::vector<std::string> devices;
  bool force = false;
  uint64_t count = 1;
  double speed = 1;
  uint64_t size_bytes = 0;
  int64_t duration_ns = 0;
  std::string engine = "auto";
  std::vector<std::string> command;
  bool speed_given = false;
};

// Runs `blktape verb WORDS...` and leaves what it was given in `seen`.
class FlagsTest : public ::testing::Test {
 protected:
  int Run(const std::vector<std::string>& words) {
    Command verb;
    verb.name = "verb";
    verb.summary = "A verb of the test.";
    verb.declare = [this](Flags* flags) -> std::function<int()> {
      auto options = std::make_shared<Options>();
      flags->Positional("TRACE", &options->trace, "what to read");
      flags->TextList("-d,--device", &options->devices, "may be given several times", "DEVICE");
      flags->Switch("--force", &options->force, "a switch");
      flags->Count("--count", &options->count, "a whole number");
      flags->Number("--speed", &options->speed, "a factor");
      flags->Size("--size", &options->size_bytes, "bytes");
      flags->Duration("--duration", &options->duration_ns, "time");
      flags->Choice("--engine", &options->engine, {"auto", "null"}, "one of");
      flags->AfterDashes(&options->command, "what to run");
      return [this, options, flags] {
        seen_ = *options;
        seen_.speed_given = flags->Given("--speed");
        ran_ = true;
        return 41;
      };
    };
    Command plain;
    plain.name = "plain";
    plain.declare = [](Flags* /*flags*/) -> std::function<int()> { return [] { return 0; }; };
    std::vector<std::string> all = {"blktape"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    argv.reserve(all.size());
    for (std::string& word : all) argv.push_back(word.data());
    ::testing::internal::CaptureStderr();
    const int code = RunMain(static_cast<int>(argv.size()), argv.data(), {verb, plain});
    said_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  Options seen_;
  bool ran_ = false;
  std::string said_;
};

TEST_F(FlagsTest, TheExitCodeIsTheVerbs) { EXPECT_EQ(Run({"verb", "a.tape"}), 41); }

TEST_F(FlagsTest, WhatIsNotGivenKeepsItsDefault) {
  Run({"verb", "a.tape"});
  EXPECT_EQ(seen_.trace, "a.tape");
  EXPECT_THAT(seen_.devices, IsEmpty());
  EXPECT_FALSE(seen_.force);
  EXPECT_EQ(seen_.count, 1u);
  EXPECT_EQ(seen_.engine, "auto");
  EXPECT_FALSE(seen_.speed_given);
}

TEST_F(FlagsTest, UnitsAreUnderstood) {
  Run({"verb", "a.tape", "--size", "64k", "--duration=25ms", "--speed", "2.5", "--count", "7"});
  EXPECT_EQ(seen_.size_bytes, 65536u);
  EXPECT_EQ(seen_.duration_ns, 25'000'000);
  EXPECT_EQ(seen_.speed, 2.5);
  EXPECT_EQ(seen_.count, 7u);
  EXPECT_TRUE(seen_.speed_given);
}

TEST_F(FlagsTest, AListTakesOneWordATimeSoThatPositionsStayFree) {
  Run({"verb", "-d", "/dev/a", "--device", "/dev/b", "a.tape"});
  EXPECT_THAT(seen_.devices, ElementsAre("/dev/a", "/dev/b"));
  EXPECT_EQ(seen_.trace, "a.tape");
}

TEST_F(FlagsTest, WordsAfterTheDashesAreTheCommandsOwn) {
  Run({"verb", "a.tape", "--", "cp", "--force", "-d", "x", "--", "y"});
  EXPECT_THAT(seen_.command, ElementsAre("cp", "--force", "-d", "x", "--", "y"));
  EXPECT_FALSE(seen_.force);
}

TEST_F(FlagsTest, AVerbWithoutACommandRefusesOne) {
  EXPECT_EQ(Run({"plain", "--", "cp"}), kExitUsage);
}

TEST_F(FlagsTest, AMissingOrSuperfluousWordIsAUsageError) {
  EXPECT_EQ(Run({"verb"}), kExitUsage);
  EXPECT_EQ(Run({"verb", "a.tape", "b.tape"}), kExitUsage);
  EXPECT_FALSE(ran_);
}

TEST_F(FlagsTest, AMistypedFlagIsNamedThoughAWordIsMissingToo) {
  EXPECT_EQ(Run({"verb", "--froce"}), kExitUsage);
  EXPECT_THAT(said_, HasSubstr("--froce"));
  EXPECT_EQ(Run({"verb", "--force"}), kExitUsage);
  EXPECT_THAT(said_, HasSubstr("TRACE"));
}

TEST_F(FlagsTest, AValueThatMakesNoSenseIsNamedWithItsFlag) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--size", "much"},
                                             {"--duration", "4 parsecs"},
                                             {"--count", "-3"},
                                             {"--speed", "fast"},
                                             {"--engine", "steam"}}) {
    std::vector<std::string> all = {"verb", "a.tape"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(Run(all), kExitUsage) << words[0];
    EXPECT_NE(said_.find(words[0]), std::string::npos) << said_;
  }
  EXPECT_FALSE(ran_);
}

TEST(FailTest, AnArgumentThatMakesNoSenseIsUsageAndTheWorldIsFailure) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Fail(Status(StatusCode::kInvalidArgument, "--speed 0")), kExitUsage);
  EXPECT_EQ(Fail(Status(StatusCode::kNotFound, "a.tape: No such file or directory")), kExitFailed);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "error: --speed 0\nerror: a.tape: No such file or directory\n");
}

}  // namespace
}  // namespace blktape
