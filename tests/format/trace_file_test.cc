// Traces as files: names, rights, failures to write, recovery.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "format/recover.h"
#include "format/trace_copier.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() {
    std::string folder = testing::TempDir() + "/trace_file_XXXXXX";
    folder_ = mkdtemp(folder.data());
    path_ = folder_ + "/day.tape";
  }
  ~TraceFileTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  // 5000 records with a flush every 50, as a recorder makes them that must lose nothing.
  std::vector<IoRecord> RecordShortFrames(TraceWriter* writer) {
    std::vector<IoRecord> records = DesktopRecords(3, 5000);
    for (size_t i = 0; i < records.size(); ++i) {
      records[i].process = writer->ProcessId("program" + std::to_string(i / 500));
      EXPECT_TRUE(writer->Write(records[i]).ok());
      if (i % 50 == 49) {
        writer->CountQueued(Op::kWrite, 4096, 50);
        EXPECT_TRUE(writer->WriteAnchor({}).ok());
        EXPECT_TRUE(writer->FlushFrame(i == 49).ok());
      }
    }
    return records;
  }

  static ReadBack ReadFileBack(const std::string& path) {
    auto source = OpenForReading(path);
    EXPECT_TRUE(source.ok()) << source.status().message();
    return ReadAll(std::move(*source));
  }

  std::string folder_;
  std::string path_;
};

TEST_F(TraceFileTest, ItIsPartialUntilFinishedAndForItsOwnerAlone) {
  auto writer = TraceWriter::Create(path_, TestHeader());
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ASSERT_TRUE((*writer)->Write(Write4k(1, 8)).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("day.tape.partial"));
  ASSERT_TRUE((*writer)->Finish({}).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("day.tape"));
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
}

TEST_F(TraceFileTest, NothingIsOverwritten) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(TraceWriter::Create(path_, TestHeader()).status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(Files(), UnorderedElementsAre("day.tape"));
  std::filesystem::rename(path_, path_ + ".partial");
  const Status refused = TraceWriter::Create(path_, TestHeader()).status();
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.message(), HasSubstr("blktape recover " + path_ + ".partial"));
  EXPECT_EQ(*ReadFile(path_ + ".partial"), "precious");
}

TEST_F(TraceFileTest, ANameTakenMeanwhileIsNotOverwrittenEither) {
  auto writer = TraceWriter::Create(path_, TestHeader());
  ASSERT_TRUE(writer.ok());
  std::ofstream(path_) << "precious";
  EXPECT_EQ((*writer)->Finish({}).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(path_), "precious");
  EXPECT_TRUE(ReadFileBack(path_ + ".partial").summary.has_value());
}

TEST_F(TraceFileTest, WhatWasFlushedSurvivesAWriterThatDies) {
  std::vector<IoRecord> records;
  {
    auto writer = TraceWriter::Create(path_, TestHeader());
    ASSERT_TRUE(writer.ok());
    records = RecordShortFrames(writer->get());
    ASSERT_TRUE((*writer)->Write(Write4k(1, 8)).ok());  // not flushed
  }
  const ReadBack back = ReadFileBack(path_ + ".partial");
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records, records);
  EXPECT_FALSE(back.summary.has_value());
  ASSERT_EQ(back.losses.size(), 1);
  EXPECT_EQ(back.losses[0].reason(), proto::TRUNCATED_INPUT);
  EXPECT_GT(back.lost_events, 0);
}

TEST_F(TraceFileTest, ShortFramesAreRewrittenIntoFullOnesWhenItIsFinished) {
  TraceWriterOptions as_written;
  as_written.compact = false;
  const std::string plain_path = folder_ + "/plain.tape";
  auto plain = TraceWriter::Create(plain_path, TestHeader(), as_written);
  auto writer = TraceWriter::Create(path_, TestHeader());
  ASSERT_TRUE(plain.ok() && writer.ok());
  const std::vector<IoRecord> records = RecordShortFrames(writer->get());
  RecordShortFrames(plain->get());
  proto::Summary extra;
  extra.set_own_excluded(17);
  ASSERT_TRUE((*writer)->Finish(extra).ok());
  ASSERT_TRUE((*plain)->Finish(extra).ok());
  EXPECT_THAT(Files(), UnorderedElementsAre("day.tape", "plain.tape"));
  EXPECT_LT(std::filesystem::file_size(path_), std::filesystem::file_size(plain_path) * 4 / 5);

  const ReadBack back = ReadFileBack(path_);
  EXPECT_EQ(back.records, records);
  EXPECT_THAT(back.losses, IsEmpty());
  EXPECT_EQ(back.summary->own_excluded(), 17);
  EXPECT_FALSE(back.summary->recovered());
  Observed observed;
  auto reader = TraceReader::Open(path_, &observed);
  ASSERT_TRUE(reader.ok());
  IoRecord io;
  while (*(*reader)->Next(&io)) {
  }
  EXPECT_EQ(observed.anchors.size(), 100);
  uint64_t queued = 0;
  for (const auto& sizes : observed.queued_sizes) queued += sizes.entries(0).count();
  EXPECT_EQ(queued, 5000);
  EXPECT_EQ((*reader)->ProcessName(*records.back().process), "program9");
}

// As a recorder writes an I/O that was in flight for longer than it waits.
TEST_F(TraceFileTest, ALateRecordIsInItsPlaceOnceTheTraceIsCompacted) {
  auto writer = TraceWriter::Create(path_, TestHeader());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Write(Write4k(1000, 0)).ok());
  ASSERT_TRUE((*writer)->Write(Write4k(3000, 16)).ok());
  EXPECT_TRUE((*writer)->in_order());
  ASSERT_TRUE((*writer)->FlushFrame(false).ok());
  ASSERT_TRUE((*writer)->Write(Write4k(2000, 8)).ok());
  EXPECT_FALSE((*writer)->in_order());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  ASSERT_TRUE(CompactInPlace(path_));
  EXPECT_THAT(ReadFileBack(path_).records,
              ElementsAre(Write4k(1000, 0), Write4k(2000, 8), Write4k(3000, 16)));
}

TEST_F(TraceFileTest, AFinishedTraceIsCompactedInPlaceAndSaysTheSame) {
  TraceWriterOptions as_written;
  as_written.compact = false;
  auto writer = TraceWriter::Create(path_, TestHeader(), as_written);
  ASSERT_TRUE(writer.ok());
  const std::vector<IoRecord> records = RecordShortFrames(writer->get());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  const uint64_t before_bytes = std::filesystem::file_size(path_);
  EXPECT_TRUE(HasShortFrames(100, records.size()));
  ASSERT_TRUE(CompactInPlace(path_));
  EXPECT_THAT(Files(), UnorderedElementsAre("day.tape"));
  EXPECT_LT(std::filesystem::file_size(path_), before_bytes * 4 / 5);
  const ReadBack back = ReadFileBack(path_);
  EXPECT_EQ(back.records, records);
  EXPECT_FALSE(back.summary->recovered());
}

TEST_F(TraceFileTest, ACutTraceIsNotCompactedButLeftAsItIs) {
  TraceWriterOptions as_written;
  as_written.compact = false;
  auto writer = TraceWriter::Create(path_, TestHeader(), as_written);
  ASSERT_TRUE(writer.ok());
  RecordShortFrames(writer->get());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  ASSERT_EQ(truncate(path_.c_str(), 5000), 0);
  const std::string before = *ReadFile(path_);
  EXPECT_FALSE(CompactInPlace(path_));
  EXPECT_EQ(*ReadFile(path_), before);
  EXPECT_THAT(Files(), UnorderedElementsAre("day.tape"));
}

// A kind of message with number 2,000, as a later version may have it.
TEST_F(TraceFileTest, AMessageOfANewerVersionSurvivesRecovery) {
  proto::Message newer;
  newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(2000, "of tomorrow");
  {
    auto writer = TraceWriter::Create(path_, TestHeader());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Write(Write4k(1000, 0)).ok());
    ASSERT_TRUE((*writer)->WriteUnknown(newer).ok());
    ASSERT_TRUE((*writer)->Write(Write4k(2000, 8)).ok());
    ASSERT_TRUE((*writer)->FlushFrame(true).ok());
  }
  const std::string recovered = folder_ + "/recovered.tape";
  ASSERT_TRUE(RecoverTrace(path_ + ".partial", recovered).ok());
  struct Unknown : TraceObserver {
    void OnUnknown(const proto::Message& message) override {
      messages.push_back(message.SerializeAsString());
    }
    std::vector<std::string> messages;
  } unknown;
  auto reader = TraceReader::Open(recovered, &unknown);
  ASSERT_TRUE(reader.ok());
  IoRecord io;
  uint64_t records = 0;
  while (*(*reader)->Next(&io)) ++records;
  EXPECT_EQ(records, 2);
  EXPECT_THAT(unknown.messages, testing::ElementsAre(newer.SerializeAsString()));
}

TEST_F(TraceFileTest, APartialIsRecoveredAndSaysSo) {
  std::vector<IoRecord> records;
  {
    auto writer = TraceWriter::Create(path_, TestHeader());
    ASSERT_TRUE(writer.ok());
    records = RecordShortFrames(writer->get());
  }
  const std::string partial_path = path_ + ".partial";
  const std::string before = *ReadFile(partial_path);
  // Torn inside its last frame.
  ASSERT_EQ(truncate(partial_path.c_str(), static_cast<off_t>(before.size() - 10)), 0);
  const Result<RecoverReport> report = RecoverTrace(partial_path, path_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->records, 4950);
  EXPECT_FALSE(report->whole);
  EXPECT_EQ(*ReadFile(partial_path), before.substr(0, before.size() - 10));

  const ReadBack back = ReadFileBack(path_);
  ASSERT_TRUE(back.status.ok());
  records.resize(4950);
  EXPECT_EQ(back.records, records);
  ASSERT_TRUE(back.summary.has_value());
  EXPECT_TRUE(back.summary->recovered());
  ASSERT_EQ(back.losses.size(), 1);
  EXPECT_EQ(back.losses[0].reason(), proto::TRUNCATED_INPUT);
  EXPECT_EQ(back.lost_events, 1);  // how many is not known
  ASSERT_EQ(back.summary->losses_size(), 1);
  EXPECT_EQ(back.summary->losses(0).unknowable(), 1);
}

TEST_F(TraceFileTest, DamageInTheMiddleIsStoredAsALossByRecovery) {
  std::vector<IoRecord> records;
  {
    TraceWriterOptions options;
    options.compact = false;
    auto writer = TraceWriter::Create(path_, TestHeader(), options);
    ASSERT_TRUE(writer.ok());
    records = RecordShortFrames(writer->get());
    ASSERT_TRUE((*writer)->Finish({}).ok());
  }
  std::string bytes = *ReadFile(path_);
  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  const std::string damaged_path = folder_ + "/damaged.tape";
  std::ofstream(damaged_path) << bytes;
  const std::string out_path = folder_ + "/recovered.tape";
  ASSERT_TRUE(RecoverTrace(damaged_path, out_path).ok());
  const ReadBack back = ReadFileBack(out_path);
  EXPECT_EQ(back.records.size(), 4950);
  ASSERT_EQ(back.losses.size(), 1);
  EXPECT_EQ(back.losses[0].reason(), proto::DAMAGED_INPUT);
  EXPECT_EQ(back.losses[0].count(), 50);
  EXPECT_TRUE(back.summary->recovered());
}

TEST_F(TraceFileTest, ATraceStillBeingWrittenIsNotRecovered) {
  auto writer = TraceWriter::Create(path_, TestHeader());
  ASSERT_TRUE(writer.ok());
  const auto report = RecoverTrace(path_ + ".partial", folder_ + "/out.tape");
  EXPECT_EQ(report.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(Files(), UnorderedElementsAre("day.tape.partial"));
}

TEST_F(TraceFileTest, RecoveryOverwritesNothing) {
  {
    ASSERT_TRUE(TraceWriter::Create(path_, TestHeader()).ok());
  }
  std::ofstream(path_) << "precious";
  EXPECT_EQ(RecoverTrace(path_ + ".partial", path_).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(path_), "precious");
}

// Takes `room_bytes` and then has no more.
class FullSink : public ByteSink {
 public:
  explicit FullSink(size_t room_bytes) : room_bytes_(room_bytes) {}
  Status Write(std::span<const std::byte> bytes) override {
    const size_t fits = std::min(bytes.size(), room_bytes_ - bytes_.size());
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), fits);
    if (fits == bytes.size()) return OkStatus();
    ++failures_;
    return Status(StatusCode::kResourceExhausted, "full: no space left");
  }
  Status Sync() override { return OkStatus(); }
  std::string_view name() const override { return "full"; }
  const std::string& bytes() const { return bytes_; }
  int failures() const { return failures_; }

 private:
  size_t room_bytes_;
  std::string bytes_;
  int failures_ = 0;
};

TEST_F(TraceFileTest, AFullDiskAtAnyByteIsReportedOnceAndForEverAndLeavesWhatWasWritten) {
  const std::vector<IoRecord> records = DesktopRecords(11, 60);
  TraceWriterOptions options;
  options.records_per_frame = 20;
  const size_t whole_bytes = TraceOf(records, 20).size();
  for (size_t room = 0; room < whole_bytes; ++room) {
    SCOPED_TRACE("room for " + std::to_string(room));
    FullSink sink(room);
    auto writer = TraceWriter::ToSink(&sink, TestHeader(), options);
    if (!writer.ok()) {
      EXPECT_EQ(writer.status().code(), StatusCode::kResourceExhausted);
      continue;
    }
    Status status;
    for (const IoRecord& io : records) {
      const Status written = (*writer)->Write(io);
      EXPECT_TRUE(status.ok() || !written.ok()) << "recovered from a failure";
      if (status.ok()) status = written;
    }
    if (status.ok()) {
      status = (*writer)->Finish({});
    } else {
      EXPECT_EQ((*writer)->Finish({}).message(), status.message());
      EXPECT_EQ((*writer)->FlushFrame(true).message(), status.message());
      EXPECT_EQ((*writer)->WriteLoss({}).message(), status.message());
    }
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(sink.failures(), 1);
    const ReadBack back = ReadAll(sink.bytes());
    ASSERT_TRUE(back.status.ok());
    EXPECT_EQ(back.records.size() % 20, 0);
    EXPECT_TRUE(std::equal(back.records.begin(), back.records.end(), records.begin()));
    EXPECT_GE(back.losses.size(), 1);
  }
}

TEST_F(TraceFileTest, ARecordOfADeviceThatTheHeaderLacksIsRefused) {
  MemorySink sink;
  auto writer = TraceWriter::ToSink(&sink, TestHeader(2));
  ASSERT_TRUE(writer.ok());
  IoRecord io = Write4k(1, 8);
  io.device = 2;
  EXPECT_EQ((*writer)->Write(io).code(), StatusCode::kInvalidArgument);
  io.device = 1;
  EXPECT_TRUE((*writer)->Write(io).ok());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  EXPECT_EQ(ReadAll(sink.bytes()).records.size(), 1);
}

TEST_F(TraceFileTest, AMissingFileIsNamed) {
  const auto reader = TraceReader::Open(path_);
  EXPECT_EQ(reader.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(reader.status().message(), HasSubstr(path_));
}

}  // namespace
}  // namespace blktape
