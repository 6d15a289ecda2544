#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/corners.h"
#include "format/trace.pb.h"

namespace blktape {

struct CornersReport {
  std::vector<proto::Device> targets;
  bool quick = false;
  bool stopped = false;  // before the last test
  std::string failure;   // what stopped it, where that was not the user
  uint64_t seed = 1;
  std::vector<std::string> left_out;  // tests that the target cannot do, and why
  std::vector<CornerResult> results;
};

// The summary that every such program shows (read and write side by side), then each group. MB/s
// are 10^6 bytes a second. Within 79 columns; where there are fewer `columns`, a line a figure,
// within 39.
std::string CornersText(const CornersReport& report, size_t columns = 79);

// As docs/metrics.md defines it; keys stay. Times in ns, sizes in bytes.
Json CornersJson(const CornersReport& report);

}  // namespace blktape
