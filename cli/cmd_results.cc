#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/corners_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/suite_score.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/quantity.h"
#include "base/status.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "base/utf8.h"
#include "bench/results_store.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/report_files.h"
#include "cli/terminal.h"
#include "report/comparison_words.h"
#include "report/text_table.h"

namespace blktape {
namespace {

struct ResultsOptions {
  std::string action;
  std::vector<std::string> words;
  std::string db;
  std::string name;
  std::string output;
  bool json = false;
};

std::string Dumped(const Json& json) { return JsonText(json) + "\n"; }

// "2026-11-24 09:12", local.
std::string DayText(int64_t wall_ns) {
  const auto seconds = static_cast<time_t>(wall_ns / kNanosPerSecond);
  tm local{};
  char text[32] = "";
  if (localtime_r(&seconds, &local) != nullptr) {
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  }
  return text;
}

Json RowJson(const ResultRow& row) {
  return {{"id", row.id},
          {"name", row.name},
          {"kind", ResultKindName(row.kind)},
          {"added_ns", row.added_ns},
          {"drive", row.drive},
          {"trace", OrNull(row.trace)},
          {"state", OrNull(row.state)},
          {"score", OrNull(row.score)},
          {"ci_low", OrNull(row.ci_low)},
          {"ci_high", OrNull(row.ci_high)},
          {"valid", OrNull(row.valid)}};
}

int List(ResultsStore* store, const ResultsOptions& options) {
  const Result<std::vector<ResultRow>> rows = store->List();
  if (!rows.ok()) return Fail(rows.status());
  if (options.json) {
    Json json = Json::array();
    for (const ResultRow& row : *rows) json.push_back(RowJson(row));
    Print(stdout, Dumped(json));
    return kExitOk;
  }
  if (rows->empty()) {
    Print(stderr, "no results yet: score, bench and corners keep theirs here\n");
    return kExitOk;
  }
  TextTable table({{"id"},
                   {"name", true},
                   {"kind", true, 2},
                   {"drive", true, 5},
                   {"score"},
                   {"95 % interval", false, 7},
                   {"state", true, 4},
                   {"valid", true, 8},
                   {"added", true, 3}});
  for (const ResultRow& row : *rows) {
    table.Row({std::to_string(row.id), Plain(row.name, 28), ResultKindName(row.kind),
               Plain(row.drive, 20), ScoreDigits(row.score), IntervalText(row.ci_low, row.ci_high),
               Plain(row.state.value_or("-"), 10),
               row.valid ? (*row.valid ? "yes" : "INVALID") : "-", DayText(row.added_ns)});
  }
  Print(stdout, table.Text({.columns = LookOf(STDOUT_FILENO).columns}));
  return kExitOk;
}

std::string Line(const std::string& what, const std::string& text) {
  std::string first = what;
  first.resize(14, ' ');
  return Wrapped(first, std::string(14, ' '), ToPrintable(ToUtf8(text)));
}

int ShowScore(const ResultRow& row, const MeasuredScore& score) {
  std::string text;
  text += Line(score.valid ? "Score" : "INVALID", ScoreDigits(score.score) + ", 95 % interval " +
                                                      IntervalText(row.ci_low, row.ci_high) + ", " +
                                                      FormatCounted(score.cycles.size(), "cycle"));
  for (const std::string& reason : score.invalid_reasons) text += Line("", reason);
  if (score.interval_too_wide()) text += Line("", "TOO WIDE to choose a drive by");
  if (score.storage_wait_ns) {
    text += Line("Storage wait", FormatDurationNs(static_cast<int64_t>(*score.storage_wait_ns)) +
                                     " of " + FormatDurationNs(score.recording_ns));
  }
  for (const MeasuredScore::Target& target : score.targets) {
    std::string names;
    for (const std::string& one : {target.path, target.model, target.firmware}) {
      if (!one.empty()) names += (names.empty() ? "" : ", ") + one;
    }
    text += Line("Target", names);
  }
  text += Line("State", score.state);
  text += Line("Trace", score.trace + (score.piece.empty() ? "" : ", " + score.piece));
  text += Line("SHA-256", score.trace_hash);
  text += Line("Rule", score.rule);
  text += Line("Reference", score.reference + " = 1000");
  Print(stdout, text);
  return score.valid ? kExitOk : kExitDegraded;
}

// A corner in which nothing completed has no figures.
std::string Figure(std::optional<double> value, double unit) {
  return value ? FormatNumber(*value / unit) : "-";
}

int ShowCorners(const MeasuredCorners& corners) {
  TextTable table({{"test", true}, {"MB/s"}, {"IOPS", false, 7}});
  for (const MeasuredCorners::Test& test : corners.tests) {
    table.Row({Plain((test.condition.empty() ? "" : test.condition + ": ") + test.name, 78),
               Figure(test.bytes_per_second, 1e6), Figure(test.iops, 1)});
  }
  std::string text = table.Text({.columns = LookOf(STDOUT_FILENO).columns});
  if (corners.compresses()) {
    text += "A repeated byte is written " + FormatNumber(*corners.repeated_over_random) +
            " times as fast as random data: this drive\ncompresses or deduplicates.\n";
  }
  if (corners.quick) text += "QUICK: times and spans are shortened.\n";
  Print(stdout, text);
  return kExitOk;
}

int ShowSuite(const SuiteScore& suite) {
  const auto composite = suite.composite();
  std::string text = Line(suite.valid() ? "Suite score" : "INVALID",
                          composite ? ScoreDigits(composite->score) + ", 95 % interval " +
                                          IntervalText(composite->ci_low, composite->ci_high)
                                    : "none");
  if (suite.interval_too_wide()) text += Line("", "TOO WIDE to choose a drive by");
  text += Line("Suite", suite.name);
  TextTable table({{"trace", true},
                   {"weight", false, 4},
                   {"score"},
                   {"95 % interval", false, 7},
                   {"storage wait", false, 5},
                   {"valid", true, 8}});
  for (const SuiteScore::Trace& trace : suite.traces) {
    const MeasuredScore& score = trace.score;
    table.Row({Plain(score.trace, 28), FormatNumber(trace.weight), ScoreDigits(score.score),
               IntervalText(score.ci_low, score.ci_high),
               score.storage_wait_ns
                   ? FormatDurationNs(static_cast<int64_t>(*score.storage_wait_ns))
                   : "-",
               score.valid ? "yes" : "INVALID"});
  }
  Print(stdout, text + table.Text({.columns = LookOf(STDOUT_FILENO).columns}));
  return suite.valid() ? kExitOk : kExitDegraded;
}

int Show(ResultsStore* store, const ResultsOptions& options) {
  int worst = kExitOk;
  for (const std::string& word : options.words) {
    const Result<ResultRow> row = store->Find(word);
    if (!row.ok()) return Fail(row.status());
    const Result<std::string> json = store->Json(row->id);
    if (!json.ok()) return Fail(json.status());
    if (options.json) {
      Print(stdout, Dumped(RowJson(*row)));
      continue;
    }
    Print(stdout, (&word == &options.words.front() ? "" : "\n") + Line("Result", row->name) +
                      Line("", "id " + std::to_string(row->id) + ", " + ResultKindName(row->kind) +
                                   ", added " + DayText(row->added_ns)));
    if (row->kind == ResultKind::kCorners) {
      const Result<MeasuredCorners> corners = ParseMeasuredCorners(*json);
      if (!corners.ok()) return Fail(corners.status());
      worst = std::max(worst, ShowCorners(*corners));
      continue;
    }
    if (row->kind == ResultKind::kSuite) {
      const Result<SuiteScore> suite = ParseSuiteScore(*json);
      if (!suite.ok()) return Fail(suite.status());
      worst = std::max(worst, ShowSuite(*suite));
      continue;
    }
    const Result<MeasuredScore> score = ParseMeasuredScore(*json);
    if (!score.ok()) return Fail(score.status());
    worst = std::max(worst, ShowScore(*row, *score));
  }
  return worst;
}

int Export(ResultsStore* store, const ResultsOptions& options) {
  const Result<ResultRow> row = store->Find(options.words.front());
  if (!row.ok()) return Fail(row.status());
  const Result<std::string> json = store->Json(row->id);
  if (!json.ok()) return Fail(json.status());
  if (options.output.empty()) {
    std::fwrite(json->data(), 1, json->size(), stdout);
    return kExitOk;
  }
  const Status written = WriteNewFile(options.output, *json);
  return written.ok() ? kExitOk : Fail(written);
}

int Remove(ResultsStore* store, const ResultsOptions& options) {
  std::vector<ResultRow> rows;
  for (const std::string& word : options.words) {
    const Result<ResultRow> row = store->Find(word);
    if (!row.ok()) return Fail(row.status());
    rows.push_back(*row);
  }
  for (const ResultRow& row : rows) {
    if (const Status removed = store->Remove(row.id); !removed.ok()) return Fail(removed);
    Print(stdout, "removed " + std::to_string(row.id) + " " + row.name + "\n");
  }
  return kExitOk;
}

Result<std::vector<NewResult>> ReadAll(const ResultsOptions& options) {
  std::vector<NewResult> results;
  for (const std::string& word : options.words) {
    ASSIGN_OR_RETURN(std::vector<ReportFile> files, ReadReportFiles(word));
    for (ReportFile& file : files) {
      Result<NewResult> made = MakeResult(
          options.name.empty() ? ResultNameOf(file.name) : options.name, std::move(file.json));
      if (!made.ok()) {
        return Status(made.status().code(), file.path + ": " + made.status().message());
      }
      results.push_back(*std::move(made));
    }
  }
  if (!options.name.empty() && results.size() > 1) {
    return Status(StatusCode::kInvalidArgument,
                  "--name goes with a single result; there are " + std::to_string(results.size()));
  }
  return results;
}

int Import(const std::string& path, const ResultsOptions& options) {
  // Before a file is made.
  const Result<std::vector<NewResult>> results = ReadAll(options);
  if (!results.ok()) return Fail(results.status());
  const auto store = ResultsStore::OpenOrCreate(path);
  if (!store.ok()) return Fail(store.status());
  const auto added = (*store)->Add(*results, WallNowNs());
  if (!added.ok()) return Fail(added.status());
  Json json = Json::array();
  std::string text;
  for (const ResultsStore::Added& one : *added) {
    Json row = RowJson(one.row);
    row["was_there"] = one.was_there;
    json.push_back(std::move(row));
    text += (one.was_there ? "is there already: " : "added ") + std::to_string(one.row.id) + " " +
            one.row.name + "\n";
  }
  Print(stdout, options.json ? Dumped(json) : text);
  return kExitOk;
}

int RunResults(const ResultsOptions& options) {
  const std::string& action = options.action;
  static constexpr std::array kActions = {"list", "show", "export", "import", "rm"};
  if (std::find(kActions.begin(), kActions.end(), action) == kActions.end()) {
    return UsageError("results does not know \"" + action +
                      "\"\n  try:  list, show, export, import or rm");
  }
  const bool imports = action == "import";
  if (action == "list" && !options.words.empty()) return UsageError("list takes no further words");
  if (action != "list" && options.words.empty()) {
    return UsageError(imports ? "import which files or folders?" : action + " which result?");
  }
  if (action == "export" && options.words.size() > 1) {
    return UsageError("export takes one result");
  }
  if (!options.name.empty() && !imports) return UsageError("--name goes with import");
  if (!options.output.empty() && action != "export") return UsageError("-o goes with export");
  Result<std::string> path = options.db.empty() ? DefaultResultsPath() : options.db;
  if (!path.ok()) return Fail(path.status());
  if (imports) return Import(*path, options);
  const auto store = ResultsStore::Open(*path);
  if (!store.ok()) return Fail(store.status());
  if (action == "list") return List(store->get(), options);
  if (action == "show") return Show(store->get(), options);
  if (action == "export") return Export(store->get(), options);
  return Remove(store->get(), options);
}

}  // namespace

Command ResultsCommand() {
  return {
      .name = "results",
      .summary =
          "Results of score, bench and corners that are kept: list, show, export, import, rm",
      .examples =
          "blktape results import monday-on-sdx --db drives.db\n"
          "blktape results list --db drives.db\n"
          "blktape results show monday-on-sdx --db drives.db\n"
          "blktape results export monday-on-sdx --db drives.db > monday-on-sdx.json\n"
          "blktape results rm monday-on-sdx --db drives.db",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<ResultsOptions>();
        flags->Positional("ACTION", &options->action, "list, show, export, import or rm");
        flags->PositionalList(
            "WHAT", &options->words,
            "show, export, rm: results by id or name. import: folders of score or "
            "bench, files of score, of suites or of corners --json",
            /*required=*/false);
        flags->Text("--db", &options->db,
                    "Where results are kept (default ~/.local/share/blktape/results.db, or below "
                    "XDG_DATA_HOME)",
                    "FILE");
        flags->Text(
            "--name", &options->name,
            "Import a single result with this name (default: the name of its folder or file)");
        flags->Text("-o,--output", &options->output, "Export to a new file", "FILE");
        flags->Switch("--json", &options->json, "JSON as defined in docs/results.md");
        return [options] { return RunResults(*options); };
      },
  };
}

}  // namespace blktape
