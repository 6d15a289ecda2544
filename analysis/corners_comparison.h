#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

// A drive that writes a repeated byte this many times as fast as random data compresses or
// deduplicates; below it two runs of one drive differ as much.
inline constexpr double kCompressesFrom = 1.1;

// Corners that were measured before: what `corners --json` holds (docs/metrics.md), as far as it is
// set beside others. All of it is somebody's: data, never markup.
struct MeasuredCorners {
  struct Test {
    std::string group;
    std::string name;       // by its parameters; of one group and condition it is unique
    std::string condition;  // "75 % full"; empty: none
    // Absent where nothing completed.
    std::optional<double> bytes_per_second, iops, p99_ns;
    bool read = false;  // else it writes
    std::optional<uint64_t> queue_depth = {};
    // Bytes in each step of that length since its first I/O; none where the report has none.
    double series_step_ns = 0;
    std::vector<double> series_bytes = {};
  };
  std::string drive;  // model of the target, else its name; "the reference drive" for one without
  bool quick = false;
  // IOPS of 4 KiB random writes of a repeated byte to those of random data; absent where either was
  // not measured.
  std::optional<double> repeated_over_random;
  std::vector<Test> tests;

  bool compresses() const { return repeated_over_random.value_or(0) >= kCompressesFrom; }
};

// kDataLoss if the text is none, kUnimplemented if of another version.
Result<MeasuredCorners> ParseMeasuredCorners(const std::string& json);

struct ComparedCorners {
  std::string label;   // unique among the drives
  std::string source;  // where it was read
  MeasuredCorners corners;
};

// Tests side by side, each known by group, condition and name.
struct CornersComparison {
  std::vector<ComparedCorners> drives;  // as they were given
  struct Row {
    std::string group, condition, name;
    // One a drive; absent where it has no such test.
    std::vector<std::optional<MeasuredCorners::Test>> tests;
    // How many times the bytes a second of the first drive each one has; absent where either lacks
    // them.
    std::vector<std::optional<double>> ratios;
  };
  std::vector<Row> rows;  // in the order of the first drive that has them
  // Some were measured with --quick and others were not: their names differ.
  bool mixed_lengths() const;
};

// At least one drive. Labels that occur more than once get a number.
CornersComparison CompareCorners(std::vector<ComparedCorners> drives);

}  // namespace blktape
