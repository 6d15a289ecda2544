#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/corners_comparison.h"
#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "analysis/suite_score.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/status.h"
#include "bench/results_store.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/report_files.h"
#include "cli/terminal.h"
#include "report/page.h"
#include "report/results_comparison.h"

namespace blktape {
namespace {

struct CompareOptions {
  std::vector<std::string> drives;
  std::string db;
  std::string html;
  bool json = false;
  bool csv = false;
  bool markdown = false;
};

// The text of a report, and where it was.
struct Found {
  std::string source;
  std::string json;
};

Result<std::vector<Found>> ReadPath(const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<ReportFile> files, ReadReportFiles(path));
  std::vector<Found> found;
  for (ReportFile& file : files) found.push_back({std::move(file.path), std::move(file.json)});
  return found;
}

// What a word names: of a folder of `bench` all its drives.
Result<std::vector<Found>> FindReports(const std::string& word, const std::string& db) {
  // With --db a word is a result of it, and a path only if it is none.
  std::error_code error;
  const bool is_path = std::filesystem::exists(word, error);
  if (db.empty() && is_path) return ReadPath(word);
  auto stored = [&]() -> Result<Found> {
    std::string path = db;
    if (path.empty()) {
      ASSIGN_OR_RETURN(path, DefaultResultsPath());
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<ResultsStore> store, ResultsStore::Open(path));
    ASSIGN_OR_RETURN(const ResultRow row, store->Find(word));
    ASSIGN_OR_RETURN(std::string json, store->Json(row.id));
    return Found{"result " + std::to_string(row.id) + ", " + row.name, std::move(json)};
  }();
  if (stored.ok()) return std::vector<Found>{*std::move(stored)};
  if (stored.status().code() == StatusCode::kNotFound && is_path) return ReadPath(word);
  // Without --db a path was meant at least as likely.
  const StatusCode code = stored.status().code();
  if (db.empty() && (code == StatusCode::kNotFound || code == StatusCode::kFailedPrecondition)) {
    return Status(StatusCode::kNotFound,
                  word +
                      ": neither a folder of score or bench, nor a report in JSON, nor a result "
                      "that is kept\n  try:  blktape results list");
  }
  return stored.status();
}

// The results that were named, by kind.
struct Compared {
  std::vector<ComparedDrive> scores;
  std::vector<ComparedSuite> suites;
  std::vector<ComparedCorners> corners;
};

Status Take(Found found, Compared* compared) {
  const auto json = ParseJson(found.json);
  if (json.is_object() && json.contains("corners")) {
    ASSIGN_OR_RETURN(MeasuredCorners corners, ParseMeasuredCorners(found.json));
    std::string label = corners.drive;
    compared->corners.push_back({std::move(label), std::move(found.source), std::move(corners)});
  } else if (json.is_object() && json.contains("suite_version")) {
    ASSIGN_OR_RETURN(SuiteScore suite, ParseSuiteScore(found.json));
    std::string label = suite.drive();
    compared->suites.push_back({std::move(label), std::move(found.source), std::move(suite)});
  } else {
    ASSIGN_OR_RETURN(MeasuredScore score, ParseMeasuredScore(found.json));
    std::string label = score.name();
    compared->scores.push_back({std::move(label), std::move(found.source), std::move(score)});
  }
  return OkStatus();
}

Result<ResultsComparison> CompareAll(const CompareOptions& options) {
  Compared compared;
  for (const std::string& word : options.drives) {
    ASSIGN_OR_RETURN(std::vector<Found> all, FindReports(word, options.db));
    for (Found& found : all) {
      const std::string source = found.source;
      if (const Status taken = Take(std::move(found), &compared); !taken.ok()) {
        return Status(taken.code(), source + ": " + taken.message());
      }
    }
  }
  ResultsComparison results;
  const auto one = [](size_t count, const std::string& kind) {
    return count != 1 ? OkStatus()
                      : Status(StatusCode::kInvalidArgument,
                               "there is one " + kind + ", and nothing to compare it with");
  };
  RETURN_IF_ERROR(one(compared.scores.size(), "score"));
  RETURN_IF_ERROR(one(compared.suites.size(), "suite"));
  RETURN_IF_ERROR(one(compared.corners.size(), "result of corners"));
  if (!compared.scores.empty()) results.scores = CompareDrives(std::move(compared.scores));
  if (!compared.suites.empty()) results.suites = CompareSuites(std::move(compared.suites));
  if (!compared.corners.empty()) results.corners = CompareCorners(std::move(compared.corners));
  const int kinds = int{results.scores.has_value()} + int{results.suites.has_value()} +
                    int{results.corners.has_value()};
  if (options.csv && kinds > 1) {
    return Status(StatusCode::kInvalidArgument,
                  "--csv is one table, of results of one kind: scores, suites or corners");
  }
  return results;
}

int RunCompare(const CompareOptions& options) {
  if (int{options.json} + int{options.csv} + int{options.markdown} > 1) {
    return UsageError("--json, --csv and --markdown exclude one another");
  }
  const Result<ResultsComparison> results = CompareAll(options);
  if (!results.ok()) return Fail(results.status());
  if (!options.html.empty()) {
    const Status written = WriteNewFile(options.html, PageHtml(ResultsPage(*results)));
    if (!written.ok()) return Fail(written);
  }
  if (options.json) {
    Print(stdout, JsonText(ResultsJson(*results)) + "\n");
  } else if (options.csv) {
    const std::string csv = ResultsCsv(*results);
    std::fwrite(csv.data(), 1, csv.size(), stdout);
  } else if (options.markdown) {
    Print(stdout, ResultsMarkdown(*results));
  } else {
    // The only escapes in it are those of its own colours.
    const std::string text = ResultsText(*results, LookOf(STDOUT_FILENO));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return results->whole() ? kExitOk : kExitDegraded;
}

}  // namespace

Command CompareCommand() {
  return {
      .name = "compare",
      .summary = "Say which of several measured drives is faster, by how much and how surely",
      .examples =
          "blktape compare monday-on-sda monday-on-sdb\n"
          "blktape compare monday-on-sda monday-on-sdb monday-on-sdc --html drives.html\n"
          "blktape compare bench-monday --markdown\n"
          "blktape compare corners-on-sda corners-on-sdb\n"
          "blktape compare 1 2 3 --db drives.db",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<CompareOptions>();
        flags->PositionalList("DRIVE", &options->drives,
                              "Two or more of a kind (scores, suites, corners): folders of score "
                              "or bench, reports in JSON, or results that are kept, by id or name");
        flags->Text("--db", &options->db,
                    "Where the results are kept (default ~/.local/share/blktape/results.db)",
                    "FILE");
        flags->Switch("--json", &options->json, "JSON as defined in docs/score.md");
        flags->Switch("--csv", &options->csv, "The table of drives, suites or tests as CSV");
        flags->Switch("--markdown", &options->markdown, "Verdict and tables as Markdown");
        flags->Text("--html", &options->html,
                    "Also write a report page with charts: one new file that needs no network",
                    "FILE");
        return [options] { return RunCompare(*options); };
      },
  };
}

}  // namespace blktape
