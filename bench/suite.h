#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/suite_score.h"
#include "base/status.h"

namespace blktape {

// Traces that are scored together, each with its weight. The file, docs/score.md "Suites": a line a
// trace, "WEIGHT PATH", paths from the folder of the file; blank lines and lines that begin with #
// say nothing.
struct Suite {
  struct Trace {
    double weight = 1;
    std::string path;
  };
  std::string name;  // the file's without its ending
  std::vector<Trace> traces;
};

inline constexpr size_t kMostSuiteTraces = 100;

// kInvalidArgument names the line that cannot be read, a trace that is named twice, or a suite of
// none or of more than kMostSuiteTraces. `path` is the file's.
Result<Suite> ParseSuite(std::string_view text, const std::string& path);
Result<Suite> ReadSuite(const std::string& path);

// Of what a bench measured of one drive: the text that ParseSuiteScore reads. `reports` are the
// texts of report.json of each trace.
Result<std::string> SuiteResultText(const Suite& suite, uint64_t order_seed,
                                    const std::vector<std::string>& reports);

}  // namespace blktape
