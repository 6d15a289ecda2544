#include "bench/sample.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "analysis/plausible.h"
#include "base/quantity.h"
#include "base/saturating.h"

namespace blktape {
namespace {

// Of each stratum: the fewest that tell a spread, so that there can be as many strata as possible.
constexpr size_t kDrawnOfEach = 2;

// Counts what a record adds to a segmentation, and to a segment of it where it is in one.
void CountRecord(const IoRecord& io, Segment* segment, Segmentation* cut) {
  ++cut->records;
  if (!io.complete_ns || !io.arrival_ns()) ++cut->without_order;
  if (io.op == Op::kRead) cut->read_bytes = SaturatingAdd(cut->read_bytes, io.bytes);
  if (io.op == Op::kWrite) cut->write_bytes = SaturatingAdd(cut->write_bytes, io.bytes);
  const bool data = io.op == Op::kRead || io.op == Op::kWrite;
  if (data && io.bytes > 0) ++cut->data_requests;
  if (segment == nullptr) return;
  if (data) segment->bytes = SaturatingAdd(segment->bytes, io.bytes);
  const WaitClass wait_class = cut->ClassOf(io);
  if (wait_class == WaitClass::kBackground) return;
  ++segment->foreground;
  ++segment->by_class[static_cast<size_t>(wait_class)];
}

void Shift(std::optional<int64_t>* time_ns, int64_t by_ns) {
  if (*time_ns) **time_ns = SaturatingAdd(**time_ns, by_ns);
}

// Goes through blocks along with a piece's records.
class BlockCursor {
 public:
  explicit BlockCursor(std::vector<WindowBlock> blocks) : blocks_(std::move(blocks)) {}

  // Whether the record is in a block. Ordinals ascend.
  bool Hold(uint64_t ordinal) {
    while (!done() && ordinal >= blocks_[passed_].end_ordinal) ++passed_;
    return !done() && ordinal >= blocks_[passed_].first_ordinal;
  }
  size_t passed() const { return passed_; }
  bool done() const { return passed_ == blocks_.size(); }

 private:
  const std::vector<WindowBlock> blocks_;
  size_t passed_ = 0;
};

class BlockStream : public RecordStream {
 public:
  BlockStream(std::unique_ptr<RecordStream> piece, std::optional<uint32_t> device,
              std::vector<WindowBlock> blocks)
      : piece_(std::move(piece)), device_(device), blocks_(std::move(blocks)) {}

  Result<bool> Next(IoRecord* record, uint64_t* ordinal) override {
    while (!blocks_.done()) {
      ASSIGN_OR_RETURN(const bool more, piece_->Next(record, ordinal));
      if (!more) return false;
      const size_t passed = blocks_.passed();
      const bool inside = blocks_.Hold(*ordinal);
      begun_ = begun_ && blocks_.passed() == passed;
      if (!inside || (device_ && record->device != *device_)) continue;
      Move(record);
      return true;
    }
    return false;
  }
  std::string_view ProcessName(uint32_t id) const override { return piece_->ProcessName(id); }
  const proto::Header& header() const override { return piece_->header(); }
  uint64_t lost_events() const override { return piece_->lost_events(); }

 private:
  void Move(IoRecord* record) {
    const std::optional<int64_t> arrival_ns = record->arrival_ns();
    if (arrival_ns && !begun_) {
      begun_ = true;
      shift_ns_ = end_ns_ ? SaturatingSubtract(SaturatingAdd(*end_ns_, kWindowGapNs), *arrival_ns)
                          : -*arrival_ns;
    }
    Shift(&record->queue_ns, shift_ns_);
    Shift(&record->issue_ns, shift_ns_);
    Shift(&record->complete_ns, shift_ns_);
    if (const std::optional<int64_t> at_ns = record->arrival_ns()) {
      end_ns_ = std::max({end_ns_.value_or(*at_ns), *at_ns, record->complete_ns.value_or(*at_ns)});
    }
  }

  const std::unique_ptr<RecordStream> piece_;
  const std::optional<uint32_t> device_;
  BlockCursor blocks_;
  bool begun_ = false;
  int64_t shift_ns_ = 0;
  std::optional<int64_t> end_ns_;  // of what was delivered, in the new times
};

double WaitOf(const WindowRuns& drive, size_t window) {
  return drive.waited.segments[window].wait_ns.value_or(0);
}
double WorkOf(const WindowRuns& drive, size_t window) {
  return drive.max.segments[window].busy_ns.value_or(0);
}

// The largest share of a segment's wait or work that each of its windows has on any drive.
std::vector<double> SharesOf(const std::vector<size_t>& windows,
                             std::span<const WindowRuns> drives) {
  std::vector<double> shares(windows.size(), 0);
  for (const WindowRuns& drive : drives) {
    for (const auto& cost : {WaitOf, WorkOf}) {
      double total = 0;
      for (const size_t window : windows) total += cost(drive, window);
      if (!(total > 0)) continue;
      for (size_t i = 0; i < windows.size(); ++i) {
        shares[i] = std::max(shares[i], cost(drive, windows[i]) / total);
      }
    }
  }
  return shares;
}

// The windows of one segment, those of the largest shares first.
struct SortedWindows {
  size_t segment = 0;
  std::vector<size_t> windows;
  std::vector<double> shares;
};

// Cuts them into at most `count` strata of about equal sums of shares, of two windows at least.
std::vector<std::vector<size_t>> StrataOf(const SortedWindows& sorted, size_t count) {
  const double total = std::accumulate(sorted.shares.begin(), sorted.shares.end(), 0.0);
  std::vector<std::vector<size_t>> strata(1);
  double sum = 0;
  for (size_t i = 0; i < sorted.windows.size(); ++i) {
    strata.back().push_back(sorted.windows[i]);
    sum += sorted.shares[i];
    const double end = total * static_cast<double>(strata.size()) / static_cast<double>(count);
    const size_t left = sorted.windows.size() - i - 1;
    if (strata.size() < count && sum >= end && strata.back().size() >= kDrawnOfEach &&
        left >= kDrawnOfEach) {
      strata.emplace_back();
    }
  }
  return strata;
}

// The first `count` of a random order that the seed alone decides, whatever the library.
void Draw(size_t count, std::mt19937_64* random, std::vector<size_t>* windows) {
  for (size_t i = 0; i < count; ++i) {
    const size_t left = windows->size() - i;
    std::swap((*windows)[i], (*windows)[i + static_cast<size_t>((*random)() % left)]);
  }
  windows->resize(count);
}

}  // namespace

Result<WindowCut> CutWindows(const TracePiece& piece, const Segmentation& segmentation,
                             const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> stream, OpenPiece(piece));
  ASSIGN_OR_RETURN(const std::optional<uint32_t> device, DeviceOf(piece, stream->header()));
  WindowCut cut;
  cut.fine.all_is_foreground = segmentation.all_is_foreground;
  cut.fine.observed_ns = segmentation.observed_ns;
  cut.fine.has_gaps = true;
  size_t k = 0;
  uint64_t before = 0;  // foreground I/Os of this segment so far
  uint64_t next = 0;    // where its next window begins, by the same count
  uint64_t window = 0;  // of this segment
  std::optional<int64_t> first_ns;
  int64_t since_ns = 0;  // arrival, since the first one
  RETURN_IF_ERROR(ForEachRecord(stream.get(), stop, [&](const IoRecord& record, uint64_t ordinal) {
    if (const std::optional<int64_t> arrival_ns = WithPlausibleTimes(record).arrival_ns()) {
      if (!first_ns) first_ns = arrival_ns;
      since_ns = *arrival_ns - *first_ns;
    }
    while (k + 1 < segmentation.segments.size() &&
           ordinal >= segmentation.segments[k].end_ordinal) {
      ++k;
      before = next = window = 0;
    }
    const uint64_t foreground = segmentation.segments[k].foreground;
    const uint64_t windows = std::max<uint64_t>(foreground / kForegroundPerWindow, 1);
    if (window < windows && before >= next) {
      if (!cut.fine.segments.empty()) cut.fine.segments.back().end_ordinal = ordinal;
      Segment one;
      one.first_ordinal = ordinal;
      one.from_ns = since_ns;
      cut.fine.segments.push_back(one);
      cut.segment_of.push_back(k);
      ++window;
      next = foreground * window / windows;
    }
    cut.fine.segments.back().end_ordinal = ordinal + 1;
    if (device && record.device != *device) return;
    CountRecord(record, &cut.fine.segments.back(), &cut.fine);
    before += cut.fine.ClassOf(record) != WaitClass::kBackground ? 1 : 0;
  }));
  return cut;
}

Result<std::optional<Sample>> DrawSample(const WindowCut& cut, std::span<const WindowRuns> drives,
                                         int64_t budget_ns, uint64_t seed) {
  const auto budget = static_cast<double>(budget_ns);
  // How long both runs of a cycle take for a window; with a lead-in, which is half of the window
  // before, whichever that is, and the gap between windows.
  const auto span_ns = [&](size_t window) {
    return static_cast<double>(drives[0].waited.segments[window].span_ns) +
           static_cast<double>(drives[0].max.segments[window].span_ns);
  };
  const auto time_ns = [&](size_t window) {
    return 1.5 * span_ns(window) + 2 * static_cast<double>(kWindowGapNs);
  };
  double whole_ns = 0;
  for (size_t i = 0; i < cut.segment_of.size(); ++i) whole_ns += span_ns(i);
  if (whole_ns <= budget) return std::optional<Sample>();

  Sample sample;
  sample.design.segments = cut.segment_of.back() + 1;
  std::vector<SortedWindows> segments(sample.design.segments);
  for (size_t k = 0; k < segments.size(); ++k) {
    std::vector<size_t> windows;
    for (size_t i = 0; i < cut.segment_of.size(); ++i) {
      if (cut.segment_of[i] == k && cut.fine.segments[i].foreground > 0) windows.push_back(i);
    }
    const std::vector<double> shares = SharesOf(windows, drives);
    std::vector<size_t> order(windows.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&shares](size_t a, size_t b) { return shares[a] > shares[b]; });
    segments[k].segment = k;
    for (const size_t i : order) {
      segments[k].windows.push_back(windows[i]);
      segments[k].shares.push_back(shares[i]);
    }
  }
  const auto expected_ns = [&](size_t count) {
    double sum_ns = 0;
    for (const SortedWindows& segment : segments) {
      for (const std::vector<size_t>& stratum : StrataOf(segment, count)) {
        double stratum_ns = 0;
        for (const size_t window : stratum) stratum_ns += time_ns(window);
        const size_t drawn = std::min(kDrawnOfEach, stratum.size());
        sum_ns += stratum_ns * static_cast<double>(drawn) / static_cast<double>(stratum.size());
      }
    }
    return sum_ns;
  };
  if (expected_ns(1) > budget) {
    return Status(
        StatusCode::kInvalidArgument,
        "the budget is too small for a sample of this trace\n  try:  --budget of at least " +
            FormatDurationNs(static_cast<int64_t>(expected_ns(1))) + ", or a shorter --idle-cap");
  }
  // Strata become smaller until two of each are nearly all there is.
  constexpr size_t kMostStrata = 200;
  size_t count = 1;
  while (count < kMostStrata && expected_ns(count + 1) <= budget) ++count;
  std::vector<std::vector<size_t>> strata;
  for (const SortedWindows& segment : segments) {
    for (std::vector<size_t>& stratum : StrataOf(segment, count)) {
      sample.design.strata.push_back({.segment = segment.segment, .windows = stratum.size()});
      strata.push_back(std::move(stratum));
    }
  }
  sample.expected_ns = static_cast<int64_t>(expected_ns(count));
  std::mt19937_64 random(seed);
  std::vector<std::pair<size_t, size_t>> drawn;  // window, stratum
  for (size_t h = 0; h < strata.size(); ++h) {
    Draw(std::min(kDrawnOfEach, strata[h].size()), &random, &strata[h]);
    for (const size_t window : strata[h]) drawn.emplace_back(window, h);
  }
  std::sort(drawn.begin(), drawn.end());
  for (const auto& [window, stratum] : drawn) {
    sample.windows.push_back(window);
    sample.design.stratum_of.push_back(stratum);
    const Segment& one = cut.fine.segments[window];
    sample.foreground += one.foreground;
    uint64_t first = one.first_ordinal;
    if (window > 0) {
      const Segment& lead = cut.fine.segments[window - 1];
      first = lead.first_ordinal + (lead.end_ordinal - lead.first_ordinal) / 2;
    }
    if (!sample.blocks.empty() && first <= sample.blocks.back().end_ordinal) {
      sample.blocks.back().end_ordinal = one.end_ordinal;
    } else {
      sample.blocks.push_back({.first_ordinal = first, .end_ordinal = one.end_ordinal});
    }
  }
  return std::optional<Sample>(std::move(sample));
}

Result<std::shared_ptr<const KeptBlocks>> FindKeptBlocks(const TracePiece& piece,
                                                         const std::vector<WindowBlock>& blocks,
                                                         const std::atomic<bool>& stop) {
  const auto kept = std::make_shared<KeptBlocks>();
  bool discards = false;
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> replayed, OpenSample(piece, blocks));
  RETURN_IF_ERROR(ForEachRecord(replayed.get(), stop, [&](const IoRecord& io, uint64_t) {
    if (io.op == Op::kRead) kept->Follow(io);
    discards = discards || KeptBlocks::Empties(io.op);
  }));
  if (!discards) return std::shared_ptr<const KeptBlocks>();
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> whole, OpenPiece(piece));
  BlockCursor cursor(blocks);
  RETURN_IF_ERROR(ForEachRecord(whole.get(), stop, [&](const IoRecord& io, uint64_t ordinal) {
    kept->Add(io, cursor.Hold(ordinal));
  }));
  kept->Finish();
  return std::shared_ptr<const KeptBlocks>(kept);
}

Result<std::unique_ptr<RecordStream>> OpenSample(const TracePiece& piece,
                                                 const std::vector<WindowBlock>& blocks) {
  ASSIGN_OR_RETURN(std::unique_ptr<RecordStream> stream, OpenPiece(piece));
  ASSIGN_OR_RETURN(const std::optional<uint32_t> device, DeviceOf(piece, stream->header()));
  return std::unique_ptr<RecordStream>(
      std::make_unique<BlockStream>(std::move(stream), device, blocks));
}

Result<Segmentation> CutSample(const TracePiece& piece, const WindowCut& cut, const Sample& sample,
                               const std::atomic<bool>& stop) {
  Segmentation result;
  result.has_gaps = true;
  result.all_is_foreground = cut.fine.all_is_foreground;
  for (const size_t window : sample.windows) {
    Segment one;
    one.first_ordinal = cut.fine.segments[window].first_ordinal;
    one.end_ordinal = cut.fine.segments[window].end_ordinal;
    one.from_ns = cut.fine.segments[window].from_ns;
    result.segments.push_back(one);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> stream, OpenSample(piece, sample.blocks));
  std::optional<int64_t> first_ns;
  RETURN_IF_ERROR(ForEachRecord(stream.get(), stop, [&](const IoRecord& record, uint64_t ordinal) {
    const std::optional<size_t> window = result.SegmentOf(ordinal);
    CountRecord(record, window ? &result.segments[*window] : nullptr, &result);
    if (const std::optional<int64_t> arrival_ns = record.arrival_ns()) {
      if (!first_ns) first_ns = arrival_ns;
      result.observed_ns =
          std::max(result.observed_ns, record.complete_ns.value_or(*arrival_ns) - *first_ns);
    }
  }));
  return result;
}

}  // namespace blktape
