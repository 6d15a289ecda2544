#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "analysis/profile.h"
#include "base/json.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "tests/analysis/small_profile.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TextReportTest, IsNarrowAndNamesTheShareOfFourKilobytes) {
  const std::string text = ProfileText(SmallProfile(), "monday.tape");
  EXPECT_THAT(text, HasSubstr("exactly 4 KiB: 70.0 % (70 of 100)"));
  EXPECT_THAT(text, HasSubstr("Finished cleanly, nothing lost."));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 80u) << line;
}

TEST(TextReportTest, FitsFortyColumnsAndSaysTheSame) {
  const std::string text = ProfileText(SmallProfile(), "monday.tape", 10, {.columns = 40});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 40u) << line;
  EXPECT_THAT(text, HasSubstr("exactly 4 KiB: 70.0 % (70 of 100)"));
}

TEST(TextReportTest, ColourAndBlocksOnlyWhereTheyAreWanted) {
  EXPECT_THAT(ProfileText(SmallProfile(), "monday.tape"), Not(HasSubstr("\x1b")));
  const std::string text =
      ProfileText(SmallProfile(), "x\x1b[2J", 10, {.colour = true, .unicode = true});
  EXPECT_THAT(text, HasSubstr("\x1b[1m"));
  EXPECT_THAT(text, HasSubstr("█"));
  EXPECT_THAT(text, HasSubstr("I/Os over time"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[2J")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[31mvery")));  // of the process's name
}

TEST(TextReportTest, OnlyAllIsAHundredPercent) {
  Profile profile = SmallProfile();
  profile.observed_ns = 10'000 * kNanosPerMilli;
  const auto busy = [&profile](int64_t tenths_of_per_mille) {
    profile.busy_ns = tenths_of_per_mille * kNanosPerMilli;
    return ProfileText(profile, "monday.tape");
  };
  EXPECT_THAT(busy(10'000), HasSubstr("The disk was busy 100 % of the time"));
  EXPECT_THAT(busy(9'999), HasSubstr("The disk was busy 99.9 % of the time"));
  EXPECT_THAT(busy(9'960), HasSubstr("The disk was busy 99.6 % of the time"));
  EXPECT_THAT(busy(9'940), HasSubstr("The disk was busy 99 % of the time"));
  EXPECT_THAT(busy(123), HasSubstr("The disk was busy 1.2 % of the time"));
}

TEST(TextReportTest, LongFiguresAreBroken) {
  Profile profile = SmallProfile();
  profile.data_requests = 123'456'789;
  profile.flushes_asked = 123'456'789;
  profile.flagged_writes_asked = 123'456'789;
  const std::string text = ProfileText(profile, "year.tape");
  EXPECT_THAT(text,
              HasSubstr("Flushes        123,456,789 asked for, 123,456,789 flagged writes, 0 "));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 80u) << line;
}

TEST(TextReportTest, ANameFromAForeignFileCannotSteerTheTerminal) {
  EXPECT_THAT(ProfileText(SmallProfile(), "x\x1b[2J"), Not(HasSubstr("\x1b")));
}

TEST(TextReportTest, APercentileWithoutEnoughSamplesIsNotGuessed) {
  const std::string text = ProfileText(SmallProfile(), "monday.tape");
  EXPECT_THAT(text, HasSubstr("n/a (n=50)"));  // p99 of 50 reads
}

TEST(TextReportTest, MissingDataIsSaidFirst) {
  const std::string text = ProfileText(SmallProfile(/*finished=*/false), "monday.tape");
  EXPECT_THAT(text, HasSubstr("NOT FINISHED CLEANLY"));
}

TEST(TextReportTest, AWindowIsNamedAndSoAreTheProcessesLeftOut) {
  Profile profile = SmallProfile();
  EXPECT_TRUE(ProfileJson(profile)["window"].is_null());
  profile.from_ns = 90'000'000'000;
  profile.processes.clear();
  for (int i = 0; i < 13; ++i) {
    profile.processes.emplace_back().name = "program" + std::to_string(i);
  }
  const std::string text = ProfileText(profile, "monday.tape");
  EXPECT_THAT(text, HasSubstr("Only what arrived from 90.0 s after the first I/O of the trace."));
  EXPECT_THAT(text, HasSubstr("and 3 more: --top 13 shows all"));
  EXPECT_THAT(ProfileText(profile, "monday.tape", 13), HasSubstr("program12"));
  EXPECT_EQ(ProfileJson(profile)["window"]["from_ns"], 90'000'000'000);
  EXPECT_TRUE(ProfileJson(profile)["window"]["to_ns"].is_null());
}

TEST(TextReportTest, AnEmptyTraceHasAReport) {
  ProfileBuilder builder;
  const Profile profile =
      builder.Finish(proto::Header(), proto::Summary(), [](uint32_t) { return std::string(); });
  EXPECT_THAT(ProfileText(profile, "empty.tape"), HasSubstr("0 I/Os"));
  EXPECT_THAT(ProfileText(profile, "empty.tape"), HasSubstr("Nothing happened"));
  EXPECT_EQ(ProfileJson(profile)["ios"], 0);
  EXPECT_TRUE(ProfileJson(profile)["d2c_ns"]["p99"].is_null());
}

TEST(JsonReportTest, WhatNothingTellsIsNull) {
  ProfileBuilder builder;
  IoRecord io;
  io.op = Op::kRead;
  io.lba = Lba(8);
  io.bytes = 4096;
  io.queue_ns = 1'000;
  builder.Add(io);
  const Json json = ProfileJson(
      builder.Finish(proto::Header(), proto::Summary(), [](uint32_t) { return std::string(); }));
  EXPECT_EQ(json["without_completion"], 1);
  EXPECT_TRUE(json["busy_ns"].is_null());
  EXPECT_TRUE(json["idle_ns"].is_null());
  for (const char* depth : {"queue_depth", "queue_depth_all_ops"}) {
    for (const char* figure : {"mean", "mean_busy", "max"}) {
      EXPECT_TRUE(json[depth][figure].is_null()) << depth << " " << figure;
    }
  }
  EXPECT_EQ(json["share_4k"], 1.0);
}

TEST(JsonReportTest, AShareOfNothingIsNull) {
  ProfileBuilder builder;
  const Json json = ProfileJson(
      builder.Finish(proto::Header(), proto::Summary(), [](uint32_t) { return std::string(); }));
  EXPECT_TRUE(json["share_4k"].is_null());
  EXPECT_TRUE(json["sequential_fraction"].is_null());
  EXPECT_EQ(json["queue_depth"]["max"], 0);
  EXPECT_TRUE(json["queue_depth"]["mean_busy"].is_null());
  EXPECT_EQ(json["busy_ns"], 0);
}

TEST(JsonReportTest, HasThePromisedKeys) {
  const Json json = ProfileJson(SmallProfile());
  EXPECT_EQ(json["ios"], 100);
  EXPECT_EQ(json["reads"], 50);
  EXPECT_EQ(json["writes"], 50);
  EXPECT_EQ(json["discards"], 0);
  EXPECT_EQ(json["flushes"], 0);
  EXPECT_EQ(json["read_bytes"], 35 * 4096 + 15 * 131'072);
  EXPECT_EQ(json["write_bytes"], 35 * 4096 + 15 * 131'072);
  EXPECT_EQ(json["duration_ns"], 99 * kNanosPerMilli);
  ASSERT_EQ(json["size_histogram"].size(), 2u);
  EXPECT_EQ(json["size_histogram"][0]["bytes"], 4096);
  EXPECT_EQ(json["size_histogram"][0]["count"], 70);
  EXPECT_EQ(json["sequential_fraction"], 0.0);
  EXPECT_EQ(json["queue_depth"]["max"], 1);
  EXPECT_DOUBLE_EQ(json["queue_depth"]["mean"].get<double>(), 5'000'000.0 / 99'050'000);
  EXPECT_EQ(json["busy_ns"], 100 * 50'000);
  EXPECT_EQ(json["d2c_ns"]["count"], 100);
  EXPECT_EQ(json["d2c_ns"]["p50"], 50'000);
  EXPECT_EQ(json["d2c_ns"]["p99"], 50'000);
  EXPECT_EQ(json["d2c_ns"]["max"], 50'000);
  EXPECT_EQ(json["d2c_ns"]["mean"], 50'000.0);
  EXPECT_EQ(json["lost_events"], 0);
  EXPECT_EQ(json["finished_cleanly"], true);
}

}  // namespace
}  // namespace blktape
