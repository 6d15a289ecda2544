#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

// A report that lies in a file: of `score`, of a suite or `corners`, not looked into yet.
struct ReportFile {
  std::string path;
  std::string name;  // of a folder of `score` the folder's, else the file's without its ending
  std::string json;
};

// `path` is a file, or a folder of `score`, which has a report.json. Failures name the file.
Result<ReportFile> ReadReportFile(const std::string& path);
// The same, or a folder that holds folders of `score`, or the suite-*.json of a `bench`: all of
// them, by name.
Result<std::vector<ReportFile>> ReadReportFiles(const std::string& path);

}  // namespace blktape
