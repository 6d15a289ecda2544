#include "capture/session/file_finisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "capture/session/recording_file.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;

class FileFinisherTest : public ::testing::Test {
 protected:
  FileFinisherTest() : folder_(fs::path(::testing::TempDir()) / "file_finisher") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~FileFinisherTest() override { fs::remove_all(folder_); }

  // With a frame for each of `frames` batches of 16 records.
  std::unique_ptr<RecordingFile> Record(const std::string& name, int frames) {
    proto::Header header;
    header.add_devices()->set_name("sda");
    auto file = RecordingFile::Create((folder_ / name).string(), header, {}, nullptr);
    EXPECT_TRUE(file.ok()) << file.status().message();
    for (int i = 0; i < frames; ++i) {
      for (int j = 0; j < 16; ++j) {
        IoRecord record;
        record.lba = Lba(static_cast<uint64_t>(i * 16 + j) * 8);
        record.bytes = 4096;
        record.issue_ns = 1000 * (i * 16 + j);
        EXPECT_TRUE((*file)->Write(record).ok());
      }
      EXPECT_TRUE((*file)->Tick().ok());
    }
    return *std::move(file);
  }

  uint64_t RecordsIn(const std::string& name) {
    const auto reader = TraceReader::Open((folder_ / name).string(), nullptr);
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    uint64_t count = 0;
    IoRecord record;
    while (*(*reader)->Next(&record)) ++count;
    EXPECT_TRUE((*reader)->summary().has_value());
    return count;
  }

  fs::path folder_;
};

TEST_F(FileFinisherTest, FilesGetTheirNamesAndAreRewritten) {
  FileFinisher finisher;
  std::unique_ptr<RecordingFile> first = Record("a.tape", 100);
  const uint64_t live_bytes = first->bytes_written();
  finisher.Give(std::move(first), {});
  finisher.Give(Record("b.tape", 1), {});
  finisher.WaitForAll();
  const auto finished = finisher.Take();
  ASSERT_THAT(finished, SizeIs(2));
  EXPECT_EQ(finished[0].path, (folder_ / "a.tape").string());
  EXPECT_TRUE(finished[0].status.ok() && finished[1].status.ok());
  EXPECT_EQ(RecordsIn("a.tape"), 1600u);
  EXPECT_EQ(RecordsIn("b.tape"), 16u);
  EXPECT_LT(fs::file_size(folder_ / "a.tape"), live_bytes / 2);
  EXPECT_THAT(finisher.Take(), SizeIs(0));
}

TEST_F(FileFinisherTest, AFileThatComesWhileAnotherIsRewrittenGoesFirst) {
  FileFinisher finisher({}, /*compact_bytes_per_s=*/1);  // hours for the first
  finisher.Give(Record("a.tape", 3000), {});
  finisher.Give(Record("b.tape", 1), {});
  while (!fs::exists(folder_ / "b.tape")) {
    Clock::Monotonic()->SleepUntilNs(Clock::Monotonic()->NowNs() + kNanosPerMilli);
  }
  finisher.WaitForAll();
  EXPECT_EQ(RecordsIn("a.tape"), 48'000u);
}

TEST_F(FileFinisherTest, AWritersIdIsOwnAsLongAsItsIoMayBeUnderWay) {
  FileFinisher finisher;
  EXPECT_THAT(finisher.ThreadIds(0), SizeIs(0));
  std::unique_ptr<RecordingFile> file = Record("a.tape", 1);
  const uint32_t writer = file->file().thread_id();
  finisher.Give(std::move(file), {});
  finisher.WaitForAll();
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  EXPECT_THAT(finisher.ThreadIds(now_ns), Contains(writer));
  EXPECT_THAT(finisher.ThreadIds(now_ns + 31 * kNanosPerSecond), Not(Contains(writer)));
  EXPECT_TRUE(finisher.LastSync(now_ns).has_value());
}

}  // namespace
}  // namespace blktape
