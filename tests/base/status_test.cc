#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/clock.h"

namespace blktape {
namespace {

TEST(StatusTest, ErrnoBecomesACodeAndASentence) {
  const Status status = ErrnoStatus(ENOENT, "/no/such");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "/no/such: No such file or directory");
  EXPECT_EQ(ErrnoStatus(EPERM, "x").code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(EBUSY, "x").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EIO, "x").code(), StatusCode::kIoError);
}

TEST(StatusTest, ACopyKeepsWhatItSaysWhenTheOtherChanges) {
  Status first(StatusCode::kDataLoss, "torn");
  const Status copy = first;
  Status assigned = OkStatus();
  assigned = first;
  first = OkStatus();
  EXPECT_TRUE(first.ok());
  EXPECT_EQ(first.code(), StatusCode::kOk);
  EXPECT_EQ(first.message(), "");
  EXPECT_EQ(copy.code(), StatusCode::kDataLoss);
  EXPECT_EQ(copy.message(), "torn");
  EXPECT_EQ(assigned.message(), "torn");
  const Status& same = assigned;
  assigned = same;
  EXPECT_EQ(assigned.message(), "torn");
}

Result<int> Half(int number) {
  if (number % 2 != 0) return Status(StatusCode::kInvalidArgument, "odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  return Half(half);
}

TEST(ResultTest, AssignOrReturnPassesTheFailureOn) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(7).status().message(), "odd");
  EXPECT_EQ(Quarter(6).status().message(), "odd");
}

TEST(ResultTest, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> five = std::move(result).value();
  EXPECT_EQ(*five, 5);
}

TEST(ResultDeathTest, TakingTheValueOfAFailureIsABug) {
  const Result<int> failed = Half(3);
  EXPECT_DEATH({ [[maybe_unused]] const int value = *failed; }, "bug");
}

TEST(FakeClockTest, SleepingMovesItForwardOnly) {
  FakeClock clock(100);
  clock.SleepUntilNs(250);
  EXPECT_EQ(clock.NowNs(), 250);
  clock.SleepUntilNs(200);
  EXPECT_EQ(clock.NowNs(), 250);
}

TEST(MonotonicClockTest, SleepsUntilTheDeadlineAtLeast) {
  Clock* clock = Clock::Monotonic();
  const int64_t deadline_ns = clock->NowNs() + 2'000'000;
  clock->SleepUntilNs(deadline_ns);
  EXPECT_GE(clock->NowNs(), deadline_ns);
}

}  // namespace
}  // namespace blktape
