#include "capture/session/file_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/units.h"
#include "tests/capture/session/fake_source.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = kNanosPerSecond;
constexpr int64_t kWallNs = 1'792'881'000 * kSecond;

RotationOptions EveryMinute() {
  RotationOptions options;
  options.every_ns = 60 * kSecond;
  return options;
}

class FileSeriesTest : public ::testing::Test {
 protected:
  FileSeriesTest() : folder_(fs::path(::testing::TempDir()) / "file_series") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    auto session = CaptureSession::Begin(std::make_unique<FakeSource>("fake", &state_),
                                         Path("1.tape"), SessionOptions());
    EXPECT_TRUE(session.ok()) << session.status().message();
    session_ = *std::move(session);
  }
  ~FileSeriesTest() override {
    EXPECT_TRUE(session_->Finish().ok());
    fs::remove_all(folder_);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  void Add(const std::string& name, size_t bytes, int age_minutes) {
    std::ofstream(Path(name)) << std::string(bytes, 'x');
    fs::last_write_time(Path(name),
                        fs::file_time_type::clock::now() - std::chrono::minutes(age_minutes));
  }
  FileSeries Series(const RotationOptions& rotation) {
    return FileSeries(session_.get(),
                      {.rotation = rotation,
                       .folder = folder_.string(),
                       .series = "sda",
                       .next_path = [this] { return next_; }},
                      kWallNs);
  }

  fs::path folder_;
  FakeSource::State state_;
  std::unique_ptr<CaptureSession> session_;
  std::string next_ = Path("2.tape");
};

TEST_F(FileSeriesTest, TheNextFileBeginsWhenItIsDue) {
  FileSeries series = Series(EveryMinute());
  EXPECT_FALSE(series.Turn(59 * kSecond, kWallNs + 59 * kSecond, /*asked=*/false));
  EXPECT_TRUE(series.Turn(60 * kSecond, kWallNs + 60 * kSecond, false));
  EXPECT_EQ(session_->file().path(), Path("2.tape"));
  next_ = Path("3.tape");
  EXPECT_FALSE(series.Turn(119 * kSecond, kWallNs + 119 * kSecond, false));
  EXPECT_TRUE(series.Turn(120 * kSecond, kWallNs + 120 * kSecond, false));
  EXPECT_THAT(series.TakeNews(), IsEmpty());
}

TEST_F(FileSeriesTest, OneThatCannotBeMadeIsTriedAgainTenSecondsLater) {
  FileSeries series = Series(EveryMinute());
  Add("2.tape", 1, 0);
  EXPECT_FALSE(series.Turn(60 * kSecond, kWallNs + 60 * kSecond, false));
  EXPECT_EQ(session_->file().path(), Path("1.tape"));
  EXPECT_THAT(series.TakeNews(), ElementsAre(HasSubstr("no new file: ")));
  fs::remove(Path("2.tape"));
  EXPECT_FALSE(series.Turn(69 * kSecond, kWallNs + 69 * kSecond, false));
  EXPECT_TRUE(series.Turn(70 * kSecond, kWallNs + 70 * kSecond, false));
}

TEST_F(FileSeriesTest, WhoAsksIsNotMadeToWait) {
  FileSeries series = Series({});
  Add("2.tape", 1, 0);
  EXPECT_FALSE(series.Turn(1 * kSecond, kWallNs, /*asked=*/true));
  fs::remove(Path("2.tape"));
  EXPECT_FALSE(series.Turn(2 * kSecond, kWallNs, /*asked=*/false)) << "nothing is due";
  EXPECT_TRUE(series.Turn(3 * kSecond, kWallNs, /*asked=*/true));
}

TEST_F(FileSeriesTest, TracesOfAnotherDiskAreNotRemoved) {
  Add("sdb_2026-11-01T00-00-00.tape", 60'000, 30);
  Add("sda_2026-11-02T00-00-00.tape", 6000, 20);
  RotationOptions keep;
  keep.keep_bytes = 10'000;
  FileSeries series = Series(keep);
  series.Turn(0, kWallNs, false);
  EXPECT_THAT(series.TakeNews(), IsEmpty());
}

TEST_F(FileSeriesTest, OldTracesBeyondTheQuotaGoAtOnceAndThenEachMinute) {
  Add("sda_2026-11-01T00-00-00.tape", 6000, 30);
  Add("sda_2026-11-02T00-00-00.tape", 6000, 20);
  RotationOptions keep;
  keep.keep_bytes = 10'000;
  FileSeries series = Series(keep);
  series.Turn(0, kWallNs, false);
  EXPECT_THAT(series.TakeNews(), ElementsAre("removed " + Path("sda_2026-11-01T00-00-00.tape")));
  Add("sda_2026-11-03T00-00-00.tape", 6000, 10);
  series.Turn(59 * kSecond, kWallNs, false);
  EXPECT_THAT(series.TakeNews(), IsEmpty());
  series.Turn(60 * kSecond, kWallNs, false);
  EXPECT_THAT(series.TakeNews(), ElementsAre("removed " + Path("sda_2026-11-02T00-00-00.tape")));
}

}  // namespace
}  // namespace blktape
