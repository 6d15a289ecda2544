#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "base/byte_stream.h"
#include "base/file.h"
#include "base/status.h"
#include "bench/results_store.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/report_files.h"
#include "cli/terminal.h"
#include "report/comparison_report.h"
#include "report/page.h"

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

Result<Found> FindReport(const std::string& word, const std::string& db) {
  // With --db a word is a result of it, and a path only if it is none.
  std::error_code error;
  const bool is_path = std::filesystem::exists(word, error);
  if (db.empty() && is_path) {
    ASSIGN_OR_RETURN(ReportFile file, ReadReportFile(word));
    return Found{std::move(file.path), std::move(file.json)};
  }
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
  if (stored.ok()) return stored;
  if (stored.status().code() == StatusCode::kNotFound && is_path) {
    ASSIGN_OR_RETURN(ReportFile file, ReadReportFile(word));
    return Found{std::move(file.path), std::move(file.json)};
  }
  // Without --db a path was meant at least as likely.
  const StatusCode code = stored.status().code();
  if (db.empty() && (code == StatusCode::kNotFound || code == StatusCode::kFailedPrecondition)) {
    return Status(StatusCode::kNotFound,
                  word +
                      ": neither a folder of score, nor a report in JSON, nor a result that is "
                      "kept\n  try:  blktape results list");
  }
  return stored;
}

Result<ComparedDrive> ReadDrive(const std::string& word, const std::string& db) {
  ASSIGN_OR_RETURN(Found found, FindReport(word, db));
  Result<MeasuredScore> score = ParseMeasuredScore(found.json);
  if (!score.ok()) {
    return Status(score.status().code(), found.source + ": " + score.status().message());
  }
  std::string label = score->name();
  return ComparedDrive{std::move(label), std::move(found.source), *std::move(score)};
}

Status WritePage(const std::string& path, const std::string& html) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSink> file, CreateFile(path));
  Status written = file->Write(std::as_bytes(std::span(html)));
  if (written.ok()) written = file->Sync();
  if (!written.ok()) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  return written;
}

int RunCompare(const CompareOptions& options) {
  if (options.drives.size() < 2) return UsageError("compare takes two drives or more");
  if (int{options.json} + int{options.csv} + int{options.markdown} > 1) {
    return UsageError("--json, --csv and --markdown exclude one another");
  }
  std::vector<ComparedDrive> drives;
  for (const std::string& word : options.drives) {
    Result<ComparedDrive> drive = ReadDrive(word, options.db);
    if (!drive.ok()) return Fail(drive.status());
    drives.push_back(*std::move(drive));
  }
  const DriveComparison comparison = CompareDrives(std::move(drives));
  if (!options.html.empty()) {
    const Status written = WritePage(options.html, PageHtml(ComparisonPage(comparison)));
    if (!written.ok()) return Fail(written);
  }
  if (options.json) {
    Print(stdout,
          ComparisonJson(comparison)
                  .dump(2, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace) +
              "\n");
  } else if (options.csv) {
    const std::string csv = ComparisonCsv(comparison);
    std::fwrite(csv.data(), 1, csv.size(), stdout);
  } else if (options.markdown) {
    Print(stdout, ComparisonMarkdown(comparison));
  } else {
    // The only escapes in it are those of its own colours.
    const std::string text = ComparisonText(comparison, LookOf(STDOUT_FILENO));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return comparison.whole() ? kExitOk : kExitDegraded;
}

}  // namespace

Command CompareCommand() {
  return {
      .name = "compare",
      .summary = "Say which of several scored drives is faster, by how much and how surely",
      .examples =
          "blktape compare monday-on-sda monday-on-sdb\n"
          "blktape compare monday-on-sda monday-on-sdb monday-on-sdc --html drives.html\n"
          "blktape compare monday-on-sda monday-on-sdb --markdown\n"
          "blktape compare 1 2 3 --db drives.db",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<CompareOptions>();
        flags->PositionalList("DRIVE", &options->drives,
                              "Two or more: folders of score, reports in JSON, or results that "
                              "are kept, by id or name");
        flags->Text("--db", &options->db,
                    "Where the results are kept (default ~/.local/share/blktape/results.db)",
                    "FILE");
        flags->Switch("--json", &options->json, "JSON as docs/score.md defines it");
        flags->Switch("--csv", &options->csv, "The table of drives as CSV");
        flags->Switch("--markdown", &options->markdown, "Verdict and tables as Markdown");
        flags->Text("--html", &options->html,
                    "Also write a page of figures to look at, one new file without a network",
                    "FILE");
        return [options] { return RunCompare(*options); };
      },
  };
}

}  // namespace blktape
