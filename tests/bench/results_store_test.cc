#include "bench/results_store.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analysis/score_json.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::string ScoreText(const std::string& model) {
  return JsonText(ScoreReportJson(model, {{1e9, 1e9}})) + "\n";
}
constexpr char kCornersText[] =
    R"({"corners": 1, "quick": true, "targets": [{"name": "sdx", "model": ""}], "tests": [
        {"group": "random", "name": "4 KiB", "condition": "", "bytes_per_second": 1.5, "iops": null,
         "d2c_ns": {"p99": 7}}]})";

std::string SuiteText() {
  const auto report = ScoreReportJson("one", {{1e9, 1e9}});
  return JsonText(Json{{"suite_version", 1},
                       {"suite", "office"},
                       {"traces", {{{"weight", 1}, {"report", report}}}}});
}

class ResultsStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/results-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/share/blktape/results.db";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<ResultsStore> Opened() {
    auto store = ResultsStore::OpenOrCreate(path_);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return *std::move(store);
  }
  static NewResult Made(const std::string& name, const std::string& json) {
    Result<NewResult> made = MakeResult(name, json);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }
  static int64_t Put(ResultsStore* store, const std::string& name, const std::string& json) {
    const auto added = store->Add({Made(name, json)}, 7);
    EXPECT_TRUE(added.ok()) << added.status().message();
    return added->front().row.id;
  }
  // By another program.
  void Sql(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  std::string folder_, path_;
};

TEST_F(ResultsStoreTest, WhatGoesInComesOutByteByByte) {
  const std::string score = ScoreText("fast");
  {
    const auto store = Opened();
    EXPECT_EQ(Put(store.get(), "monday-on-sdx", score), 1);
    EXPECT_EQ(Put(store.get(), "corners", kCornersText), 2);
  }
  const auto store = ResultsStore::Open(path_);
  ASSERT_TRUE(store.ok());
  EXPECT_EQ(*(*store)->Json(1), score);
  EXPECT_EQ(*(*store)->Json(2), kCornersText);
  const auto rows = (*store)->List();
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 2u);
  const ResultRow& row = rows->front();
  EXPECT_EQ(row.name, "monday-on-sdx");
  EXPECT_EQ(row.kind, ResultKind::kScore);
  EXPECT_EQ(row.added_ns, 7);
  EXPECT_EQ(row.drive, "fast");
  EXPECT_THAT(row.trace, Optional(std::string("monday.tape")));
  EXPECT_THAT(row.state, Optional(std::string("as-is")));
  EXPECT_THAT(row.score, Optional(1000.0));
  EXPECT_THAT(row.ci_low, Optional(990.0));
  EXPECT_THAT(row.ci_high, Optional(1010.0));
  EXPECT_THAT(row.valid, Optional(true));
  EXPECT_EQ(rows->back().kind, ResultKind::kCorners);
  EXPECT_EQ(rows->back().drive, "sdx");
  EXPECT_EQ(rows->back().score, std::nullopt);
}

TEST_F(ResultsStoreTest, TheFileIsItsOwnersAlone) {
  Opened();
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ResultsStoreTest, ANameThatIsTakenKeepsWhatItNames) {
  const auto store = Opened();
  Put(store.get(), "a", ScoreText("one"));
  // All or none.
  const auto added = store->Add({Made("b", ScoreText("two")), Made("a", ScoreText("three"))}, 8);
  EXPECT_EQ(added.status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(store->List()->size(), 1u);
  EXPECT_EQ(*store->Json(1), ScoreText("one"));
}

TEST_F(ResultsStoreTest, TheSameResultIsKeptOnce) {
  const auto store = Opened();
  Put(store.get(), "a", ScoreText("one"));
  const auto again = store->Add({Made("b", ScoreText("one"))}, 8);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->front().was_there);
  EXPECT_EQ(again->front().row.name, "a");
  EXPECT_EQ(store->List()->size(), 1u);
}

TEST_F(ResultsStoreTest, IsFoundByIdOrNameAndGoneAfterRemoval) {
  const auto store = Opened();
  Put(store.get(), "a", ScoreText("one"));
  Put(store.get(), "b", ScoreText("two"));
  EXPECT_EQ(store->Find("2")->name, "b");
  EXPECT_EQ(store->Find("b")->id, 2);
  for (const char* word : {"3", "c", "", "2x", "-1", "99999999999999999999", "' OR 1 --"}) {
    EXPECT_EQ(store->Find(word).status().code(), StatusCode::kNotFound) << word;
  }
  EXPECT_TRUE(store->Remove(2).ok());
  EXPECT_EQ(store->Remove(2).code(), StatusCode::kNotFound);
  EXPECT_EQ(store->Json(2).status().code(), StatusCode::kNotFound);
  // An id is never given twice.
  EXPECT_EQ(Put(store.get(), "b", ScoreText("two")), 3);
}

TEST_F(ResultsStoreTest, HostileNamesAreDataOrRefused) {
  const auto store = Opened();
  const std::vector<std::string> names = {"'; DROP TABLE results; --", "</script>", "\u202egpj",
                                          std::string(200, 'x')};
  for (const std::string& name : names) {
    Put(store.get(), name, ScoreText(name));
    EXPECT_EQ(store->Find(name)->drive, name);
  }
  for (const std::string& name :
       {std::string(), std::string("17"), std::string("a\nb"), std::string("\x1b[31m"),
        std::string("a\0b", 3), std::string("\xff"), std::string(201, 'x')}) {
    const Status status = MakeResult(name, ScoreText("a")).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(status.message().find('\x1b'), std::string::npos);
  }
}

TEST_F(ResultsStoreTest, WhatIsNoResultIsRefused) {
  for (const char* text :
       {"", "[]", "{}", "7", "{\"corners\": \"x\"}", "{\"corners\": 1}",
        R"({"corners": 1, "quick": "no", "targets": [], "tests": []})",
        R"({"corners": 1, "quick": true, "targets": [], "tests": [{"name": 1}]})",
        "{\"score_version\": 2}", "not json", "{\"trace\": \"\xff\"}"}) {
    EXPECT_EQ(MakeResult("a", text).status().code(), StatusCode::kDataLoss) << text;
  }
  for (const char* text : {"{\"corners\": 2}", "{\"score_version\": 9}"}) {
    EXPECT_EQ(MakeResult("a", text).status().code(), StatusCode::kUnimplemented) << text;
  }
}

TEST_F(ResultsStoreTest, ANewerSchemaIsRefusedByName) {
  Put(Opened().get(), "a", ScoreText("one"));
  Sql("PRAGMA user_version = 3");
  for (const auto& store :
       {ResultsStore::Open(path_).status(), ResultsStore::OpenOrCreate(path_).status()}) {
    EXPECT_EQ(store.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(store.message(), HasSubstr(path_));
    EXPECT_THAT(store.message(), HasSubstr("schema 3"));
  }
}

TEST_F(ResultsStoreTest, Schema1IsReadAsItIsAndBroughtToSchema2ByWhoAdds) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  // As the program of that schema made it; result 2 was removed again.
  const std::string text = ScoreText("one");
  Sql(R"(CREATE TABLE results(
           id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
           kind TEXT NOT NULL CHECK(kind IN ('score', 'corners')), added_ns INTEGER NOT NULL,
           sha256 TEXT NOT NULL UNIQUE, drive TEXT NOT NULL, trace TEXT, trace_hash TEXT,
           state TEXT, rule TEXT, score REAL, ci_low REAL, ci_high REAL, valid INTEGER,
           json TEXT NOT NULL);
         PRAGMA application_id = 1651272564; PRAGMA user_version = 1;
         INSERT INTO results(name, kind, added_ns, sha256, drive, score, valid, json)
           VALUES('old', 'score', 7, ')" +
      Made("old", text).sha256 + "', 'one', 1000, 1, '" + text + R"(');
         INSERT INTO results(name, kind, added_ns, sha256, drive, json)
           VALUES('gone', 'corners', 7, 'x', '', '');
         DELETE FROM results WHERE name = 'gone';)");
  {
    auto store = ResultsStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_EQ((*store)->Find("old")->id, 1);
    EXPECT_EQ(*(*store)->Json(1), text);
  }
  const auto store = Opened();
  EXPECT_EQ(Put(store.get(), "new", ScoreText("two")), 3) << "an id is never given twice";
  const auto rows = store->List();
  ASSERT_TRUE(rows.ok() && rows->size() == 2u);
  EXPECT_EQ((*rows)[0].id, 1);
  EXPECT_EQ((*rows)[0].name, "old");
  EXPECT_EQ((*rows)[0].added_ns, 7);
  EXPECT_THAT((*rows)[0].score, Optional(1000.0));
  EXPECT_EQ(*store->Json(1), text);
  Put(store.get(), "suite", SuiteText());
  EXPECT_EQ(store->Find("suite")->kind, ResultKind::kSuite);
}

TEST_F(ResultsStoreTest, ASuiteIsListedByItsComposite) {
  const auto store = Opened();
  const int64_t id = Put(store.get(), "suite", SuiteText());
  const auto row = store->Find("suite");
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->kind, ResultKind::kSuite);
  EXPECT_EQ(row->drive, "one");
  EXPECT_THAT(row->trace, Optional(std::string("office")));
  EXPECT_FALSE(row->state);
  EXPECT_THAT(row->score, Optional(1000.0));  // its log_scores are 0
  EXPECT_THAT(row->valid, Optional(true));
  EXPECT_EQ(*store->Json(id), SuiteText());
}

TEST_F(ResultsStoreTest, RemovingAResultRemovesItsTracesAndNothingElse) {
  const auto store = Opened();
  const int64_t id = Put(store.get(), "a", ScoreText("one"));
  const std::string folder = store->TracesFolder(id);
  EXPECT_EQ(folder, path_ + ".traces/" + std::to_string(id));
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/cycle-1-max.tape") << "trace";
  ASSERT_TRUE(store->Remove(id).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".traces"));
  const int64_t other = Put(store.get(), "b", ScoreText("two"));
  std::filesystem::create_directories(store->TracesFolder(other));
  std::ofstream(store->TracesFolder(other) + "/notes.txt") << "mine";
  ASSERT_TRUE(store->Remove(other).ok());
  EXPECT_TRUE(std::filesystem::exists(store->TracesFolder(other) + "/notes.txt"));
}

TEST(ResultNameTest, ANameIsMadeOfAnyFilesName) {
  EXPECT_EQ(ResultNameOf("monday-on-sda"), "monday-on-sda");
  EXPECT_EQ(ResultNameOf("2024"), "result-2024");
  EXPECT_EQ(ResultNameOf(""), "result-");
  for (const std::string& name : {std::string("a\xff\n"), std::string(5000, 'x')}) {
    EXPECT_TRUE(MakeResult(ResultNameOf(name), ScoreText("one")).ok());
  }
}

TEST_F(ResultsStoreTest, AnotherProgramsDatabaseIsLeftAlone) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  Sql("CREATE TABLE bookmarks(url)");
  const std::string before = *ReadFile(path_);
  EXPECT_EQ(ResultsStore::OpenOrCreate(path_).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(*ReadFile(path_), before);
}

TEST_F(ResultsStoreTest, WhatIsNoDatabaseIsLeftAloneAndNamed) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  std::ofstream(path_) << std::string(10'000, 'x');
  const Status status = ResultsStore::OpenOrCreate(path_).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr(path_));
  EXPECT_EQ(*ReadFile(path_), std::string(10'000, 'x'));
}

TEST_F(ResultsStoreTest, AMissingFileIsNotMadeByLooking) {
  EXPECT_EQ(ResultsStore::Open(path_).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(ResultsStoreTest, AChangedResultIsNotGivenOut) {
  Put(Opened().get(), "a", ScoreText("one"));
  Sql("UPDATE results SET json = replace(json, 'monday', 'sunday')");
  EXPECT_EQ(Opened()->Json(1).status().code(), StatusCode::kDataLoss);
}

// Every page of the file overwritten in turn, and the file cut after each: an error or the truth,
// never a crash and never another result.
TEST_F(ResultsStoreTest, DamageIsAnErrorOrHarmless) {
  const std::string score = ScoreText("one");
  Put(Opened().get(), "a", score);
  const std::string whole = *ReadFile(path_);
  const auto try_it = [&](const std::string& content) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
    const auto store = ResultsStore::Open(path_);
    if (!store.ok()) {
      EXPECT_THAT(store.status().message(), HasSubstr(path_));
      return;
    }
    const auto json = (*store)->Json(1);
    if (json.ok()) {
      EXPECT_EQ(*json, score);
    }
  };
  for (size_t at = 0; at < whole.size(); at += 512) {
    try_it(whole.substr(0, at));
    std::string damaged = whole;
    damaged.replace(at, 64, 64, '\xa5');
    try_it(damaged);
  }
}

TEST(DefaultResultsPathTest, FollowsXdgThenHome) {
  setenv("HOME", "/home/a", 1);
  setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(*DefaultResultsPath(), "/data/blktape/results.db");
  setenv("XDG_DATA_HOME", "relative", 1);
  EXPECT_EQ(*DefaultResultsPath(), "/home/a/.local/share/blktape/results.db");
  unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(*DefaultResultsPath(), "/home/a/.local/share/blktape/results.db");
  unsetenv("HOME");
  EXPECT_EQ(DefaultResultsPath().status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace blktape
