#include "replay/outcome/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/replay/plan/temp_trace.h"

namespace blktape {
namespace {

using testing::HasSubstr;

std::string Folder() {
  const char* folder = std::getenv("TEST_TMPDIR");
  return folder == nullptr ? "/tmp" : folder;
}

TEST(WriteLedgerTest, RemembersTheLastValueOfEverySector) {
  auto ledger = WriteLedger::Create(Folder(), 2);
  ASSERT_TRUE(ledger.ok()) << ledger.status().message();
  ASSERT_TRUE(ledger->Set(0, 10, 4, 7).ok());
  ASSERT_TRUE(ledger->Set(0, 12, 10'000, 8).ok());
  std::vector<uint32_t> values(5);
  ASSERT_TRUE(ledger->Get(0, 9, values).ok());
  EXPECT_EQ(values, (std::vector<uint32_t>{WriteLedger::kNeverWritten, 7, 7, 8, 8}));
  ASSERT_TRUE(ledger->Get(0, 10'010, values).ok());
  EXPECT_EQ(values, (std::vector<uint32_t>{8, 8, 0, 0, 0}));
  ASSERT_TRUE(ledger->Get(1, 9, values).ok());
  EXPECT_EQ(values, std::vector<uint32_t>(5)) << "another target";
}

TEST(WriteLedgerTest, FindsWhatWasWrittenFarApart) {
  auto ledger = WriteLedger::Create(Folder(), 1);
  ASSERT_TRUE(ledger.ok());
  const uint64_t far = uint64_t{1} << 32;  // at 2 TiB
  ASSERT_TRUE(ledger->Set(0, 100, 1, 1).ok());
  ASSERT_TRUE(ledger->Set(0, far, 1, 2).ok());
  const auto first = ledger->NextWritten(0, 0);
  ASSERT_TRUE(first.ok() && first->has_value());
  EXPECT_LE((*first)->first_sector, 100u);
  EXPECT_GT((*first)->end_sector, 100u);
  EXPECT_LT((*first)->end_sector, 1'000'000u);
  const auto second = ledger->NextWritten(0, (*first)->end_sector);
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_LE((*second)->first_sector, far);
  const auto none = ledger->NextWritten(0, (*second)->end_sector);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

TEST(WriteLedgerTest, NumbersOfWritesAreNeverTheValuesWithAMeaning) {
  EXPECT_EQ(WriteLedger::NumberOf(0), 1u);
  EXPECT_EQ(WriteLedger::NumberOf(UINT32_MAX - 3), UINT32_MAX - 2);
  EXPECT_EQ(WriteLedger::NumberOf(UINT32_MAX - 2), 1u);
}

// A stamp of these tests: the sector and the number, then nothing.
void Stamp(std::byte* content, uint64_t sector, uint32_t number) {
  std::memset(content, 0, 512);
  std::memcpy(content, &sector, sizeof(sector));
  std::memcpy(content + sizeof(sector), &number, sizeof(number));
}
bool HasStamp(std::span<const std::byte> content, uint64_t sector, uint32_t number) {
  std::vector<std::byte> expected(512);
  Stamp(expected.data(), sector, number);
  return std::equal(content.begin(), content.end(), expected.begin());
}

class VerifierTest : public testing::Test {
 protected:
  VerifierTest() {
    auto ledger = WriteLedger::Create(Folder(), 1);
    EXPECT_TRUE(ledger.ok());
    verifier_.emplace(*std::move(ledger), HasStamp);
    target_.resize(64 * 512);
  }
  // Does an I/O on the pretended target and hands it over. `sequence` is the number - 1.
  void Do(Op op, uint64_t sector, uint64_t sectors, uint64_t sequence, uint32_t error = 0) {
    std::vector<std::byte> buffer(sectors * 512);
    const auto place = target_.begin() + static_cast<ptrdiff_t>(sector * 512);
    if (op == Op::kWrite) {
      for (uint64_t i = 0; i < sectors; ++i) {
        Stamp(buffer.data() + i * 512, sector + i, WriteLedger::NumberOf(sequence));
      }
      if (error == 0) std::copy(buffer.begin(), buffer.end(), place);
    }
    if (op == Op::kWriteZeroes) {
      std::fill_n(place, sectors * 512, std::byte{0});
    }
    if (op == Op::kRead) std::copy_n(place, sectors * 512, buffer.begin());
    IssuedIo io;
    io.op = op;
    io.offset_bytes = sector * 512;
    io.bytes = sectors * 512;
    io.sequence = sequence;
    io.buffer = buffer.data();
    io.error = error;
    io.bytes_done = error == 0 ? io.bytes : 0;
    EXPECT_TRUE(verifier_->Completed(io).ok());
  }
  proto::ReplayOutcome Report() {
    proto::ReplayOutcome outcome;
    verifier_->Report(&outcome);
    return outcome;
  }
  std::optional<Verifier> verifier_;
  std::vector<std::byte> target_;
};

TEST_F(VerifierTest, AReadOfWhatWasWrittenLastIsRight) {
  Do(Op::kWrite, 0, 8, 0);
  Do(Op::kWrite, 4, 8, 1);
  Do(Op::kRead, 0, 16, 2);
  EXPECT_EQ(Report().verify_mismatches(), 0);
  EXPECT_EQ(Report().verified_sectors(), 12) << "the four last ones were never written";
  EXPECT_EQ(Report().verified_reads(), 1);
}

TEST_F(VerifierTest, ALostWriteIsFound) {
  Do(Op::kWrite, 0, 8, 0);
  const std::vector<std::byte> old = target_;
  Do(Op::kWrite, 0, 8, 1);
  target_ = old;  // the drive forgot it
  Do(Op::kRead, 3, 1, 2);
  EXPECT_EQ(Report().verify_mismatches(), 1);
  EXPECT_THAT(Report().first_mismatch(), HasSubstr("sector 3"));
  EXPECT_THAT(Report().first_mismatch(), HasSubstr("write 2"));
}

TEST_F(VerifierTest, AWriteThatWentElsewhereIsFound) {
  Do(Op::kWrite, 0, 8, 0);
  Do(Op::kWrite, 8, 8, 1);
  std::copy_n(target_.begin(), 8 * 512, target_.begin() + 8 * 512);
  Do(Op::kRead, 8, 8, 2);
  EXPECT_EQ(Report().verify_mismatches(), 8);
}

TEST_F(VerifierTest, AfterADiscardOrAFailedWriteAnythingIsRight) {
  Do(Op::kWrite, 0, 8, 0);
  Do(Op::kDiscard, 0, 4, 1);
  Do(Op::kWrite, 4, 4, 2, /*error=*/EIO);
  target_.assign(target_.size(), std::byte{0x5a});
  Do(Op::kRead, 0, 8, 3);
  EXPECT_EQ(Report().verified_sectors(), 0);
}

TEST_F(VerifierTest, ZeroesWrittenAreReadAsZeroes) {
  Do(Op::kWrite, 0, 8, 0);
  Do(Op::kWriteZeroes, 2, 2, 1);
  Do(Op::kRead, 0, 8, 2);
  EXPECT_EQ(Report().verify_mismatches(), 0);
  target_[2 * 512 + 100] = std::byte{1};
  Do(Op::kRead, 0, 8, 3);
  EXPECT_EQ(Report().verify_mismatches(), 1);
}

TEST_F(VerifierTest, TheSweepReadsEverythingThatWasWritten) {
  const std::string path = FreshPath("swept.img");
  ASSERT_TRUE(CreateScratchFile(path, 8 << 20).ok());
  auto target = Target::Open(path, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(std::move(*target));
  // At 5 MiB, beyond the pretended target: only the ledger and the file know of it.
  const uint64_t sector = (5 << 20) / 512;
  target_.resize(6 << 20);
  Do(Op::kWrite, 0, 8, 0);
  Do(Op::kWrite, sector, 8, 1);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.write(reinterpret_cast<const char*>(target_.data()),
             static_cast<std::streamsize>(target_.size()));
  file.close();
  const std::atomic<bool> stop = false;
  ASSERT_TRUE(verifier_->Sweep(targets, stop).ok());
  EXPECT_EQ(Report().verified_sectors(), 16);
  EXPECT_EQ(Report().verify_mismatches(), 0);

  std::fstream spoil(path, std::ios::in | std::ios::out | std::ios::binary);
  spoil.seekp(static_cast<std::streamoff>(sector * 512));
  spoil.put('!');
  spoil.close();
  ASSERT_TRUE(verifier_->Sweep(targets, stop).ok());
  EXPECT_EQ(Report().verify_mismatches(), 1);
}

TEST_F(VerifierTest, WhatTheSweepCannotReadIsAMismatch) {
  const std::string path = FreshPath("cut.img");
  ASSERT_TRUE(CreateScratchFile(path, 2 << 20).ok());
  auto target = Target::Open(path, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  std::vector<std::unique_ptr<Target>> targets;
  targets.push_back(std::move(*target));
  target_.resize(2 << 20);
  Do(Op::kWrite, 0, 16, 0);
  Do(Op::kWrite, 3000, 8, 1);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.write(reinterpret_cast<const char*>(target_.data()),
             static_cast<std::streamsize>(target_.size()));
  file.close();
  std::filesystem::resize_file(path, 8 * 512);
  const std::atomic<bool> stop = false;
  ASSERT_TRUE(verifier_->Sweep(targets, stop).ok());
  EXPECT_EQ(Report().verified_sectors(), 24);
  EXPECT_EQ(Report().verify_mismatches(), 16) << "8 of the first write, all 8 of the second";
  EXPECT_THAT(Report().first_mismatch(), HasSubstr("sector 8 of target 0 cannot be read"));
}

}  // namespace
}  // namespace blktape
