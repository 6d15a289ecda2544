#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/latency_sketch.h"
#include "analysis/step_series.h"
#include "format/io_record.h"

namespace blktape {

// What happened when: docs/metrics.md, "Over time". Rates are over a whole step, the last one too.
struct Timeline {
  struct Step {
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t others = 0;
    uint64_t read_bytes = 0;
    uint64_t write_bytes = 0;
    uint64_t data_requests = 0;
    uint64_t exactly_4k = 0;  // of the data requests
    double reads_per_s = 0;
    double writes_per_s = 0;
    double read_bytes_per_s = 0;
    double write_bytes_per_s = 0;
    double depth_mean = 0;              // data requests between D and C
    double busy_share = 0;              // 0 to 1
    std::optional<double> share_4k;     // absent without a data request
    std::optional<int64_t> d2c_p50_ns;  // absent without a sample
    std::optional<int64_t> d2c_p99_ns;  // absent below 100 samples
    std::optional<int64_t> d2c_max_ns;
  };
  int64_t step_ns = 0;
  std::vector<Step> steps;

  // How many data requests took how long, when: rows of half a power of two (by width 1 : 1, not by
  // ratio), columns of `column_ns`. counts[column * rows + row].
  struct LatencyMap {
    int64_t column_ns = 0;
    size_t columns = 0;
    size_t rows = 0;
    std::vector<int64_t> row_from_ns;  // rows + 1 bounds
    std::vector<uint64_t> counts;
  };
  LatencyMap d2c_map;
};

// Times are counted from the first arrival. Memory: at most 3 MiB. Not thread-safe.
class TimelineBuilder {
 public:
  static constexpr size_t kMostSteps = 2'000;
  static constexpr size_t kMostColumns = 160;

  // `length_ns`: how long it will be, as far as is known; any guess gives a right result.
  explicit TimelineBuilder(int64_t length_ns);

  void AddArrival(int64_t at_ns, const IoRecord& io, std::optional<int64_t> d2c_ns);
  // A data request at the drive.
  void AddInFlight(int64_t start_ns, int64_t end_ns) { depth_.Add(start_ns, end_ns); }
  // A stretch in which the drive was busy, none twice.
  void AddBusy(int64_t start_ns, int64_t end_ns) { busy_.Add(start_ns, end_ns); }

  Timeline Finish(int64_t observed_ns);

 private:
  struct Counts {
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t others = 0;
    uint64_t read_bytes = 0;
    uint64_t write_bytes = 0;
    uint64_t data_requests = 0;
    uint64_t exactly_4k = 0;
    LatencySketch d2c;
    Counts& operator+=(const Counts& other);
  };

  StepSeries<Counts> counts_;
  SpanSeries depth_;
  SpanSeries busy_;
};

}  // namespace blktape
