#include "format/trace_merger.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "format/partial_file.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TraceMergerTest : public testing::Test {
 protected:
  TraceMergerTest() {
    std::string folder = testing::TempDir() + "/trace_merger_XXXXXX";
    folder_ = mkdtemp(folder.data());
    out_ = folder_ + "/merged.tape";
  }
  ~TraceMergerTest() override { std::filesystem::remove_all(folder_); }

  // A finished trace to which `fill` writes.
  std::string Trace(const std::string& name, const std::function<void(TraceWriter*)>& fill) {
    const std::string path = folder_ + "/" + name;
    auto writer = TraceWriter::Create(path, TestHeader());
    EXPECT_TRUE(writer.ok());
    fill(writer->get());
    EXPECT_TRUE((*writer)->Finish({}).ok());
    return path;
  }
  std::string OneWrite(const std::string& name, int64_t at_ns) {
    return Trace(name,
                 [&](TraceWriter* writer) { EXPECT_TRUE(writer->Write(Write4k(at_ns, 0)).ok()); });
  }
  // One write by thread 300 to the second of two disks; ada's names are hashed, others' not.
  std::string OfHost(const std::string& host, int64_t at_ns) {
    proto::Header header = TestHeader(2);
    header.set_host(host);
    header.set_process_names(host == "ada" ? "hashed" : "recorded");
    header.mutable_start()->set_wall_ns(1'000'000'000);
    const std::string path = folder_ + "/" + host + std::to_string(at_ns) + ".tape";
    auto writer = TraceWriter::Create(path, header);
    EXPECT_TRUE(writer.ok());
    IoRecord io = Write4k(at_ns, 0);
    io.device = 1;
    io.pid = 300;
    EXPECT_TRUE((*writer)->Write(io).ok());
    EXPECT_TRUE((*writer)->Finish({}).ok());
    return path;
  }
  Result<MergeReport> Merge(const std::vector<std::string>& paths, MergeClock clock) {
    return MergeTraces(paths, out_, clock);
  }
  ReadBack Merged(Observed* observed = nullptr) {
    ReadBack back;
    auto reader = TraceReader::Open(out_, observed);
    EXPECT_TRUE(reader.ok());
    header_ = (*reader)->header();
    EXPECT_TRUE(
        ForEachRecord(reader->get(), [&](const IoRecord& io) { back.records.push_back(io); }).ok());
    back.summary = (*reader)->summary();
    return back;
  }

  std::vector<uint32_t> MergedPids() {
    std::vector<uint32_t> pids;
    for (const IoRecord& io : Merged().records) pids.push_back(io.pid.value_or(0));
    return pids;
  }

  std::string folder_;
  std::string out_;
  proto::Header header_;  // of what was merged last and read
};

TEST_F(TraceMergerTest, WhatStandsBeforeTheFirstRecordMovesToTheClockOfTheFirstTrace) {
  const std::string first = OneWrite("first.tape", 1000);
  const std::string second = Trace("second.tape", [](TraceWriter* writer) {
    proto::Loss loss;
    loss.set_reason(proto::RING_OVERRUN);
    loss.set_count(3);
    loss.set_from_ns(5000);
    loss.set_to_ns(5500);
    EXPECT_TRUE(writer->WriteLoss(loss).ok());
    proto::Mark mark;
    mark.set_at_ns(5800);
    EXPECT_TRUE(writer->WriteMark(mark).ok());
    EXPECT_TRUE(writer->Write(Write4k(6000, 8)).ok());
  });
  // The first I/Os coincide: 6000 becomes 1000.
  const auto report = Merge({first, second}, MergeClock::kStart);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->shifts_ns, ElementsAre(0, -5000));
  Observed observed;
  const ReadBack back = Merged(&observed);
  ASSERT_EQ(back.records.size(), 2);
  EXPECT_EQ(back.records[0].queue_ns, 1000);
  EXPECT_EQ(back.records[1].queue_ns, 1000);
  ASSERT_EQ(observed.losses.size(), 1);
  EXPECT_EQ(observed.losses[0].count(), 3);
  EXPECT_EQ(observed.losses[0].from_ns(), 0);
  EXPECT_EQ(observed.losses[0].to_ns(), 500);
  ASSERT_EQ(observed.marks.size(), 1);
  EXPECT_EQ(observed.marks[0].at_ns(), 800);
  EXPECT_FALSE(back.summary->recovered());
}

TEST_F(TraceMergerTest, TheHostsThatAreKnownAreNamed) {
  ASSERT_TRUE(
      Merge({OfHost("", 500), OfHost("ada", 1000), OfHost("bert", 2000), OfHost("ada", 3000)},
            MergeClock::kWall)
          .ok());
  Merged();
  EXPECT_EQ(header_.host(), "ada, bert");
}

TEST_F(TraceMergerTest, DevicesTellOfWhichMachineTheyAre) {
  const auto machines = [&](const std::vector<std::string>& paths, MergeClock clock) {
    const auto report = Merge(paths, clock);
    EXPECT_TRUE(report.ok()) << report.status().message();
    Merged();
    std::filesystem::rename(out_, folder_ + "/before.tape");
    std::vector<uint32_t> found;
    for (const proto::Device& device : header_.devices()) found.push_back(device.machine());
    return found;
  };
  const std::vector<std::string> paths = {OfHost("ada", 1000), OfHost("bert", 2000),
                                          OfHost("ada", 3000)};
  EXPECT_THAT(machines(paths, MergeClock::kSame), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(machines(paths, MergeClock::kWall), ElementsAre(0, 0, 1, 1));
  // One that was merged itself, and a further one.
  EXPECT_THAT(machines({folder_ + "/before.tape", OfHost("carl", 4000)}, MergeClock::kWall),
              ElementsAre(0, 0, 2, 2, 1, 1));
}

// A closed replay makes a chain of what one thread did.
TEST_F(TraceMergerTest, ThreadsOfTwoMachinesAreTwo) {
  const std::vector<std::string> paths = {OfHost("ada", 1000), OfHost("bert", 2000),
                                          OfHost("ada", 3000)};
  const auto pids = [&](MergeClock clock) {
    const auto report = Merge(paths, clock);
    EXPECT_TRUE(report.ok()) << report.status().message();
    const std::vector<uint32_t> found = MergedPids();
    std::filesystem::remove(out_);
    return found;
  };
  EXPECT_THAT(pids(MergeClock::kWall), ElementsAre(300, 300 + 4'194'304, 300));
  // Not the first one's, which would say that none can be read.
  EXPECT_EQ(header_.process_names(), "recorded");
  // One machine, whatever it was called.
  EXPECT_THAT(pids(MergeClock::kSame), ElementsAre(300, 300, 300));
  // None of them was there when another one was.
  EXPECT_THAT(pids(MergeClock::kStart), ElementsAre(300, 300 + 4'194'304, 300 + 8'388'608));
}

TEST_F(TraceMergerTest, ThreadsOfATraceThatWasMergedStayApartFromAFurtherOnes) {
  ASSERT_TRUE(Merge({OfHost("ada", 1000), OfHost("bert", 2000)}, MergeClock::kWall).ok());
  const std::string both = folder_ + "/both.tape";
  std::filesystem::rename(out_, both);
  const auto report = Merge({both, OfHost("carl", 3000)}, MergeClock::kWall);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(MergedPids(), ElementsAre(300, 300 + 8'388'608, 300 + 4'194'304));
  ASSERT_EQ(report->pid_moves.size(), 2u);
  EXPECT_EQ(report->pid_moves[0].trace, 0u);
  EXPECT_EQ(report->pid_moves[0].first, 4'194'304u);
  EXPECT_EQ(report->pid_moves[0].by, 4'194'304);
  EXPECT_EQ(report->pid_moves[1].trace, 1u);
  EXPECT_EQ(report->pid_moves[1].first, 0u);
}

TEST_F(TraceMergerTest, ADiskOfTheSecondMachineIsOneDisk) {
  const auto report =
      Merge({OfHost("ada", 1000), OfHost("bert", 2000), OfHost("bert", 3000), OfHost("ada", 4000)},
            MergeClock::kWall);
  ASSERT_TRUE(report.ok()) << report.status().message();
  std::vector<std::string> disks;
  for (const IoRecord& io : Merged().records) {
    disks.push_back(header_.devices(static_cast<int>(io.device)).name());
  }
  EXPECT_THAT(disks, ElementsAre("disk1", "disk1.2", "disk1.2", "disk1"));
  EXPECT_EQ(header_.devices_size(), 4);
  EXPECT_EQ(header_.host(), "ada, bert");
}

TEST_F(TraceMergerTest, TheResultOfAReplayIsRefused) {
  proto::Header header = TestHeader();
  header.mutable_replay()->set_rule("closed");
  const std::string path = folder_ + "/result.tape";
  {
    auto writer = TraceWriter::Create(path, header);
    ASSERT_TRUE((*writer)->Write(Write4k(2000, 8)).ok());
    ASSERT_TRUE((*writer)->Finish({}).ok());
  }
  const auto report = Merge({OneWrite("first.tape", 1000), path}, MergeClock::kSame);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), HasSubstr("result.tape: is the result of a replay"));
  EXPECT_FALSE(std::filesystem::exists(PartialPath(out_)));
}

// Its beginning would have to be read twice.
TEST_F(TraceMergerTest, APipeHasNoStartToAlignTo) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // Open at both ends, so that nobody waits.
  const int fd = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const std::string bytes = *ReadFile(OneWrite("second.tape", 2000));
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  const auto report = Merge({OneWrite("first.tape", 1000), pipe}, MergeClock::kStart);
  close(fd);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(report.status().message(), HasSubstr("pipe: is no file"));
  EXPECT_FALSE(std::filesystem::exists(PartialPath(out_)));
}

TEST_F(TraceMergerTest, AMessageOfANewerVersionIsLeftOutAndTheTraceNotCalledWhole) {
  const std::string newer = Trace("newer.tape", [](TraceWriter* writer) {
    proto::Message message;
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(2000, "tomorrow");
    EXPECT_TRUE(writer->WriteUnknown(message).ok());
    EXPECT_TRUE(writer->Write(Write4k(2000, 8)).ok());
    EXPECT_TRUE(writer->WriteUnknown(message).ok());
  });
  const auto report = Merge({OneWrite("first.tape", 1000), newer}, MergeClock::kSame);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->records, 2);
  EXPECT_EQ(report->unknown_messages, 2);
  EXPECT_TRUE(Merged().summary->recovered());
}

TEST_F(TraceMergerTest, AnUnfinishedTraceDoesNotBecomeAFinishedOne) {
  const std::string path = folder_ + "/second.tape";
  {
    auto writer = TraceWriter::Create(path, TestHeader());
    ASSERT_TRUE((*writer)->Write(Write4k(2000, 8)).ok());
    ASSERT_TRUE((*writer)->FlushFrame(false).ok());
  }
  const auto report = Merge({OneWrite("first.tape", 1000), PartialPath(path)}, MergeClock::kSame);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->records, 2);
  EXPECT_TRUE(Merged().summary->recovered());
}

TEST_F(TraceMergerTest, AColumnOfANewerVersionIsRefusedAndLeavesNoFile) {
  const std::string path = folder_ + "/newer.tape";
  std::ofstream(path, std::ios::binary) << TraceOfANewerVersion();
  const auto report = Merge({OneWrite("first.tape", 1000), path}, MergeClock::kSame);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(report.status().message(), HasSubstr("newer.tape"));
  EXPECT_FALSE(std::filesystem::exists(out_));
  EXPECT_FALSE(std::filesystem::exists(PartialPath(out_)));
}

}  // namespace
}  // namespace blktape
