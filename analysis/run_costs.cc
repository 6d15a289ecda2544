#include "analysis/run_costs.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "analysis/interval_union.h"
#include "analysis/plausible.h"
#include "analysis/reorder_buffer.h"
#include "base/check.h"

namespace blktape {
namespace {

// The largest `capacity` of the values added.
class Largest {
 public:
  explicit Largest(uint64_t capacity) : capacity_(capacity) {}
  void Add(int64_t value) {
    if (kept_.size() < capacity_) {
      kept_.push(value);
    } else if (capacity_ > 0 && value > kept_.top()) {
      kept_.pop();
      kept_.push(value);
    }
  }
  // The mean of the largest `count` of them. Call once.
  std::optional<double> MeanOf(uint64_t count) {
    while (kept_.size() > count) kept_.pop();
    if (kept_.empty()) return std::nullopt;
    const double n = static_cast<double>(kept_.size());
    long double sum = 0;
    for (; !kept_.empty(); kept_.pop()) sum += kept_.top();
    return static_cast<double>(sum / n);
  }

 private:
  uint64_t capacity_;
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> kept_;
};

uint64_t TailCount(uint64_t ios) { return (ios + kTailOneOf - 1) / kTailOneOf; }

struct Responses {
  explicit Responses(uint64_t expected) : tail(TailCount(expected)) {}
  uint64_t count = 0;
  __int128 sum_ns = 0;
  Largest tail;

  void Add(int64_t ns) {
    ++count;
    sum_ns += ns;
    tail.Add(ns);
  }
  ClassResponse Take() {
    if (count == 0) return {};
    return {.ios = count,
            .mean_ns = static_cast<double>(static_cast<long double>(sum_ns) /
                                           static_cast<long double>(count)),
            .tail_ns = tail.MeanOf(TailCount(count))};
  }
};

// Unions by the start of what is added, in whatever order that comes: only what lies further back
// than 65,536 others can be cut.
template <typename Item>
class InOrder {
 public:
  template <typename Take>
  void Add(int64_t start_ns, const Item& item, Take&& take) {
    held_.Push(start_ns, item);
    // Nothing leaves before the buffer is full.
    held_.Release(INT64_MIN, take);
  }
  template <typename Take>
  void Finish(Take&& take) {
    held_.ReleaseAll(take);
  }

 private:
  ReorderBuffer<Item> held_;
};

}  // namespace

const char* CostName(Cost cost) {
  constexpr std::array kNames = {"wait", "work"};
  return kNames[static_cast<size_t>(cost)];
}

const char* CostKey(Cost cost) {
  constexpr std::array kKeys = {"wait_ns", "busy_ns"};
  return kKeys[static_cast<size_t>(cost)];
}

struct RunCostsBuilder::Impl {
  struct Interval {
    int64_t end_ns = 0;
    size_t segment = 0;
  };
  struct SegmentState {
    IntervalUnion waits;
    IntervalUnion busy;
    int64_t first_ns = INT64_MAX;
    int64_t last_ns = INT64_MIN;
  };

  explicit Impl(const Segmentation* cut) : segmentation(cut), states(cut->segments.size()) {
    for (size_t i = 0; i < kWaitClasses; ++i) {
      uint64_t expected = 0;
      for (const Segment& segment : cut->segments) expected += segment.by_class[i];
      by_class.emplace_back(expected);
    }
  }

  const Segmentation* segmentation;
  ProfileBuilder profile{{.footprint = false}};  // which is that of the trace
  std::vector<SegmentState> states;
  std::vector<Responses> by_class;
  ClassLatencies latencies;
  RunSeriesBuilder series;
  std::optional<int64_t> first_due_ns;
  IntervalUnion all_waits;
  IntervalUnion waits_with_host;
  InOrder<Interval> waits_in_order;
  InOrder<int64_t> waits_with_host_in_order;  // ends
  InOrder<Interval> in_issue_order;
  uint64_t records = 0;
  uint64_t outside = 0;
  uint64_t incomplete = 0;

  auto TakeWait() {
    return [this](int64_t start_ns, const Interval& one) {
      states[one.segment].waits.Add(start_ns, one.end_ns);
      all_waits.Add(start_ns, one.end_ns);
    };
  }
  auto TakeWaitWithHost() {
    return [this](int64_t start_ns, int64_t end_ns) { waits_with_host.Add(start_ns, end_ns); };
  }
  auto TakeService() {
    return [this](int64_t start_ns, const Interval& one) {
      states[one.segment].busy.Add(start_ns, one.end_ns);
    };
  }

  // The host's part of what lies between due and submission, docs/metrics.md.
  static int64_t HostLatenessNs(const IoRecord& io) {
    const int64_t late_ns = *io.issue_ns - *io.queue_ns;
    if (io.backlog_ns) {
      return late_ns -
             static_cast<int64_t>(std::min(*io.backlog_ns, static_cast<uint64_t>(late_ns)));
    }
    return (io.flags & kFlagBacklog) != 0 ? 0 : late_ns;
  }
};

RunCostsBuilder::RunCostsBuilder(const Segmentation* segmentation)
    : impl_(std::make_unique<Impl>(segmentation)) {}

RunCostsBuilder::~RunCostsBuilder() = default;

void RunCostsBuilder::OnLoss(const proto::Loss& loss) { impl_->profile.OnLoss(loss); }

void RunCostsBuilder::Add(const IoRecord& record) {
  Impl& in = *impl_;
  ++in.records;
  in.profile.Add(record);
  const IoRecord io = WithPlausibleTimes(record);
  const std::optional<size_t> segment =
      io.ordinal ? in.segmentation->SegmentOf(*io.ordinal) : std::nullopt;
  if (!segment) {
    const bool in_gap = in.segmentation->has_gaps && io.ordinal;
    if (!in_gap) ++in.outside;
    return;
  }
  if (!io.queue_ns || !io.issue_ns || !io.complete_ns || *io.issue_ns < *io.queue_ns ||
      *io.complete_ns < *io.issue_ns) {
    ++in.incomplete;
    return;
  }
  Impl::SegmentState& state = in.states[*segment];
  state.first_ns = std::min(state.first_ns, *io.queue_ns);
  state.last_ns = std::max(state.last_ns, *io.complete_ns);
  in.in_issue_order.Add(*io.issue_ns, {*io.complete_ns, *segment}, in.TakeService());
  if (!in.first_due_ns) in.first_due_ns = io.queue_ns;
  const int64_t begin_ns = *in.first_due_ns;
  if ((io.op == Op::kRead || io.op == Op::kWrite) && io.bytes > 0) {
    in.series.AddRequest(*io.issue_ns - begin_ns, *io.complete_ns - begin_ns, io.bytes);
  }
  const WaitClass wait_class = in.segmentation->ClassOf(io);
  if (wait_class == WaitClass::kBackground) return;
  const int64_t from_ns = *io.queue_ns + Impl::HostLatenessNs(io);
  const int64_t response_ns = *io.complete_ns - from_ns;
  in.by_class[static_cast<size_t>(wait_class)].Add(response_ns);
  in.latencies[static_cast<size_t>(wait_class)].Add(response_ns);
  in.series.AddResponse(*io.complete_ns - begin_ns, response_ns);
  in.waits_in_order.Add(from_ns, {*io.complete_ns, *segment}, in.TakeWait());
  in.waits_with_host_in_order.Add(*io.queue_ns, *io.complete_ns, in.TakeWaitWithHost());
}

RunCosts RunCostsBuilder::Finish(const proto::Header& header,
                                 const std::optional<proto::Summary>& summary) {
  Impl& in = *impl_;
  in.waits_in_order.Finish(in.TakeWait());
  in.waits_with_host_in_order.Finish(in.TakeWaitWithHost());
  in.in_issue_order.Finish(in.TakeService());
  RunCosts costs;
  uint64_t waits_cut = 0;
  for (const Impl::SegmentState& state : in.states) {
    RunCosts::OfSegment cost;
    if (!state.waits.empty()) cost.wait_ns = static_cast<double>(state.waits.measure_ns());
    if (!state.busy.empty()) cost.busy_ns = static_cast<double>(state.busy.measure_ns());
    if (state.last_ns >= state.first_ns) cost.span_ns = state.last_ns - state.first_ns;
    waits_cut += state.waits.out_of_order();
    costs.cut += state.busy.out_of_order();
    costs.segments.push_back(cost);
  }
  // The same intervals, of each segment and of all.
  costs.cut += std::max(waits_cut, in.all_waits.out_of_order());
  costs.cut += in.waits_with_host.out_of_order();
  for (size_t i = 0; i < kWaitClasses; ++i) costs.responses[i] = in.by_class[i].Take();
  costs.latencies = std::move(in.latencies);
  costs.series = in.series.Finish();
  costs.wait_ns = in.all_waits.measure_ns();
  costs.host_wait_ns = in.waits_with_host.measure_ns() - costs.wait_ns;
  costs.records = in.records;
  costs.outside = in.outside;
  costs.incomplete = in.incomplete;
  costs.profile = in.profile.Finish(header, summary, [](uint32_t) { return std::string(); });
  return costs;
}

Result<RunCosts> MeasureRun(const std::string& path, const Segmentation& segmentation) {
  RunCostsBuilder builder(&segmentation);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path, &builder));
  RETURN_IF_ERROR(
      ForEachRecord(reader.get(), [&](const IoRecord& record) { builder.Add(record); }));
  return builder.Finish(reader->header(), reader->summary());
}

Result<std::vector<SegmentCosts>> CycleCosts(const RunCosts& waited, const RunCosts& max) {
  BLKTAPE_CHECK(waited.segments.size() == max.segments.size());
  std::vector<SegmentCosts> costs;
  for (size_t k = 0; k < waited.segments.size(); ++k) {
    const std::array<std::optional<double>, kCosts> measured = {waited.segments[k].wait_ns,
                                                                max.segments[k].busy_ns};
    SegmentCosts of_segment{};
    for (int m = 0; m < kCosts; ++m) {
      const std::optional<double>& cost = measured[static_cast<size_t>(m)];
      if (!cost) {
        return Status(StatusCode::kDataLoss, "segment " + std::to_string(k + 1) +
                                                 ": no I/O from which to tell its " +
                                                 CostName(static_cast<Cost>(m)) + " cost");
      }
      of_segment[static_cast<size_t>(m)] = std::max(*cost, 1.0);
    }
    costs.push_back(of_segment);
  }
  return costs;
}

}  // namespace blktape
