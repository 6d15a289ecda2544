#include "analysis/validity.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/invalid_reason.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint64_t kIos = 100;

class RunValidityTest : public ::testing::Test {
 protected:
  RunValidityTest() {
    cut_.records = kIos;
    cut_.data_requests = kIos;
    cut_.read_bytes = kIos * 4096;
    Segment all;
    all.end_ordinal = kIos;
    all.foreground = kIos;
    all.by_class = {kIos, 0, 0};
    cut_.segments = {all};
    outcome_.set_planned(kIos);
    outcome_.set_issued(kIos);
    outcome_.set_completed(kIos);
    outcome_.set_timed_ios(kIos);
    outcome_.set_lateness_p999_ns(100'000);
    outcome_.set_null_engine_ns(500);
    outcome_.set_issuer_busy_max_share_ppm(900'000);
    outcome_.set_foreign_sectors(0);
  }

  std::vector<std::string> Reasons(RunKind kind = RunKind::kOpen) { return Sentences(Why(kind)); }

  // The reasons against a run of ios_ reads of 4 KiB that took 10 us each.
  InvalidReasons Why(RunKind kind = RunKind::kOpen) {
    RunCostsBuilder builder(&cut_);
    for (const proto::Loss& loss : losses_) builder.OnLoss(loss);
    for (uint64_t i = 0; i < ios_; ++i) {
      IoRecord io;
      io.lba = Lba(i * 8);
      io.bytes = 4096;
      io.queue_ns = static_cast<int64_t>(i) * 1'000'000;
      io.issue_ns = *io.queue_ns + host_late_ns_;
      io.backlog_ns = 0;
      io.complete_ns = *io.issue_ns + 10'000;
      io.ordinal = i;
      change_(&io);
      builder.Add(io);
    }
    proto::Summary summary;
    summary.set_records(ios_);
    summary.set_recovered(recovered_);
    if (tells_how_it_went_) *summary.mutable_replay() = outcome_;
    return WhyRunInvalid(
        cut_, builder.Finish(proto::Header(), has_summary_ ? std::optional(summary) : std::nullopt),
        kind);
  }

  Segmentation cut_;
  proto::ReplayOutcome outcome_;
  uint64_t ios_ = kIos;
  int64_t host_late_ns_ = 0;  // each I/O
  // What else is wrong with the result.
  std::function<void(IoRecord*)> change_ = [](IoRecord*) {};
  std::vector<proto::Loss> losses_;
  bool has_summary_ = true;
  bool tells_how_it_went_ = true;
  bool recovered_ = false;
};

// Rule 1 counts what a shared commit writes once, however often it was issued.
TEST_F(RunValidityTest, CommitsMayBeSharedInAnotherWay) {
  outcome_.mutable_commits()->set_copies(10);
  outcome_.mutable_commits()->set_left_out(7);
  outcome_.set_issued(kIos + 3);
  outcome_.set_completed(kIos + 3);
  EXPECT_THAT(Reasons(), IsEmpty());
  outcome_.mutable_commits()->set_left_out(8);
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("101 I/Os issued and 0 skipped by name")));
}

TEST_F(RunValidityTest, ARunAtEveryLimitIsValid) { EXPECT_THAT(Reasons(), IsEmpty()); }

TEST_F(RunValidityTest, FailedShortAndWrongIosMakeItInvalid) {
  outcome_.set_errors(1);
  outcome_.set_short_transfers(2);
  outcome_.set_verify_mismatches(3);
  EXPECT_THAT(Reasons(), ElementsAre("rule 1: 1 I/Os failed", "rule 1: 2 I/Os were short",
                                     "rule 1: 3 reads verified wrong"));
}

TEST_F(RunValidityTest, MissingIosMakeItInvalidButNamedSkipsDoNot) {
  outcome_.set_issued(kIos - 4);
  outcome_.set_completed(kIos - 4);
  EXPECT_THAT(Reasons(), ElementsAre(AllOf(StartsWith("rule 1"), HasSubstr("96 I/Os issued"))));
  (*outcome_.mutable_skipped())["discard"] = 4;
  EXPECT_THAT(Reasons(), IsEmpty());
}

TEST_F(RunValidityTest, AnIoThatGatesNothingThoughItsCompletionIsRecordedMakesItInvalid) {
  cut_.without_order = 3;  // still in flight when the recording ended
  outcome_.set_ungated(3);
  EXPECT_THAT(Reasons(RunKind::kMax), IsEmpty());
  outcome_.set_ungated(4);
  EXPECT_THAT(Reasons(RunKind::kMax),
              ElementsAre("rule 1: order not kept: nothing waited for 4 I/Os, where the trace "
                          "lacks the times of 3 only"));
}

TEST_F(RunValidityTest, OtherBytesThanTheTracesMakeItInvalid) {
  cut_.read_bytes += 512;
  EXPECT_THAT(Reasons(), ElementsAre(AllOf(StartsWith("rule 1"), HasSubstr("409,600 bytes"))));
}

TEST_F(RunValidityTest, AnIoThatNeverCompletedOrAnEarlyStopMakesItInvalid) {
  outcome_.set_completed(kIos - 1);
  outcome_.set_stopped_early(true);
  outcome_.set_stop_reason("interrupted");
  EXPECT_THAT(Reasons(), ElementsAre(HasSubstr("interrupted"), HasSubstr("99 of 100")));
}

TEST_F(RunValidityTest, AResultThatDoesNotTellHowTheRunWentMakesItInvalid) {
  const auto cut =
      ElementsAre("rule 1: the result of the run is cut, it does not say how the run went");
  tells_how_it_went_ = false;  // as the summary of a recording
  EXPECT_THAT(Reasons(), cut);
  has_summary_ = false;
  EXPECT_THAT(Reasons(), cut);
}

TEST_F(RunValidityTest, ADamagedResultMakesItInvalid) {
  const auto damaged = ElementsAre("rule 1: the result of the run is damaged");
  recovered_ = true;
  EXPECT_THAT(Reasons(), damaged);
  recovered_ = false;
  EXPECT_THAT(Reasons(), IsEmpty());
  losses_.emplace_back();
  losses_.back().set_reason(proto::DAMAGED_INPUT);
  EXPECT_THAT(Reasons(), damaged);
}

TEST_F(RunValidityTest, RecordsOfNoRecordOfTheTraceMakeItInvalid) {
  change_ = [](IoRecord* io) {
    if (*io->ordinal == 7) io->ordinal.reset();
    if (io->ordinal == 8) io->ordinal = kIos;
    if (io->ordinal == 9) io->ordinal = kIos - 1;  // is one
  };
  EXPECT_THAT(Reasons(),
              ElementsAre("rule 1: 2 records of the result belong to no record of the trace"));
}

TEST_F(RunValidityTest, RecordsThatLackATimeOrHaveThemInTheWrongOrderMakeItInvalid) {
  change_ = [](IoRecord* io) {
    if (*io->ordinal == 1) io->queue_ns.reset();
    if (*io->ordinal == 2) io->issue_ns.reset();
    if (*io->ordinal == 3) io->complete_ns.reset();
    if (*io->ordinal == 4) io->queue_ns = *io->issue_ns + 1;
    if (*io->ordinal == 5) io->complete_ns = *io->issue_ns - 1;
    if (*io->ordinal == 6) io->complete_ns = io->issue_ns = io->queue_ns;  // took no time
  };
  EXPECT_THAT(Reasons(RunKind::kMax), ElementsAre("rule 1: 5 records of the result lack a time"));
}

// Of the I/Os that are sorted 65,536 are held back. The last one belongs to the first ms, of which
// all is counted by then: neither its wait, with and without the host's part, nor its work counts
// whole.
TEST_F(RunValidityTest, AnIoTooFarOutOfOrderToCountMakesItInvalid) {
  ios_ = 65'536 + kIos;
  cut_.records = cut_.data_requests = cut_.segments[0].end_ordinal = ios_;
  cut_.segments[0].foreground = cut_.segments[0].by_class[0] = ios_;
  cut_.read_bytes = ios_ * 4096;
  outcome_.set_issued(ios_);
  outcome_.set_completed(ios_);
  outcome_.set_timed_ios(ios_);
  EXPECT_THAT(Reasons(RunKind::kMax), IsEmpty());
  change_ = [this](IoRecord* io) {
    if (*io->ordinal == ios_ - 1) io->queue_ns = io->issue_ns = io->complete_ns = 500'000;
  };
  EXPECT_THAT(
      Reasons(RunKind::kMax),
      ElementsAre("rule 1: 3 intervals lie so far out of order that they count in part only"));
}

TEST_F(RunValidityTest, ALateHostMakesATimedRunInvalidOnly) {
  outcome_.set_lateness_p999_ns(100'001);
  outcome_.set_late_100us(1);
  outcome_.set_late_1ms(1);  // 1 %
  EXPECT_THAT(Reasons(RunKind::kOpen), ElementsAre(StartsWith("rule 3"), StartsWith("rule 3")));
  EXPECT_THAT(Reasons(RunKind::kMax), IsEmpty());
}

// In a closed loop each I/O waits 10 us for the drive; a tenth of that may be the host's.
TEST_F(RunValidityTest, InAClosedLoopItIsTheWaitThatTheHostAddsThatCounts) {
  outcome_.set_late_100us(kIos);
  outcome_.set_late_1ms(kIos);
  host_late_ns_ = 1'000;
  EXPECT_THAT(Reasons(RunKind::kClosed), IsEmpty());
  host_late_ns_ = 1'001;
  EXPECT_THAT(Reasons(RunKind::kClosed),
              ElementsAre("rule 3: the host was late: it adds 100 us to 1.00 ms of waiting (limit "
                          "10 %)"));
  EXPECT_THAT(Reasons(RunKind::kMax), IsEmpty());
}

// Of 1,000 I/Os the 99.9th percentile by nearest rank is the 999th: one may be later than the
// limit.
TEST_F(RunValidityTest, LatenessIsJudgedByExactCountsNotByTheRoundedPercentile) {
  outcome_.set_timed_ios(1'000);
  outcome_.set_lateness_p999_ns(102'399);  // the upper edge of the bucket that holds 99 us
  outcome_.set_late_100us(1);
  EXPECT_THAT(Reasons(), IsEmpty());
  outcome_.set_late_100us(2);
  EXPECT_THAT(Reasons(), ElementsAre(StartsWith("rule 3")));
}

TEST_F(RunValidityTest, AReasonOfLatenessTellsWhatTheHypervisorTook) {
  outcome_.set_stolen_ns(1'390'000'000);
  EXPECT_THAT(Reasons(), IsEmpty());
  outcome_.set_lateness_p999_ns(100'001);
  outcome_.set_late_100us(1);
  outcome_.set_late_1ms(1);
  const auto tells =
      AllOf(StartsWith("rule 3"), HasSubstr("; the hypervisor took 1.39 s of CPU time meanwhile"));
  EXPECT_THAT(Reasons(), ElementsAre(tells, tells));
  outcome_.set_stolen_ns(0);
  EXPECT_THAT(Reasons(), ElementsAre(Not(HasSubstr("hypervisor")), Not(HasSubstr("hypervisor"))));
}

TEST_F(RunValidityTest, ACostlyReplayerMakesItInvalid) {
  outcome_.set_null_engine_ns(501);  // of 10 us
  outcome_.set_issuer_busy_max_share_ppm(900'001);
  EXPECT_THAT(Reasons(), ElementsAre(StartsWith("rule 4"), StartsWith("rule 4")));
}

// What was taken out of 10 us, at least 1 us, holds the replayer's cost as well: 5 % of 11 us.
TEST_F(RunValidityTest, TheReplayersCostIsComparedWithTheDriveAsItWasSeen) {
  outcome_.add_host_parts()->set_transfer_ns(3000);
  outcome_.add_host_parts()->set_transfer_ns(1000);
  outcome_.set_null_engine_ns(550);
  EXPECT_THAT(Reasons(), IsEmpty());
  outcome_.set_null_engine_ns(551);
  EXPECT_THAT(Reasons(), ElementsAre(AllOf(StartsWith("rule 4"), HasSubstr("11.0 us"))));
}

TEST_F(RunValidityTest, SomeoneElsesIoMakesItInvalid) {
  outcome_.set_foreign_sectors(8);
  EXPECT_THAT(Reasons(), ElementsAre("rule 5: someone else moved 4 KiB on the target"));
}

TEST_F(RunValidityTest, ALateHostAndSomeoneElsesIoSpoilFromOutside) {
  outcome_.set_lateness_p999_ns(100'001);
  outcome_.set_late_100us(1);
  outcome_.set_foreign_sectors(8);
  EXPECT_TRUE(SpoiledFromOutside(Why()));
  outcome_.set_errors(1);
  EXPECT_FALSE(SpoiledFromOutside(Why()));
  outcome_.set_errors(0);
  outcome_.set_null_engine_ns(501);  // of 10 us
  EXPECT_FALSE(SpoiledFromOutside(Why()));
}

TEST(SpoiledFromOutsideTest, TheRuleDecidesNotTheWordsOfTheSentence) {
  EXPECT_TRUE(SpoiledFromOutside({}));
  EXPECT_TRUE(SpoiledFromOutside({{.rule = 3, .text = "other words", .run = "cycle 2, timed"}}));
  EXPECT_FALSE(SpoiledFromOutside({{.rule = 1, .text = "rule 3: a quote", .run = "rule 3:"}}));
}

TEST(InvalidReasonTest, ASentenceNamesRunAndRule) {
  EXPECT_EQ((InvalidReason{.rule = 3, .text = "late", .run = "cycle 2, timed"}).Sentence(),
            "cycle 2, timed: rule 3: late");
  EXPECT_EQ((InvalidReason{.rule = 2, .text = "lost", .run = {}}).Sentence(), "rule 2: lost");
}

TEST_F(RunValidityTest, WhatIsNotKnownIsNoReason) {
  outcome_.clear_foreign_sectors();  // a file has no statistics of its own
  outcome_.clear_null_engine_ns();
  outcome_.clear_lateness_p999_ns();
  EXPECT_THAT(Reasons(), IsEmpty());
}

TEST(TraceValidityTest, LostEventsMakeItInvalidUnlessAccepted) {
  Profile recording;
  recording.finished_cleanly = true;
  EXPECT_THAT(WhyTraceInvalid(recording, false), IsEmpty());
  recording.lost_events = 12;
  EXPECT_THAT(Sentences(WhyTraceInvalid(recording, false)),
              ElementsAre("rule 2: the recording lost 12 events"));
  EXPECT_THAT(WhyTraceInvalid(recording, true), IsEmpty());
  recording.finished_cleanly = false;
  EXPECT_THAT(Sentences(WhyTraceInvalid(recording, false)),
              ElementsAre("rule 2: the recording lost 12 events",
                          "rule 2: the recording was not finished cleanly, its end is missing"));
  EXPECT_THAT(WhyTraceInvalid(recording, true), IsEmpty());
}

TEST(TraceValidityTest, EventsLostInUnknownNumberMakeItInvalid) {
  Profile recording;
  recording.finished_cleanly = true;
  recording.losses_uncountable = true;
  EXPECT_THAT(Sentences(WhyTraceInvalid(recording, false)),
              ElementsAre("rule 2: the recording lost an unknown number of events"));
  EXPECT_THAT(WhyTraceInvalid(recording, true), IsEmpty());
  recording.lost_events = 1;
  EXPECT_THAT(Sentences(WhyTraceInvalid(recording, false)),
              ElementsAre(StartsWith("rule 2: the recording lost at least 1 event")));
}

class ManifestTest : public ::testing::Test {
 protected:
  ManifestTest() {
    proto::Device* target = before_.mutable_replay()->add_targets();
    target->set_path("/dev/sdx");
    target->set_scheduler("none");
    target->set_write_cache("write back");
    target->set_transport("nvme");
    target->set_link_speed("16.0 GT/s PCIe");
    target->set_link_width(4);
    target->set_firmware("1.0");
    target->set_serial("S1");
    before_.mutable_replay()->set_engine("io_uring");
  }

  // Of a second run whose target was changed so.
  std::vector<std::string> After(const std::function<void(proto::Device*)>& change) const {
    proto::Header after = before_;
    change(after.mutable_replay()->mutable_targets(0));
    return Sentences(WhyTargetsDiffer(before_, after));
  }

  proto::Header before_;
};

TEST_F(ManifestTest, WhatStaysIsNoReason) {
  EXPECT_THAT(After([](proto::Device* target) {
                // What the drive could do, and what it is called, is not how it was measured.
                target->set_link_speed_max("32.0 GT/s PCIe");
                target->set_name("sdy");
              }),
              IsEmpty());
}

TEST_F(ManifestTest, EachPropertyThatChangedIsNamed) {
  EXPECT_THAT(After([](proto::Device* target) { target->set_scheduler("bfq"); }),
              ElementsAre("rule 6: the scheduler of /dev/sdx changed from \"none\" to \"bfq\""));
  EXPECT_THAT(After([](proto::Device* target) { target->set_write_cache("write through"); }),
              ElementsAre("rule 6: the write cache of /dev/sdx changed from \"write back\" to "
                          "\"write through\""));
  EXPECT_THAT(After([](proto::Device* target) { target->set_drive_write_cache("write through"); }),
              ElementsAre("rule 6: the drive's own write cache of /dev/sdx changed from \"\" to "
                          "\"write through\""));
  EXPECT_THAT(After([](proto::Device* target) { target->set_firmware("1.1"); }),
              ElementsAre("rule 6: the firmware of /dev/sdx changed from \"1.0\" to \"1.1\""));
  EXPECT_THAT(After([](proto::Device* target) { target->set_serial("S2"); }),
              ElementsAre("rule 6: the serial number of /dev/sdx changed from \"S1\" to \"S2\""));
}

TEST_F(ManifestTest, ALinkThatChangedIsNamedWhetherInKindSpeedOrWidth) {
  EXPECT_THAT(
      After([](proto::Device* target) { target->set_transport("usb"); }),
      ElementsAre("rule 6: the link of /dev/sdx changed from \"nvme, 16.0 GT/s PCIe x4\" to "
                  "\"usb, 16.0 GT/s PCIe x4\""));
  EXPECT_THAT(
      After([](proto::Device* target) { target->set_link_speed("2.5 GT/s PCIe"); }),
      ElementsAre("rule 6: the link of /dev/sdx changed from \"nvme, 16.0 GT/s PCIe x4\" to "
                  "\"nvme, 2.5 GT/s PCIe x4\""));
  EXPECT_THAT(
      After([](proto::Device* target) { target->set_link_width(2); }),
      ElementsAre("rule 6: the link of /dev/sdx changed from \"nvme, 16.0 GT/s PCIe x4\" to "
                  "\"nvme, 16.0 GT/s PCIe x2\""));
}

TEST_F(ManifestTest, AnotherNumberOfTargetsIsNamed) {
  proto::Header after = before_;
  after.mutable_replay()->add_targets();
  EXPECT_THAT(Sentences(WhyTargetsDiffer(before_, after)),
              ElementsAre("rule 6: the number of targets changed"));
}

TEST_F(ManifestTest, AnotherEngineIsNamed) {
  proto::Header after = before_;
  after.mutable_replay()->set_engine("libaio");
  EXPECT_THAT(Sentences(WhyTargetsDiffer(before_, after)),
              ElementsAre("rule 6: the engine changed from io_uring to libaio"));
}

}  // namespace
}  // namespace blktape
