#include "capture/session/capture_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/session/source_select.h"
#include "format/trace_reader.h"
#include "tests/capture/session/fake_source.h"
#include "tests/host/fake_sysfs.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint32_t kSda = 8 << 20;
constexpr uint32_t kSdb = 8 << 20 | 16;

class CaptureSessionTest : public ::testing::Test {
 protected:
  CaptureSessionTest()
      : folder_(fs::path(::testing::TempDir()) / "capture_session"),
        sysfs_((folder_ / "root").string()) {
    Plug("sda", "8:0", "1");
  }
  ~CaptureSessionTest() override { fs::remove_all(folder_); }

  void Plug(const std::string& name, const std::string& number, const std::string& sequence) {
    sysfs_.AddDisk("pci/ata/host0/" + name, number);
    sysfs_.Write("/sys/devices/pci/ata/host0/" + name + "/diskseq", sequence);
    fs::create_directories(sysfs_.root() + "/sys/devices/pci/ata/host0/" + name + "/mq/0");
  }
  void Unplug(const std::string& name, const std::string& number) {
    fs::remove_all(sysfs_.root() + "/sys/devices/pci/ata/host0/" + name);
    for (const std::string& link :
         {"/sys/block/" + name, "/sys/class/block/" + name, "/sys/dev/block/" + number}) {
      fs::remove(sysfs_.root() + link);
    }
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  void Begin(bool waits_for_disks = true) {
    const BlockDevices disks(sysfs_);
    state_.disks = *disks.AllPhysical();
    SessionOptions options;
    options.sysfs = disks;
    options.find_disks = [disks] { return disks.AllPhysical(); };
    options.waits_for_disks = waits_for_disks;
    options.check_interval_ns = 0;
    auto session = CaptureSession::Begin(std::make_unique<FakeSource>("fake", &state_),
                                         Path("1.tape"), options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_ = *std::move(session);
  }
  void Tell(uint32_t dev, uint64_t sector) {
    IoRecord record;
    record.device = dev;
    record.lba = Lba(sector);
    record.bytes = 4096;
    record.issue_ns = ReadClocks().monotonic_ns;
    record.pid = 1;
    state_.to_tell.push_back(record);
  }
  bool Turn() {
    const Result<bool> more = session_->Turn(0);
    EXPECT_TRUE(more.ok()) << more.status().message();
    return more.ok() && *more;
  }
  void TurnWithFile(const std::string& name) {
    EXPECT_TRUE(Turn());
    ASSERT_TRUE(session_->WantsNewFile());
    const Status rotated = session_->Rotate(Path(name));
    ASSERT_TRUE(rotated.ok()) << rotated.message();
  }
  // Disk and sector of each record.
  std::vector<std::pair<std::string, uint64_t>> Read(const std::string& name) {
    auto reader = TraceReader::Open(Path(name), nullptr);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    std::vector<std::pair<std::string, uint64_t>> records;
    IoRecord record;
    while (*(*reader)->Next(&record)) {
      records.emplace_back((*reader)->header().devices(static_cast<int>(record.device)).name(),
                           record.lba->sectors);
    }
    return records;
  }

  fs::path folder_;
  FakeSysfs sysfs_;
  FakeSource::State state_;
  std::unique_ptr<CaptureSession> session_;
};

TEST_F(CaptureSessionTest, ADiskThatComesIsRecordedFromTheNextFileOn) {
  Begin();
  Tell(kSda, 8);
  EXPECT_TRUE(Turn());
  EXPECT_FALSE(session_->WantsNewFile());
  Plug("sdb", "8:16", "2");
  TurnWithFile("2.tape");
  Tell(kSda, 16);
  Tell(kSdb, 24);
  EXPECT_TRUE(Turn());
  ASSERT_TRUE(session_->Finish().ok());
  EXPECT_THAT(session_->TakeNews(),
              ElementsAre("sdb has come: recorded from here on", HasSubstr("1.tape")));
  // What was under way when the file was changed may be in either.
  auto records = Read("1.tape");
  const auto second = Read("2.tape");
  records.insert(records.end(), second.begin(), second.end());
  EXPECT_THAT(records, ElementsAre(Pair("sda", 8), Pair("sda", 16), Pair("sdb", 24)));
  EXPECT_THAT(second, Contains(Pair("sdb", 24)));
}

TEST_F(CaptureSessionTest, ADiskThatIsExchangedUnderItsNameIsAnother) {
  Begin();
  Tell(kSda, 8);
  EXPECT_TRUE(Turn());
  Unplug("sda", "8:0");
  Plug("sda", "8:0", "7");
  Tell(kSda, 16);  // seen before anybody knows: of the disk before, for all that can be told
  TurnWithFile("2.tape");
  Tell(kSda, 24);
  EXPECT_TRUE(Turn());
  ASSERT_TRUE(session_->Finish().ok());
  EXPECT_THAT(session_->TakeNews(), Contains("sda is gone"));
  EXPECT_EQ(session_->devices().size(), 2u);
  auto reader = TraceReader::Open(Path("2.tape"), nullptr);
  ASSERT_TRUE(reader.ok());
  IoRecord record;
  std::vector<std::pair<uint32_t, uint64_t>> records;
  while (*(*reader)->Next(&record)) {
    records.emplace_back(record.device, record.lba->sectors);
  }
  EXPECT_THAT(records, Contains(Pair(1u, 24u)));
}

TEST_F(CaptureSessionTest, ADiskThatComesBackIsRecordedAgain) {
  Plug("sdb", "8:16", "2");
  Begin();
  Unplug("sdb", "8:16");
  EXPECT_TRUE(Turn());
  EXPECT_FALSE(session_->WantsNewFile());
  Plug("sdb", "8:16", "3");
  TurnWithFile("2.tape");
  Tell(kSdb, 8);
  EXPECT_TRUE(Turn());
  ASSERT_TRUE(session_->Finish().ok());
  EXPECT_THAT(Read("2.tape"), ElementsAre(Pair("sdb", 8)));
}

TEST_F(CaptureSessionTest, WhatADiskDidBeforeItWentIsReadAfterwards) {
  Plug("sdb", "8:16", "2");
  Begin();
  EXPECT_TRUE(Turn());
  Unplug("sdb", "8:16");
  EXPECT_TRUE(Turn());
  EXPECT_THAT(session_->TakeNews(), Contains("sdb is gone"));
  Tell(kSdb, 16);
  EXPECT_TRUE(Turn());
  Tell(kSdb, 24);  // of nobody any more
  EXPECT_TRUE(Turn());
  ASSERT_TRUE(session_->Finish().ok());
  EXPECT_THAT(Read("1.tape"), ElementsAre(Pair("sdb", 16)));
}

TEST_F(CaptureSessionTest, ADiskThatGoesRightBeforeTheEndKeepsWhatItDid) {
  Plug("sdb", "8:16", "2");
  Begin();
  EXPECT_TRUE(Turn());
  Tell(kSda, 8);
  Tell(kSdb, 16);
  EXPECT_FALSE(session_->Figures(false).lost_events_is_lower_bound);
  Unplug("sda", "8:0");
  ASSERT_TRUE(session_->Finish().ok());
  EXPECT_THAT(session_->TakeNews(), Contains("sda is gone"));
  EXPECT_EQ(session_->Figures(false).lost_events, 1u);
  EXPECT_TRUE(session_->Figures(false).lost_events_is_lower_bound) << "who knows what it did";
  EXPECT_THAT(Read("1.tape"), ElementsAre(Pair("sda", 8), Pair("sdb", 16)));
}

TEST_F(CaptureSessionTest, WithoutADiskItEndsUnlessItWaitsForOne) {
  Begin(/*waits_for_disks=*/false);
  Unplug("sda", "8:0");
  EXPECT_FALSE(Turn());
  session_.reset();
  fs::remove(Path("1.tape.partial"));
  Plug("sda", "8:0", "2");
  Begin(/*waits_for_disks=*/true);
  Unplug("sda", "8:0");
  EXPECT_TRUE(Turn());
}

TEST_F(CaptureSessionTest, TheFileBeforeIsFinishedBesideTheRecording) {
  Begin();
  Tell(kSda, 8);
  EXPECT_TRUE(Turn());
  const uint32_t writer = session_->file().file().thread_id();
  ASSERT_TRUE(session_->Rotate(Path("2.tape")).ok());
  EXPECT_THAT(state_.own_pids, Contains(writer));
  ASSERT_TRUE(session_->Finish().ok());
  EXPECT_THAT(session_->TakeNews(), ElementsAre(HasSubstr("finished")));
  EXPECT_EQ(session_->Figures(false).files_finished, 2u);
}

TEST_F(CaptureSessionTest, WhereNoFileCanBeMadeTheOldOneGoesOn) {
  Begin();
  Plug("sdb", "8:16", "2");
  EXPECT_TRUE(Turn());
  EXPECT_FALSE(session_->Rotate(Path("no folder/2.tape")).ok());
  EXPECT_EQ(state_.disks.size(), 1u);
  Tell(kSda, 8);
  EXPECT_TRUE(Turn());
  TurnWithFile("3.tape");
  ASSERT_TRUE(session_->Finish().ok());
  EXPECT_EQ(session_->devices().size(), 2u);
}

}  // namespace
}  // namespace blktape
