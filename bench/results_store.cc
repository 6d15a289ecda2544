#include "bench/results_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "analysis/corners_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/suite_score.h"
#include "base/byte_stream.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/utf8.h"

namespace blktape {
namespace {

constexpr size_t kLongestName = 200;
constexpr int kBusyTimeoutMs = 10'000;
// "blkt", so that neither another program's database is taken for one of results, nor the reverse.
constexpr int64_t kApplicationId = 0x626c6b74;

constexpr char kCreate[] = R"(
  CREATE TABLE results(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK(kind IN ('score', 'suite', 'corners')),
    added_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,
    drive TEXT NOT NULL,
    trace TEXT,
    trace_hash TEXT,
    state TEXT,
    rule TEXT,
    score REAL,
    ci_low REAL,
    ci_high REAL,
    valid INTEGER,
    json TEXT NOT NULL);
  PRAGMA application_id = 1651272564;
  PRAGMA user_version = 2;
)";
static_assert(kApplicationId == 1651272564 && kResultsSchema == 2);

// Schema 1 knew no suites. SQLite cannot change a CHECK, so all moves to a new table; ids that were
// given stay given.
constexpr char kFromSchema1Before[] = "ALTER TABLE results RENAME TO results_1";
constexpr char kFromSchema1After[] = R"(
  INSERT INTO results SELECT * FROM results_1;
  DELETE FROM sqlite_sequence WHERE name = 'results';
  INSERT INTO sqlite_sequence(name, seq)
    SELECT 'results', seq FROM sqlite_sequence WHERE name = 'results_1';
  DROP TABLE results_1;
)";

constexpr char kRowColumns[] =
    "SELECT id, name, kind, added_ns, drive, trace, state, score, ci_low, ci_high, valid "
    "FROM results ";

Status CheckName(const std::string& name) {
  const Status refused(StatusCode::kInvalidArgument,
                       "a result cannot have the name \"" + ToPrintable(ToUtf8(name)) + "\": ");
  const auto because = [&refused](const char* reason) {
    return Status(refused.code(), refused.message() + reason);
  };
  if (name.empty()) return because("it is empty");
  if (name.size() > kLongestName) return because("it is longer than 200 bytes");
  if (!IsUtf8(name)) return because("it is no UTF-8");
  if (ToPrintable(name) != name) return because("it holds control characters");
  if (name.find_first_not_of("0123456789") == std::string::npos) {
    return because("a number is an id");
  }
  return OkStatus();
}

// Of `corners --json`.
Result<ResultRow> CornersRow(const std::string& text, const Json& json) {
  ASSIGN_OR_RETURN(const MeasuredCorners corners, ParseMeasuredCorners(text));
  ResultRow row;
  row.kind = ResultKind::kCorners;
  if (!json.at("targets").empty()) row.drive = corners.drive;
  return row;
}

Result<std::string> TextSha256(const std::string& text) {
  MemorySource source(text);
  return Sha256Hex(&source);
}

bool IsId(const std::string& text) {
  return !text.empty() && text.size() < 19 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

const char* ResultKindName(ResultKind kind) {
  switch (kind) {
    case ResultKind::kScore:
      return "score";
    case ResultKind::kSuite:
      return "suite";
    case ResultKind::kCorners:
      break;
  }
  return "corners";
}

Result<NewResult> MakeResult(const std::string& name, std::string json) {
  RETURN_IF_ERROR(CheckName(name));
  NewResult result;
  const Json parsed = ParseJson(json);
  if (parsed.is_object() && parsed.contains("corners")) {
    ASSIGN_OR_RETURN(result.row, CornersRow(json, parsed));
  } else if (parsed.is_object() && parsed.contains("suite_version")) {
    ASSIGN_OR_RETURN(const SuiteScore suite, ParseSuiteScore(json));
    const auto composite = suite.composite();
    result.row.kind = ResultKind::kSuite;
    result.row.drive = suite.drive();
    result.row.trace = suite.name;
    if (composite) {
      result.row.score = composite->score;
      result.row.ci_low = composite->ci_low;
      result.row.ci_high = composite->ci_high;
    }
    result.row.valid = suite.valid();
  } else if (parsed.is_object() && parsed.contains("score_version")) {
    ASSIGN_OR_RETURN(const MeasuredScore score, ParseMeasuredScore(json));
    result.row.drive = score.name();
    result.row.trace = score.trace;
    result.row.state = score.state;
    result.trace_hash = score.trace_hash;
    result.rule = score.rule;
    result.row.score = score.score;
    result.row.ci_low = score.ci_low;
    result.row.ci_high = score.ci_high;
    result.row.valid = score.valid;
  } else {
    return Status(StatusCode::kDataLoss, parsed.is_discarded()
                                             ? "no JSON, or damaged JSON"
                                             : "neither a report of score or of a suite nor one of "
                                               "corners --json");
  }
  result.name = name;
  ASSIGN_OR_RETURN(result.sha256, TextSha256(json));
  result.json = std::move(json);
  return result;
}

std::string ResultNameOf(const std::string& name) {
  constexpr size_t kLongest = 180;
  std::string kept = ToPrintable(ToUtf8(name.substr(0, kLongest / 3)));
  if (name.size() <= kLongest && IsUtf8(name)) kept = ToPrintable(name);
  if (kept.find_first_not_of("0123456789") == std::string::npos) kept = "result-" + kept;
  return kept;
}

Result<std::string> DefaultResultsPath() {
  constexpr char kFile[] = "/blktape/results.db";
  // The XDG specification ignores what is not absolute.
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && data[0] == '/') {
    return std::string(data) + kFile;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] != '\0') {
    return std::string(home) + "/.local/share" + kFile;
  }
  return Status(StatusCode::kFailedPrecondition,
                "where are the results? Neither HOME nor XDG_DATA_HOME is set\n  try:  --db FILE");
}

// A prepared statement and its values; finalized when it goes.
class ResultsStore::Statement {
 public:
  Statement() = default;
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  sqlite3_stmt** handle() { return &handle_; }

  void Bind(int64_t value) { sqlite3_bind_int64(handle_, ++bound_, value); }
  void Bind(const std::string& value) {
    sqlite3_bind_text64(handle_, ++bound_, value.data(), value.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  }
  void Bind(double value) { sqlite3_bind_double(handle_, ++bound_, value); }
  template <typename T>
  void Bind(const std::optional<T>& value) {
    if (value) {
      Bind(*value);
    } else {
      sqlite3_bind_null(handle_, ++bound_);
    }
  }

  int Step() { return sqlite3_step(handle_); }  // SQLITE_ROW, SQLITE_DONE, or a failure

  bool IsNull(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
  int64_t Whole(int column) const { return sqlite3_column_int64(handle_, column); }
  std::string Text(int column) const {
    const unsigned char* text = sqlite3_column_text(handle_, column);
    const int bytes = sqlite3_column_bytes(handle_, column);
    return text == nullptr
               ? ""
               : std::string(reinterpret_cast<const char*>(text), static_cast<size_t>(bytes));
  }
  std::optional<std::string> TextOrNone(int column) const {
    return IsNull(column) ? std::nullopt : std::optional(Text(column));
  }
  std::optional<double> NumberOrNone(int column) const {
    return IsNull(column) ? std::nullopt : std::optional(sqlite3_column_double(handle_, column));
  }

 private:
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

ResultsStore::~ResultsStore() { sqlite3_close(database_); }

Status ResultsStore::Failure(int code) const {
  const std::string said = path_ + ": " + sqlite3_errmsg(database_);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return Status(StatusCode::kDataLoss,
                    path_ + ": no database of results, or damaged: " + sqlite3_errmsg(database_));
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT:
      return Status(StatusCode::kDataLoss,
                    path_ + ": damaged: " + sqlite3_errmsg(database_) +
                        "\n  try:  another file by --db, into which `blktape results import` "
                        "takes the folders of scores again");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Status(StatusCode::kFailedPrecondition,
                    path_ + ": another program has been changing it for 10 s");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Status(StatusCode::kPermissionDenied, said);
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return Status(StatusCode::kResourceExhausted, said);
    default:
      return Status(StatusCode::kIoError, said);
  }
}

Status ResultsStore::Run(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? OkStatus() : Failure(code);
}

Status ResultsStore::Prepare(const char* sql, Statement* statement) {
  const int code = sqlite3_prepare_v2(database_, sql, -1, statement->handle(), nullptr);
  return code == SQLITE_OK ? OkStatus() : Failure(code);
}

Result<int64_t> ResultsStore::Number(const char* sql) {
  Statement statement;
  RETURN_IF_ERROR(Prepare(sql, &statement));
  if (const int code = statement.Step(); code != SQLITE_ROW) return Failure(code);
  return statement.Whole(0);
}

// Makes the schema in a file that holds nothing, and refuses what is not ours or newer.
Status ResultsStore::CheckFile(bool create) {
  // Only who may make the schema takes the lock for writing: a file on a medium that cannot be
  // written is read.
  RETURN_IF_ERROR(Run(create ? "BEGIN IMMEDIATE" : "BEGIN"));
  const Status checked = [this, create]() -> Status {
    ASSIGN_OR_RETURN(const int64_t application, Number("PRAGMA application_id"));
    ASSIGN_OR_RETURN(const int64_t schema, Number("PRAGMA user_version"));
    ASSIGN_OR_RETURN(const int64_t tables, Number("SELECT count(*) FROM sqlite_schema"));
    if (application == 0 && schema == 0 && tables == 0) {
      return create ? Run(kCreate) : Status(StatusCode::kNotFound, path_ + ": holds no results");
    }
    if (application != kApplicationId) {
      return Status(StatusCode::kFailedPrecondition,
                    path_ + ": a database, but of another program; nothing was changed");
    }
    if (schema > kResultsSchema) {
      return Status(StatusCode::kUnimplemented, path_ + ": its schema " + std::to_string(schema) +
                                                    " is newer than this blktape knows (" +
                                                    std::to_string(kResultsSchema) +
                                                    "); a newer blktape reads it");
    }
    {
      // Done with before the schema may be changed.
      Statement check;
      RETURN_IF_ERROR(Prepare("PRAGMA quick_check(1)", &check));
      if (const int code = check.Step(); code != SQLITE_ROW) return Failure(code);
      if (const std::string said = check.Text(0); schema < 1 || said != "ok") {
        return Status(StatusCode::kDataLoss,
                      path_ + ": damaged: " + (said == "ok" ? "its schema is 0" : said));
      }
    }
    if (schema == kResultsSchema || !create) return OkStatus();
    RETURN_IF_ERROR(Run(kFromSchema1Before));
    RETURN_IF_ERROR(Run(kCreate));
    return Run(kFromSchema1After);
  }();
  const Status ended = Run(checked.ok() ? "COMMIT" : "ROLLBACK");
  return checked.ok() ? ended : checked;
}

Result<std::unique_ptr<ResultsStore>> ResultsStore::Open(const std::string& path) {
  return OpenFile(path, /*create=*/false);
}

Result<std::unique_ptr<ResultsStore>> ResultsStore::OpenFile(const std::string& path, bool create) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Status(StatusCode::kNotFound, path +
                                             ": there is no such file, hence no results\n"
                                             "  try:  blktape results import FOLDER, of a score");
  }
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status(StatusCode::kFailedPrecondition, path + ": not a file");
  }
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  std::unique_ptr<ResultsStore> store(new ResultsStore(path, database));
  if (code != SQLITE_OK) return store->Failure(code);
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  // The file may be anybody's: nothing that is written in its schema is run.
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  RETURN_IF_ERROR(store->CheckFile(create));
  return store;
}

Result<std::unique_ptr<ResultsStore>> ResultsStore::OpenOrCreate(const std::string& path) {
  std::error_code error;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);
    if (error) return ErrnoStatus(error.value(), folder.string());
  }
  // By itself SQLite would let everybody read it.
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd && errno != EEXIST) return ErrnoStatus(errno, path);
  return OpenFile(path, /*create=*/true);
}

Result<std::vector<ResultRow>> ResultsStore::Rows(Statement* statement) {
  std::vector<ResultRow> rows;
  int code = SQLITE_ROW;
  while ((code = statement->Step()) == SQLITE_ROW) {
    ResultRow row;
    row.id = statement->Whole(0);
    row.name = ToUtf8(statement->Text(1));
    const std::string kind = statement->Text(2);
    row.kind = kind == "corners" ? ResultKind::kCorners
               : kind == "suite" ? ResultKind::kSuite
                                 : ResultKind::kScore;
    row.added_ns = statement->Whole(3);
    row.drive = ToUtf8(statement->Text(4));
    row.trace = statement->TextOrNone(5);
    row.state = statement->TextOrNone(6);
    row.score = statement->NumberOrNone(7);
    row.ci_low = statement->NumberOrNone(8);
    row.ci_high = statement->NumberOrNone(9);
    if (!statement->IsNull(10)) row.valid = statement->Whole(10) != 0;
    rows.push_back(std::move(row));
  }
  if (code != SQLITE_DONE) return Failure(code);
  return rows;
}

Result<std::vector<ResultRow>> ResultsStore::List() {
  Statement statement;
  RETURN_IF_ERROR(Prepare((std::string(kRowColumns) + "ORDER BY id").c_str(), &statement));
  return Rows(&statement);
}

Result<ResultRow> ResultsStore::Find(const std::string& id_or_name) {
  Statement statement;
  const bool by_id = IsId(id_or_name);
  RETURN_IF_ERROR(
      Prepare((std::string(kRowColumns) + (by_id ? "WHERE id = ?" : "WHERE name = ?")).c_str(),
              &statement));
  if (by_id) {
    statement.Bind(int64_t{std::stoll(id_or_name)});
  } else {
    statement.Bind(id_or_name);
  }
  ASSIGN_OR_RETURN(const std::vector<ResultRow> rows, Rows(&statement));
  if (rows.empty()) {
    return Status(StatusCode::kNotFound, path_ + ": holds no result \"" +
                                             ToPrintable(ToUtf8(id_or_name)) +
                                             "\"\n  try:  blktape results list");
  }
  return rows.front();
}

Result<std::vector<ResultsStore::Added>> ResultsStore::AddAll(const std::vector<NewResult>& results,
                                                              int64_t now_ns) {
  std::vector<Added> added;
  for (const NewResult& result : results) {
    Statement known;
    RETURN_IF_ERROR(Prepare((std::string(kRowColumns) + "WHERE sha256 = ?").c_str(), &known));
    known.Bind(result.sha256);
    ASSIGN_OR_RETURN(const std::vector<ResultRow> same, Rows(&known));
    if (!same.empty()) {
      added.push_back({same.front(), /*was_there=*/true});
      continue;
    }
    Statement named;
    RETURN_IF_ERROR(Prepare((std::string(kRowColumns) + "WHERE name = ?").c_str(), &named));
    named.Bind(result.name);
    ASSIGN_OR_RETURN(const std::vector<ResultRow> taken, Rows(&named));
    if (!taken.empty()) {
      return Status(StatusCode::kAlreadyExists,
                    path_ + ": holds another result of the name \"" + result.name +
                        "\", which stays\n  try:  --name, with another one");
    }
    Statement insert;
    RETURN_IF_ERROR(
        Prepare("INSERT INTO results(name, kind, added_ns, sha256, drive, trace, trace_hash, "
                "state, rule, score, ci_low, ci_high, valid, json) "
                "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                &insert));
    const ResultRow& row = result.row;
    insert.Bind(result.name);
    insert.Bind(std::string(ResultKindName(row.kind)));
    insert.Bind(now_ns);
    insert.Bind(result.sha256);
    insert.Bind(row.drive);
    insert.Bind(row.trace);
    insert.Bind(result.trace_hash);
    insert.Bind(row.state);
    insert.Bind(result.rule);
    insert.Bind(row.score);
    insert.Bind(row.ci_low);
    insert.Bind(row.ci_high);
    insert.Bind(row.valid ? std::optional(int64_t{*row.valid}) : std::nullopt);
    insert.Bind(result.json);
    if (const int code = insert.Step(); code != SQLITE_DONE) return Failure(code);
    ResultRow stored = row;
    stored.id = sqlite3_last_insert_rowid(database_);
    stored.name = result.name;
    stored.added_ns = now_ns;
    added.push_back({std::move(stored), /*was_there=*/false});
  }
  return added;
}

Result<std::vector<ResultsStore::Added>> ResultsStore::Add(const std::vector<NewResult>& results,
                                                           int64_t now_ns) {
  RETURN_IF_ERROR(Run("BEGIN IMMEDIATE"));
  Result<std::vector<Added>> added = AddAll(results, now_ns);
  const Status ended = Run(added.ok() ? "COMMIT" : "ROLLBACK");
  if (added.ok() && !ended.ok()) return ended;
  return added;
}

Result<std::string> ResultsStore::Json(int64_t id) {
  Statement statement;
  RETURN_IF_ERROR(Prepare("SELECT json, sha256 FROM results WHERE id = ?", &statement));
  statement.Bind(id);
  const int code = statement.Step();
  if (code == SQLITE_DONE) {
    return Status(StatusCode::kNotFound, path_ + ": holds no result " + std::to_string(id));
  }
  if (code != SQLITE_ROW) return Failure(code);
  std::string json = statement.Text(0);
  ASSIGN_OR_RETURN(const std::string sha256, TextSha256(json));
  if (sha256 != statement.Text(1)) {
    return Status(StatusCode::kDataLoss, path_ + ": result " + std::to_string(id) +
                                             " is damaged: it is no longer what was imported");
  }
  return json;
}

Status ResultsStore::Remove(int64_t id) {
  Statement statement;
  RETURN_IF_ERROR(Prepare("DELETE FROM results WHERE id = ?", &statement));
  statement.Bind(id);
  if (const int code = statement.Step(); code != SQLITE_DONE) return Failure(code);
  if (sqlite3_changes(database_) == 0) {
    return Status(StatusCode::kNotFound, path_ + ": holds no result " + std::to_string(id));
  }
  // Nothing but what was put there.
  const std::filesystem::path folder = TracesFolder(id);
  std::error_code error;
  std::vector<std::filesystem::path> traces;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".tape") traces.push_back(entry.path());
  }
  for (const std::filesystem::path& trace : traces) std::filesystem::remove(trace, error);
  std::filesystem::remove(folder, error);
  std::filesystem::remove(folder.parent_path(), error);
  return OkStatus();
}

std::string ResultsStore::TracesFolder(int64_t id) const {
  return path_ + ".traces/" + std::to_string(id);
}

}  // namespace blktape
