#include "analysis/timeline.h"

#include <algorithm>

#include "analysis/latency_histogram.h"
#include "base/saturating.h"

namespace blktape {
namespace {

Timeline::LatencyMap MapOf(const std::vector<LatencySketch>& columns, int64_t column_ns) {
  constexpr int kBucketsPerRow = 1 << (LatencySketch::kSubBits - 1);  // half a power of two
  constexpr int kRows = LatencySketch::kBuckets / kBucketsPerRow;
  std::vector<uint64_t> of_row(kRows);
  const auto count_of = [](const LatencySketch& column, int row) {
    uint64_t count = 0;
    for (int i = 0; i < kBucketsPerRow; ++i) count += column.of_bucket(row * kBucketsPerRow + i);
    return count;
  };
  for (const LatencySketch& column : columns) {
    for (int row = 0; row < kRows; ++row) of_row[static_cast<size_t>(row)] += count_of(column, row);
  }
  Timeline::LatencyMap map;
  map.column_ns = column_ns;
  map.columns = columns.size();
  int first = 0;
  while (first < kRows && of_row[static_cast<size_t>(first)] == 0) ++first;
  if (first == kRows) return map;
  int last = kRows - 1;
  while (of_row[static_cast<size_t>(last)] == 0) --last;
  map.rows = static_cast<size_t>(last) - static_cast<size_t>(first) + 1;
  for (int row = first; row <= last + 1; ++row) {
    map.row_from_ns.push_back(LatencySketch::LowNs(row * kBucketsPerRow));
  }
  for (const LatencySketch& column : columns) {
    for (int row = first; row <= last; ++row) map.counts.push_back(count_of(column, row));
  }
  return map;
}

}  // namespace

TimelineBuilder::Counts& TimelineBuilder::Counts::operator+=(const Counts& other) {
  reads += other.reads;
  writes += other.writes;
  others += other.others;
  read_bytes = SaturatingAdd(read_bytes, other.read_bytes);
  write_bytes = SaturatingAdd(write_bytes, other.write_bytes);
  data_requests += other.data_requests;
  exactly_4k += other.exactly_4k;
  d2c += other.d2c;
  return *this;
}

TimelineBuilder::TimelineBuilder(int64_t length_ns)
    : counts_(kMostSteps, NiceStepNs(length_ns, kMostSteps)),
      depth_(kMostSteps, counts_.step_ns()),
      busy_(kMostSteps, counts_.step_ns()) {}

void TimelineBuilder::AddArrival(int64_t at_ns, const IoRecord& io, std::optional<int64_t> d2c_ns) {
  Counts& step = counts_.At(at_ns);
  if (io.op == Op::kRead) {
    ++step.reads;
    step.read_bytes = SaturatingAdd(step.read_bytes, io.bytes);
  } else if (io.op == Op::kWrite) {
    ++step.writes;
    step.write_bytes = SaturatingAdd(step.write_bytes, io.bytes);
  } else {
    ++step.others;
    return;
  }
  if (io.bytes == 0) return;
  ++step.data_requests;
  if (io.bytes == 4096) ++step.exactly_4k;
  if (d2c_ns) step.d2c.Add(*d2c_ns);
}

Timeline TimelineBuilder::Finish(int64_t observed_ns) {
  if (observed_ns > 0) counts_.At(observed_ns - 1);  // so that the end of it is there, empty or not
  const int64_t step_ns = std::max({counts_.step_ns(), depth_.step_ns(), busy_.step_ns()});
  counts_.FoldTo(step_ns);
  depth_.FoldTo(step_ns);
  busy_.FoldTo(step_ns);
  std::vector<double> depth_ns = depth_.CoveredNs();
  std::vector<double> busy_ns = busy_.CoveredNs();
  const std::vector<Counts>& counts = counts_.steps();
  depth_ns.resize(counts.size());
  busy_ns.resize(counts.size());

  Timeline timeline;
  timeline.step_ns = step_ns;
  const double step_s = static_cast<double>(step_ns) / 1e9;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Counts& one = counts[i];
    Timeline::Step step;
    step.reads = one.reads;
    step.writes = one.writes;
    step.others = one.others;
    step.read_bytes = one.read_bytes;
    step.write_bytes = one.write_bytes;
    step.data_requests = one.data_requests;
    step.exactly_4k = one.exactly_4k;
    step.reads_per_s = static_cast<double>(one.reads) / step_s;
    step.writes_per_s = static_cast<double>(one.writes) / step_s;
    step.read_bytes_per_s = static_cast<double>(one.read_bytes) / step_s;
    step.write_bytes_per_s = static_cast<double>(one.write_bytes) / step_s;
    step.depth_mean = depth_ns[i] / static_cast<double>(step_ns);
    step.busy_share = busy_ns[i] / static_cast<double>(step_ns);
    if (one.data_requests > 0) {
      step.share_4k = static_cast<double>(one.exactly_4k) / static_cast<double>(one.data_requests);
    }
    step.d2c_p50_ns = one.d2c.PercentileNs(kP50);
    step.d2c_p99_ns = one.d2c.PercentileNs(kP99);
    step.d2c_max_ns = one.d2c.max_ns();
    timeline.steps.push_back(step);
  }
  const size_t together = std::max<size_t>(1, (counts.size() + kMostColumns - 1) / kMostColumns);
  std::vector<LatencySketch> columns((counts.size() + together - 1) / together);
  for (size_t i = 0; i < counts.size(); ++i) columns[i / together] += counts[i].d2c;
  timeline.d2c_map = MapOf(columns, step_ns * static_cast<int64_t>(together));
  return timeline;
}

}  // namespace blktape
