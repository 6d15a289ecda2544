#include "cli/report_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/quantity.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

constexpr char kReport[] = "report.json";
constexpr char kSuitePrefix[] = "suite-";
constexpr uint64_t kLargestBytes = uint64_t{256} << 20;

Result<ReportFile> ReadOne(const fs::path& path) {
  std::error_code error;
  if (const uint64_t bytes = fs::file_size(path, error); !error && bytes > kLargestBytes) {
    return Status(StatusCode::kFailedPrecondition, path.string() + ": has " + FormatBytes(bytes) +
                                                       "; a report has at most " +
                                                       FormatBytes(kLargestBytes));
  }
  ReportFile file{.path = path.string(), .name = path.stem().string(), .json = ""};
  if (path.filename() == kReport) {
    const fs::path whole = fs::absolute(path, error).lexically_normal();
    if (!error) file.name = whole.parent_path().filename().string();
  }
  ASSIGN_OR_RETURN(file.json, ReadFile(file.path));
  return file;
}

}  // namespace

Result<ReportFile> ReadReportFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return Status(StatusCode::kNotFound, path + ": there is no such file or folder");
  }
  if (fs::is_regular_file(status)) return ReadOne(path);
  if (!fs::is_directory(status)) {
    return Status(StatusCode::kFailedPrecondition, path + ": neither a file nor a folder");
  }
  const fs::path report = fs::path(path) / kReport;
  if (!fs::is_regular_file(report, error)) {
    return Status(StatusCode::kNotFound,
                  path + ": holds no report.json, so it is no folder of a finished score");
  }
  return ReadOne(report);
}

Result<std::vector<ReportFile>> ReadReportFiles(const std::string& path) {
  std::error_code error;
  std::vector<ReportFile> files;
  if (!fs::is_directory(path, error) || fs::exists(fs::path(path) / kReport, error)) {
    ASSIGN_OR_RETURN(ReportFile file, ReadReportFile(path));
    files.push_back(std::move(file));
    return files;
  }
  std::vector<fs::path> reports;
  std::vector<fs::path> suites;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    fs::path report = entry.path() / kReport;
    if (std::error_code ignored; fs::is_regular_file(report, ignored)) {
      reports.push_back(std::move(report));
    }
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kSuitePrefix) && name.ends_with(".json")) suites.push_back(entry.path());
  }
  if (error) return ErrnoStatus(error.value(), path);
  if (!suites.empty()) reports = std::move(suites);
  if (reports.empty()) {
    return Status(StatusCode::kNotFound, path +
                                             ": neither it nor a folder in it holds a report.json "
                                             "of score, nor it the suites of a bench");
  }
  std::sort(reports.begin(), reports.end());
  for (const fs::path& report : reports) {
    ASSIGN_OR_RETURN(ReportFile file, ReadOne(report));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace blktape
