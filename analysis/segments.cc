#include "analysis/segments.h"

#include <algorithm>
#include <utility>

#include "analysis/plausible.h"
#include "base/check.h"
#include "base/saturating.h"

namespace blktape {

std::optional<size_t> Segmentation::SegmentOf(uint64_t ordinal) const {
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), ordinal,
                       [](uint64_t at, const Segment& one) { return at < one.end_ordinal; });
  if (after == segments.end() || ordinal < after->first_ordinal) return std::nullopt;
  return static_cast<size_t>(after - segments.begin());
}

uint64_t Segmentation::foreground() const {
  uint64_t sum = 0;
  for (const Segment& segment : segments) sum += segment.foreground;
  return sum;
}

uint64_t SegmentCount(uint64_t foreground) {
  return std::clamp<uint64_t>(foreground / kForegroundPerSegment, 1, kMostSegments);
}

void ForegroundCounter::Add(const IoRecord& io) {
  if (WaitClassOf(io) != WaitClass::kBackground) {
    ++marked_;
    ++if_all_;
  } else if (io.op == Op::kWrite) {
    ++if_all_;
  }
}

SegmentCutter::SegmentCutter(const ForegroundCounter& counted) {
  result_.all_is_foreground = counted.marked() == 0;
  foreground_total_ = result_.all_is_foreground ? counted.if_all() : counted.marked();
  const uint64_t count = SegmentCount(foreground_total_);
  // A quarter of a segment either way, but never so far that two cuts that move towards each other
  // leave less than kForegroundPerSegment between them.
  const uint64_t each = foreground_total_ / count;
  const uint64_t spare = each - std::min(each, kForegroundPerSegment);
  window_ = std::min(each / 4, spare / 2);
  for (uint64_t i = 1; i < count; ++i) {
    cuts_.push_back({.ideal = static_cast<uint64_t>(
                         static_cast<unsigned __int128>(foreground_total_) * i / count)});
  }
  at_cut_.resize(cuts_.size());
}

void SegmentCutter::Consider(uint64_t ordinal, bool idle) {
  // The place before the record of this ordinal, with running_.foreground foreground I/Os before
  // it.
  const uint64_t here = running_.foreground;
  while (next_cut_ < cuts_.size() && here > cuts_[next_cut_].ideal + window_) ++next_cut_;
  for (size_t i = next_cut_; i < cuts_.size() && here + window_ >= cuts_[i].ideal; ++i) {
    Cut& cut = cuts_[i];
    const auto distance = [&cut](uint64_t at) {
      return at > cut.ideal ? at - cut.ideal : cut.ideal - at;
    };
    // Without a gap the first place with as many foreground I/Os before it as it should have.
    const bool take = idle ? !cut.at_idle || distance(here) < distance(cut.foreground)
                           : !cut.set && here == cut.ideal;
    if (!take) continue;
    cut = {.ideal = cut.ideal,
           .at_idle = idle,
           .foreground = here,
           .ordinal = ordinal,
           .from_ns = last_arrival_ns_,
           .set = true};
    at_cut_[i] = running_;
  }
}

void SegmentCutter::Add(const IoRecord& record, uint64_t ordinal, bool left_out) {
  const IoRecord io = WithPlausibleTimes(record);
  if (result_.records++ == 0) first_ordinal_ = ordinal;
  end_ordinal_ = ordinal + 1;
  const std::optional<int64_t> arrival_ns = io.arrival_ns();
  // As the plan of a replay sees it, which takes the times as they are.
  if (!record.complete_ns || !record.arrival_ns()) ++result_.without_order;
  const bool idle = arrival_ns && first_ns_ && *arrival_ns > busy_until_ns_ &&
                    *arrival_ns - busy_until_ns_ >= kCutGapNs;
  if (arrival_ns && first_ns_) last_arrival_ns_ = *arrival_ns - *first_ns_;
  Consider(ordinal, idle);
  if (arrival_ns) {
    if (!first_ns_) first_ns_ = busy_until_ns_ = *arrival_ns;
    busy_until_ns_ = std::max({busy_until_ns_, *arrival_ns, io.complete_ns.value_or(*arrival_ns)});
    result_.observed_ns = busy_until_ns_ - *first_ns_;
  }
  if (left_out) return;
  if (io.op == Op::kRead) result_.read_bytes = SaturatingAdd(result_.read_bytes, io.bytes);
  if (io.op == Op::kWrite) result_.write_bytes = SaturatingAdd(result_.write_bytes, io.bytes);
  if (io.op == Op::kRead || io.op == Op::kWrite) {
    running_.bytes = SaturatingAdd(running_.bytes, io.bytes);
    if (io.bytes > 0) ++result_.data_requests;
  }
  const WaitClass wait_class = result_.ClassOf(io);
  if (wait_class == WaitClass::kBackground) return;
  ++running_.foreground;
  ++running_.by_class[static_cast<size_t>(wait_class)];
}

Segmentation SegmentCutter::Finish() {
  BLKTAPE_CHECK(running_.foreground == foreground_total_);
  Running before;
  uint64_t first_ordinal = first_ordinal_;
  bool at_idle = false;
  int64_t from_ns = 0;
  const auto close = [&](uint64_t end_ordinal, const Running& after) {
    Segment segment{.first_ordinal = first_ordinal,
                    .end_ordinal = end_ordinal,
                    .foreground = after.foreground - before.foreground,
                    .by_class = {},
                    .bytes = after.bytes - before.bytes,
                    .cut_at_idle = at_idle,
                    .from_ns = from_ns};
    for (size_t i = 0; i < kWaitClasses; ++i) {
      segment.by_class[i] = after.by_class[i] - before.by_class[i];
    }
    result_.segments.push_back(segment);
    before = after;
    first_ordinal = end_ordinal;
  };
  for (size_t i = 0; i < cuts_.size(); ++i) {
    BLKTAPE_CHECK(cuts_[i].set);
    close(cuts_[i].ordinal, at_cut_[i]);
    at_idle = cuts_[i].at_idle;
    from_ns = cuts_[i].from_ns;
  }
  close(end_ordinal_, running_);
  return std::move(result_);
}

}  // namespace blktape
