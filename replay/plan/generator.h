#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "replay/plan/record_stream.h"

namespace blktape {

// A synthetic workload. The same specification yields the same records everywhere.
struct WorkloadSpec {
  enum class Pattern {
    kRandom,      // uniform over the span
    kSequential,  // from the beginning of the span to its end, and again
  };
  struct Size {
    uint64_t bytes = 4096;
    double weight = 1;
  };
  Pattern pattern = Pattern::kRandom;
  std::vector<Size> sizes = {Size{}};
  double read_share = 1;  // 0: writes only
  uint64_t begin_bytes = 0;
  uint64_t span_bytes = 0;
  uint64_t align_bytes = 4096;  // every start is begin_bytes plus a multiple of it
  // So many I/Os; absent: no end (the replay is given a duration).
  std::optional<uint64_t> count = {};
  // Arrivals a second, evenly spaced, or with exponential gaps; absent: all arrive at once, and the
  // replay's queue depth sets the pace.
  std::optional<double> rate = {};
  bool exponential_gaps = false;
  uint64_t seed = 1;
};

// "4 KiB random, 100 % read, span 8 GiB at 0": for headers of traces and for people.
std::string DescribeWorkload(const WorkloadSpec& spec);

// Yields the records of a specification. Device 0 is its only one. kInvalidArgument where the
// specification makes no sense.
Result<std::unique_ptr<RecordStream>> MakeGenerator(const WorkloadSpec& spec);

}  // namespace blktape
