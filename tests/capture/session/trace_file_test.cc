#include "capture/session/trace_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

class TraceFileTest : public ::testing::Test {
 protected:
  TraceFileTest()
      : folder_(fs::path(::testing::TempDir()) / "trace_file"),
        path_((folder_ / "a.tape").string()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~TraceFileTest() override { fs::remove_all(folder_); }

  static Status Put(TraceFile* file, std::string_view text) {
    return file->Write(std::as_bytes(std::span(text)));
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(TraceFileTest, WhatWasWrittenStandsUnderTheNameOnceFinished) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(Put(file->get(), "one ").ok());
  ASSERT_TRUE(Put(file->get(), "two").ok());
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(fs::exists(path_ + ".partial"));
  ASSERT_TRUE((*file)->Finish().ok());
  EXPECT_FALSE(fs::exists(path_ + ".partial"));
  EXPECT_EQ(*ReadFile(path_), "one two");
}

TEST_F(TraceFileTest, IsLockedAsLongAsItIsWritten) {
  {
    auto file = TraceFile::Create(path_);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(LockFile(path_ + ".partial").status().code(), StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(LockFile(path_ + ".partial").ok()) << "as a recorder that died leaves it";
}

TEST_F(TraceFileTest, SpaceTakenAheadIsGivenBackAtTheEnd) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(Put(file->get(), "x").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Finish().ok());
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 1);
  EXPECT_LE(info.st_blocks * 512, 64 * 1024);
}

TEST_F(TraceFileTest, OnlyItsOwnerMayReadIt) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Finish().ok());
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(TraceFileTest, NothingIsOverwritten) {
  auto first = TraceFile::Create(path_);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(TraceFile::Create(path_).status().code(), StatusCode::kAlreadyExists) << ".partial";
  ASSERT_TRUE((*first)->Finish().ok());
  EXPECT_EQ(TraceFile::Create(path_).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(TraceFileTest, ANameThatAppearedMeanwhileIsNotReplaced) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(Put(file->get(), "mine").ok());
  ASSERT_TRUE(CreateFile(path_).ok());
  EXPECT_EQ((*file)->Finish().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(path_ + ".partial"), "mine");
  EXPECT_EQ(*ReadFile(path_), "");
}

TEST_F(TraceFileTest, WithoutFinishThePartialHoldsAllThatWasWritten) {
  {
    auto file = TraceFile::Create(path_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(Put(file->get(), "abandoned").ok());
  }
  EXPECT_EQ(*ReadFile(path_ + ".partial"), "abandoned");
}

TEST_F(TraceFileTest, WhatWasSyncedCanBeReadWhileTheRecordingRuns) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(Put(file->get(), "live").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(*ReadFile(path_ + ".partial"), "live");
}

TEST_F(TraceFileTest, ManySmallWritesKeepTheirOrder) {
  TraceFileOptions options;
  options.queue_bytes = 64;
  auto file = TraceFile::Create(path_, options);
  ASSERT_TRUE(file.ok());
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    const std::string piece = std::to_string(i) + "\n";
    expected += piece;
    ASSERT_TRUE(Put(file->get(), piece).ok());
  }
  ASSERT_TRUE((*file)->Finish().ok());
  EXPECT_EQ(*ReadFile(path_), expected);
}

TEST_F(TraceFileTest, ThatTheFileWasMadeCountsAsTheFirstSync) {
  const int64_t before_ns = Clock::Monotonic()->NowNs();
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  const int64_t after_ns = Clock::Monotonic()->NowNs();
  EXPECT_FALSE((*file)->LastSync(before_ns - 1));
  const auto made = (*file)->LastSync(after_ns);
  ASSERT_TRUE(made);
  EXPECT_GE(made->begin_ns, before_ns);
  EXPECT_LE(made->begin_ns, after_ns);
  EXPECT_EQ(made->end_ns, made->begin_ns) << "nobody waits for it";
  EXPECT_EQ(made->data_bytes, 0u);
}

TEST_F(TraceFileTest, ASyncIsRememberedWithItsTime) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  const int64_t before_ns = Clock::Monotonic()->NowNs();
  ASSERT_TRUE(Put(file->get(), "x").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  const int64_t after_ns = Clock::Monotonic()->NowNs();
  const auto sync = (*file)->LastSync(after_ns);
  ASSERT_TRUE(sync);
  EXPECT_GE(sync->begin_ns, before_ns);
  EXPECT_LE(sync->end_ns, after_ns);
  EXPECT_GT(sync->end_ns, 0);
}

TEST_F(TraceFileTest, WritesGoOutUnderAThreadOfTheirOwn) {
  auto file = TraceFile::Create(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_NE((*file)->thread_id(), static_cast<uint32_t>(gettid()));
  EXPECT_TRUE(fs::exists("/proc/self/task/" + std::to_string((*file)->thread_id())));
}

TEST_F(TraceFileTest, AMissingFolderIsNamed) {
  const Status status = TraceFile::Create((folder_ / "no" / "a.tape").string()).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("no/a.tape.partial"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace blktape
