#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

struct sqlite3;

namespace blktape {

// Results that are kept: reports of `score`, of a suite and of `corners`, each as the JSON that was
// written, in one SQLite file. Schema: docs/results.md.
inline constexpr int kResultsSchema = 2;

enum class ResultKind { kScore, kSuite, kCorners };
const char* ResultKindName(ResultKind kind);

// A result as it is listed. Text is somebody's: well-formed UTF-8, but not safe on a terminal.
struct ResultRow {
  int64_t id = 0;
  std::string name;
  ResultKind kind = ResultKind::kScore;
  int64_t added_ns = 0;  // since the Unix epoch
  std::string drive;     // model of the target, else its path; "" for one without
  // Of a score or a suite, whose name `trace` then is; else absent. A suite has no one state.
  std::optional<std::string> trace, state;
  std::optional<double> score, ci_low, ci_high;
  std::optional<bool> valid;
};

// What is to be kept, made of a JSON text that was checked.
struct NewResult {
  std::string name;
  std::string json;  // kept byte by byte
  std::string sha256;
  std::optional<std::string> trace_hash, rule;  // of a score
  ResultRow row;                                // without id, name and time
};

// Checks the JSON: a report.json of `score`, a result of a suite, or what `corners --json` says.
// kDataLoss if it is neither, kUnimplemented if of a version that this program does not know,
// kInvalidArgument if the name cannot be one: a name is UTF-8 of 1 to 200 bytes, without control
// characters, and no number, which would be an id.
Result<NewResult> MakeResult(const std::string& name, std::string json);

// What of a file's or folder's name can be the name of a result.
std::string ResultNameOf(const std::string& name);

// ~/.local/share/blktape/results.db, or below XDG_DATA_HOME. kFailedPrecondition where neither that
// nor HOME is set.
Result<std::string> DefaultResultsPath();

// One file, one thread; several processes may have it open. All failures name the file:
// kUnimplemented for a schema newer than kResultsSchema, kFailedPrecondition for another program's
// database, kDataLoss for a damaged file.
class ResultsStore {
 public:
  // kNotFound where there is no file.
  static Result<std::unique_ptr<ResultsStore>> Open(const std::string& path);
  // Makes file (mode 0600) and folders where they are not there, and brings an older schema to
  // kResultsSchema. Open reads an older one as it is.
  static Result<std::unique_ptr<ResultsStore>> OpenOrCreate(const std::string& path);
  ~ResultsStore();
  ResultsStore(const ResultsStore&) = delete;
  ResultsStore& operator=(const ResultsStore&) = delete;

  // By id.
  Result<std::vector<ResultRow>> List();
  // Adds all or none. Nothing is overwritten: kAlreadyExists where a name is taken. What the store
  // already holds, byte by byte, under whatever name, is not added again; the row that has it is
  // told. `now_ns` since the Unix epoch.
  struct Added {
    ResultRow row;
    bool was_there = false;
  };
  Result<std::vector<Added>> Add(const std::vector<NewResult>& results, int64_t now_ns);
  // By id ("3") or name. kNotFound.
  Result<ResultRow> Find(const std::string& id_or_name);
  // The JSON as it came. kDataLoss if its SHA-256 is no longer what it was.
  Result<std::string> Json(int64_t id);
  // With its result traces.
  Status Remove(int64_t id);

  // Where the result traces of a result are, if they are kept: "results.db.traces/7" beside the
  // file.
  std::string TracesFolder(int64_t id) const;

 private:
  ResultsStore(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  class Statement;

  Status Failure(int code) const;
  Status Run(const char* sql);
  Result<int64_t> Number(const char* sql);
  static Result<std::unique_ptr<ResultsStore>> OpenFile(const std::string& path, bool create);
  Status CheckFile(bool create);
  Status Prepare(const char* sql, Statement* statement);
  Result<std::vector<ResultRow>> Rows(Statement* statement);
  Result<std::vector<Added>> AddAll(const std::vector<NewResult>& results, int64_t now_ns);

  std::string path_;
  sqlite3* database_;
};

}  // namespace blktape
