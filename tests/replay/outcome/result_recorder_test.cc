#include "replay/outcome/result_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/plan/temp_trace.h"

namespace blktape {
namespace {

using testing::ElementsAre;

IssuedIo Done(uint64_t sequence, int64_t due_ns = 0, int64_t issue_ns = 0) {
  IssuedIo io;
  io.sequence = sequence;
  io.ordinal = sequence + 100;
  io.bytes = 4096;
  io.bytes_done = 4096;
  io.due_ns = due_ns;
  io.issue_ns = issue_ns;
  io.complete_ns = issue_ns + 50;
  return io;
}

class ResultRecorderTest : public testing::Test {
 protected:
  void Open(uint32_t window = 1024) {
    path_ = FreshPath("result.tape");
    proto::Header header;
    header.add_devices();
    auto writer = TraceWriter::Create(path_, header);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    writer_ = std::move(*writer);
    recorder_.emplace(writer_.get(), std::vector<uint32_t>{128},
                      std::function<void(const IoRecord&)>(), window);
  }
  std::vector<uint64_t> OrdinalsWritten() {
    EXPECT_TRUE(recorder_->Flush().ok());
    EXPECT_TRUE(writer_->Finish({}).ok());
    std::vector<uint64_t> ordinals;
    for (const IoRecord& io : ReadTrace(path_).records) ordinals.push_back(*io.ordinal - 100);
    return ordinals;
  }
  std::string path_;
  std::unique_ptr<TraceWriter> writer_;
  std::optional<ResultRecorder> recorder_;
};

TEST_F(ResultRecorderTest, PutsCompletionsBackIntoTheOrderOfThePlan) {
  Open();
  for (const uint64_t sequence : {2, 0, 3, 1, 4}) {
    ASSERT_TRUE(recorder_->Add(Done(sequence)).ok());
  }
  EXPECT_THAT(OrdinalsWritten(), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(ResultRecorderTest, OfWhatIsLeftOutOnlyThePlaceCounts) {
  Open();
  IssuedIo left_out = Done(1);
  left_out.left_out = true;
  for (const IssuedIo& io : {Done(2), left_out, Done(0), Done(3)}) {
    ASSERT_TRUE(recorder_->Add(io).ok());
  }
  proto::ReplayOutcome outcome;
  recorder_->Report(&outcome);
  EXPECT_EQ(outcome.completed(), 3u);
  EXPECT_EQ(outcome.timed_ios(), 3u) << "nothing waits for it";
  EXPECT_THAT(OrdinalsWritten(), ElementsAre(0, 2, 3));
}

// Each takes 50 ns. A write with PREFLUSH is two requests; no I/O is over before it began. After
// half of the pause that is measured, half of what that adds is the host's.
TEST_F(ResultRecorderTest, TheHostsPartIsTakenOutOfTheCompletion) {
  Open();
  recorder_->TakeOut({{.transfer = {5, 15}, .flush = {30, 40}}});
  IssuedIo flush = Done(1, 0, 100);
  flush.op = Op::kFlush;
  IssuedIo durable = Done(2, 0, 200);
  durable.op = Op::kWrite;
  durable.flags = kFlagPreflush | kFlagFua;
  IssuedIo fast = Done(3, 0, 300);
  fast.complete_ns = 302;
  IssuedIo rested = Done(4, 0, 400);
  rested.pause_ns = kHostPauseNs / 2;
  IssuedIo first = Done(5, 0, 500);
  first.pause_ns = INT64_MAX;
  IssuedIo rested_flush = durable;
  rested_flush.sequence = 6;
  rested_flush.issue_ns = 600;
  rested_flush.complete_ns = 650;
  rested_flush.pause_ns = kHostPauseNs;
  for (const IssuedIo& io : {Done(0), flush, durable, fast, rested, first, rested_flush}) {
    ASSERT_TRUE(recorder_->Add(io).ok());
  }
  ASSERT_TRUE(recorder_->Flush().ok());
  ASSERT_TRUE(writer_->Finish({}).ok());
  std::vector<int64_t> completions;
  for (const IoRecord& io : ReadTrace(path_).records) completions.push_back(*io.complete_ns);
  EXPECT_THAT(completions, ElementsAre(45, 120, 215, 300, 440, 535, 605));
}

TEST_F(ResultRecorderTest, IosThatWereNeverIssuedLeaveNoGap) {
  Open();
  for (const uint64_t sequence : {0, 5, 3}) ASSERT_TRUE(recorder_->Add(Done(sequence)).ok());
  EXPECT_THAT(OrdinalsWritten(), ElementsAre(0, 3, 5));
}

TEST_F(ResultRecorderTest, OneThatStaysBehindTheWindowComesOutOfOrderInsteadOfHoldingAllBack) {
  Open(/*window=*/4);
  for (uint64_t sequence = 1; sequence <= 6; ++sequence) {
    ASSERT_TRUE(recorder_->Add(Done(sequence)).ok());
  }
  ASSERT_TRUE(recorder_->Add(Done(0)).ok());
  EXPECT_THAT(OrdinalsWritten(), ElementsAre(1, 2, 3, 4, 5, 6, 0));
}

TEST_F(ResultRecorderTest, AWindowThatGrowsKeepsWhatItHolds) {
  Open(1 << 14);
  std::vector<uint64_t> expected;
  for (uint64_t sequence = 0; sequence <= 5'000; ++sequence) expected.push_back(sequence);
  for (uint64_t sequence = 5'000; sequence > 0; --sequence) {
    ASSERT_TRUE(recorder_->Add(Done(sequence)).ok());
  }
  ASSERT_TRUE(recorder_->Add(Done(0)).ok());
  EXPECT_EQ(OrdinalsWritten(), expected);
}

TEST_F(ResultRecorderTest, ARecordHoldsDueSubmittedAndCompletedTimes) {
  Open();
  IssuedIo io = Done(0, /*due_ns=*/1'000, /*issue_ns=*/1'040);
  io.op = Op::kWrite;
  io.flags = kFlagFua;
  io.offset_bytes = 8192;
  io.freed_ns = 1'030;  // it waited for a conflicting one
  ASSERT_TRUE(recorder_->Add(io).ok());
  ASSERT_TRUE(recorder_->Flush().ok());
  ASSERT_TRUE(writer_->Finish({}).ok());
  const IoRecord record = ReadTrace(path_).records.at(0);
  EXPECT_EQ(record.op, Op::kWrite);
  EXPECT_EQ(record.flags, kFlagFua | kFlagBacklog);
  EXPECT_EQ(record.lba, Lba(16));
  EXPECT_EQ(record.bytes, 4096u);
  EXPECT_EQ(record.queue_ns, 1'000);
  EXPECT_EQ(record.issue_ns, 1'040);
  EXPECT_EQ(record.complete_ns, 1'090);
  EXPECT_EQ(record.error, 0u);
  EXPECT_EQ(record.ordinal, 100u);
  EXPECT_EQ(record.backlog_ns, 30u);
}

TEST(ResultRecorderCountTest, ErrorsShortTransfersAndLatenessAreCountedApart) {
  ResultRecorder recorder(nullptr, {128});
  IssuedIo failed = Done(0);
  failed.error = 5;
  failed.bytes_done = 0;
  IssuedIo cut = Done(1);
  cut.bytes_done = 512;
  IssuedIo backlog = Done(2, 0, 5'000'000);
  backlog.freed_ns = 5'000'000;
  for (const IssuedIo& io :
       {failed, cut, backlog, Done(3, 0, 100'000), Done(4, 0, 100'001), Done(5, 0, 1'000'001)}) {
    ASSERT_TRUE(recorder.Add(io).ok());
  }
  proto::ReplayOutcome outcome;
  recorder.Report(&outcome);
  EXPECT_EQ(outcome.completed(), 6);
  EXPECT_EQ(outcome.errors(), 1);
  EXPECT_EQ(outcome.errors_by_errno().at(5), 1);
  EXPECT_EQ(outcome.short_transfers(), 1) << "an error is not also short";
  EXPECT_EQ(outcome.timed_ios(), 6);
  EXPECT_EQ(outcome.late_100us(), 2) << "backlog is not lateness";
  EXPECT_EQ(outcome.late_1ms(), 1);
  EXPECT_GE(outcome.lateness_p999_ns(), 1'000'001);
  EXPECT_LE(outcome.lateness_p999_ns(), 1'031'252) << "a 32nd above at most";
}

}  // namespace
}  // namespace blktape
