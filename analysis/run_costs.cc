#include "analysis/run_costs.h"

#include <algorithm>
#include <cmath>
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

uint64_t TailCount(uint64_t foreground) { return (foreground + kTailOneOf - 1) / kTailOneOf; }

struct Responses {
  uint64_t count = 0;
  __int128 sum_ns = 0;
  void Add(int64_t ns) {
    ++count;
    sum_ns += ns;
  }
  double mean_ns() const {
    return static_cast<double>(static_cast<long double>(sum_ns) / static_cast<long double>(count));
  }
};

struct SegmentState {
  explicit SegmentState(const Segment& segment) : tail(TailCount(segment.foreground)) {}
  std::array<Responses, kWaitClasses> by_class;
  Responses all;
  Largest tail;
  IntervalUnion busy;
};

// The geometric mean over the classes that count of the mean response; over all as one class where
// none does. Which count is decided by the trace, so that it is the same for every drive.
std::optional<double> ResponseCost(const Segment& segment, const SegmentState& state) {
  double sum_of_logs = 0;
  int classes = 0;
  for (size_t i = 0; i < kWaitClasses; ++i) {
    if (segment.by_class[i] < kClassCounts) continue;
    if (state.by_class[i].count == 0) return std::nullopt;
    sum_of_logs += std::log(std::max(state.by_class[i].mean_ns(), 1.0));
    ++classes;
  }
  if (classes > 0) return std::exp(sum_of_logs / classes);
  if (state.all.count == 0) return std::nullopt;
  return state.all.mean_ns();
}

}  // namespace

const char* CostName(Cost cost) {
  constexpr std::array kNames = {"response", "tail", "work"};
  return kNames[static_cast<size_t>(cost)];
}

const char* CostKey(Cost cost) {
  constexpr std::array kKeys = {"response_ns", "tail_ns", "busy_ns"};
  return kKeys[static_cast<size_t>(cost)];
}

struct RunCostsBuilder::Impl {
  struct Service {
    int64_t end_ns = 0;
    size_t segment = 0;
  };

  explicit Impl(const Segmentation* cut) : segmentation(cut) {
    for (const Segment& segment : cut->segments) states.emplace_back(segment);
  }

  const Segmentation* segmentation;
  ProfileBuilder profile{{.footprint = false}};  // which is that of the trace
  std::vector<SegmentState> states;
  IntervalUnion waits;
  ReorderBuffer<int64_t> waits_in_order;  // ends
  ReorderBuffer<Service> in_issue_order;
  int64_t watermark_ns = INT64_MIN;
  uint64_t records = 0;
  uint64_t outside = 0;
  uint64_t incomplete = 0;

  void AddWait(int64_t due_ns, int64_t complete_ns) {
    waits_in_order.Push(due_ns, complete_ns);
    waits_in_order.Release(watermark_ns,
                           [this](int64_t start, int64_t end) { waits.Add(start, end); });
  }

  void AddService(int64_t issue_ns, const Service& service) {
    in_issue_order.Push(issue_ns, service);
    in_issue_order.Release(watermark_ns, [this](int64_t start, const Service& one) {
      states[one.segment].busy.Add(start, one.end_ns);
    });
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
    ++in.outside;
    return;
  }
  if (!io.queue_ns || !io.issue_ns || !io.complete_ns || *io.issue_ns < *io.queue_ns ||
      *io.complete_ns < *io.issue_ns) {
    ++in.incomplete;
    return;
  }
  SegmentState& state = in.states[*segment];
  in.watermark_ns = std::max(in.watermark_ns, *io.queue_ns);
  in.AddService(*io.issue_ns, {*io.complete_ns, *segment});
  const WaitClass wait_class = in.segmentation->ClassOf(io);
  if (wait_class == WaitClass::kBackground) return;
  const int64_t response_ns = *io.complete_ns - *io.queue_ns;
  state.by_class[static_cast<size_t>(wait_class)].Add(response_ns);
  state.all.Add(response_ns);
  state.tail.Add(response_ns);
  in.AddWait(*io.queue_ns, *io.complete_ns);
}

RunCosts RunCostsBuilder::Finish(const proto::Header& header,
                                 const std::optional<proto::Summary>& summary) {
  Impl& in = *impl_;
  in.waits_in_order.ReleaseAll([&in](int64_t start, int64_t end) { in.waits.Add(start, end); });
  in.in_issue_order.ReleaseAll([&in](int64_t start, const Impl::Service& one) {
    in.states[one.segment].busy.Add(start, one.end_ns);
  });
  RunCosts costs;
  for (size_t k = 0; k < in.states.size(); ++k) {
    SegmentState& state = in.states[k];
    RunCosts::OfSegment cost;
    cost.response_ns = ResponseCost(in.segmentation->segments[k], state);
    cost.tail_ns = state.tail.MeanOf(TailCount(state.all.count));
    if (!state.busy.empty()) cost.busy_ns = static_cast<double>(state.busy.measure_ns());
    costs.cut += state.busy.out_of_order();
    costs.segments.push_back(cost);
  }
  costs.wait_ns = in.waits.measure_ns();
  costs.cut += in.waits.out_of_order();
  costs.records = in.records;
  costs.outside = in.outside;
  costs.incomplete = in.incomplete;
  costs.profile = in.profile.Finish(header, summary, [](uint32_t) { return std::string(); });
  return costs;
}

Result<RunCosts> MeasureRun(const std::string& path, const Segmentation& segmentation) {
  RunCostsBuilder builder(&segmentation);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path, &builder));
  IoRecord record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) break;
    builder.Add(record);
  }
  return builder.Finish(reader->header(), reader->summary());
}

Result<std::vector<SegmentCosts>> CycleCosts(const RunCosts& timed, const RunCosts& max) {
  BLKTAPE_CHECK(timed.segments.size() == max.segments.size());
  std::vector<SegmentCosts> costs;
  for (size_t k = 0; k < timed.segments.size(); ++k) {
    const std::array<std::optional<double>, kCosts> measured = {
        timed.segments[k].response_ns, timed.segments[k].tail_ns, max.segments[k].busy_ns};
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
