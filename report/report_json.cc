#include "report/report_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/block_history.h"
#include "analysis/details.h"
#include "analysis/hours_of_day.h"
#include "analysis/latency_sketch.h"
#include "analysis/reuse_distance.h"
#include "analysis/timeline.h"
#include "analysis/working_set.h"
#include "base/json.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {
namespace {

Json Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? Json(nullptr) : Json(static_cast<double>(part) / static_cast<double>(whole));
}

// Whether anything tells how long I/Os were at the drive.
bool KnowsService(const Profile& profile) {
  return profile.ios == 0 || profile.without_completion < profile.ios;
}

// Exact sizes of reads and writes side by side.
Json SizesJson(const SizeHistogram& reads, const SizeHistogram& writes) {
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> rows;
  for (const SizeHistogram::Row& row : reads.Exact()) rows[row.bytes].first = row.count;
  for (const SizeHistogram::Row& row : writes.Exact()) rows[row.bytes].second = row.count;
  Json json = Json::array();
  for (const auto& [bytes, counts] : rows) {
    json.push_back({{"bytes", bytes},
                    {"count", counts.first + counts.second},
                    {"reads", counts.first},
                    {"writes", counts.second}});
  }
  return json;
}

Json QueuedJson(const Profile& profile) {
  if (!profile.has_queued_sizes) return nullptr;
  const SizeHistogram& reads = profile.queued_read_sizes;
  const SizeHistogram& writes = profile.queued_write_sizes;
  const uint64_t count = reads.count() + writes.count();
  Json window = nullptr;
  if (profile.queued_stretch) {
    window = {{"from_ns", profile.queued_stretch->from_ns},
              {"to_ns", profile.queued_stretch->to_ns}};
  }
  return {{"window", std::move(window)},
          {"data_bios", count},
          {"reads", reads.count()},
          {"writes", writes.count()},
          {"share_4k", Share(reads.CountOf(4096) + writes.CountOf(4096), count)},
          {"read_share_4k", Share(reads.CountOf(4096), reads.count())},
          {"write_share_4k", Share(writes.CountOf(4096), writes.count())},
          {"size_histogram", SizesJson(reads, writes)},
          {"size_histogram_other", reads.other() + writes.other()},
          {"flushes_asked", OrNull(profile.flushes_asked)},
          {"flagged_writes", OrNull(profile.flagged_writes_asked)}};
}

// Depth classes: {from, to, issued, time_ns}, to the last that occurs.
Json DepthClassesJson(const Profile::Depth& depth) {
  Json json = Json::array();
  size_t last = depth.classes.size();
  while (last > 0 && depth.classes[last - 1].issued == 0 && depth.classes[last - 1].time_ns == 0) {
    --last;
  }
  for (size_t k = 0; k < last; ++k) {
    json.push_back({{"from", k == 0 ? 1 : (uint64_t{1} << (k - 1)) + 1},
                    {"to", uint64_t{1} << k},
                    {"issued", depth.classes[k].issued},
                    {"time_ns", depth.classes[k].time_ns}});
  }
  return json;
}

Json DepthJson(const Profile& profile, const Profile::Depth& depth) {
  const bool known = KnowsService(profile);
  return {{"mean", known ? Json(depth.mean) : Json(nullptr)},
          {"mean_busy", depth.max > 0 ? Json(depth.mean_busy) : Json(nullptr)},
          {"max", known ? Json(depth.max) : Json(nullptr)},
          {"max_is_lower_bound", depth.limited},
          {"distribution", known ? DepthClassesJson(depth) : Json(nullptr)}};
}

Json LatenciesJson(const Profile::Latencies& latencies) {
  return {{"q2d_ns", LatencyJson(latencies.q2d)},
          {"d2c_ns", LatencyJson(latencies.d2c)},
          {"q2c_ns", LatencyJson(latencies.q2c)}};
}

Json ByOpJson(const Profile& profile) {
  Json json = Json::object();
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (profile.of(op).ios == 0) continue;
    Json row = {{"ios", profile.of(op).ios}, {"bytes", profile.of(op).bytes}};
    row.update(LatenciesJson(profile.latency_of(op)));
    json[OpName(op)] = row;
  }
  return json;
}

Json IdleJson(const Profile& profile) {
  Json json = Json::array();
  int64_t from_ns = 0;
  int64_t to_ns = kNanosPerMicro;
  for (int i = 0; i < Profile::kIdleClasses; ++i) {
    const Profile::IdleClass& idle = profile.idle[static_cast<size_t>(i)];
    const bool last = i + 1 == Profile::kIdleClasses;
    json.push_back({{"from_ns", from_ns},
                    {"to_ns", last ? Json(nullptr) : Json(to_ns)},
                    {"count", idle.count},
                    {"total_ns", idle.total_ns}});
    from_ns = to_ns;
    to_ns *= 10;
  }
  return json;
}

Json AlignmentJson(const Profile::Alignment& alignment) {
  return {{"requests", alignment.requests},
          {"begin_4k", alignment.begin_4k},
          {"whole_4k", alignment.whole_4k}};
}

Json SketchJson(const LatencySketch& sketch) {
  return {{"count", sketch.count()},
          {"mean", OrNull(sketch.mean_ns())},
          {"min", OrNull(sketch.min_ns())},
          {"p50", OrNull(sketch.PercentileNs(kP50))},
          {"p95", OrNull(sketch.PercentileNs(kP95))},
          {"p99", OrNull(sketch.PercentileNs(kP99))},
          {"p999", OrNull(sketch.PercentileNs(kP999))},
          {"max", OrNull(sketch.max_ns())}};
}

Json PartsJson(const Details::LatencyParts& parts) {
  return {{"q2d_ns", SketchJson(parts.q2d)},
          {"d2c_ns", SketchJson(parts.d2c)},
          {"q2c_ns", SketchJson(parts.q2c)}};
}

Json NamedRowsJson(const std::vector<Details::NamedRow>& rows) {
  Json json = Json::array();
  for (const Details::NamedRow& row : rows) {
    Json one = {{"name", row.name}};
    one.update(PartsJson(row.all));
    json.push_back(std::move(one));
  }
  return json;
}

Json TimelineJson(const Timeline& timeline) {
  Json json = {{"step_ns", timeline.step_ns}, {"steps", timeline.steps.size()}};
  const auto column = [&](const char* key, auto&& value) {
    Json values = Json::array();
    for (const Timeline::Step& step : timeline.steps) values.push_back(value(step));
    json[key] = std::move(values);
  };
  using Step = Timeline::Step;
  column("reads", [](const Step& step) { return Json(step.reads); });
  column("writes", [](const Step& step) { return Json(step.writes); });
  column("others", [](const Step& step) { return Json(step.others); });
  column("read_bytes", [](const Step& step) { return Json(step.read_bytes); });
  column("write_bytes", [](const Step& step) { return Json(step.write_bytes); });
  column("reads_per_s", [](const Step& step) { return Json(step.reads_per_s); });
  column("writes_per_s", [](const Step& step) { return Json(step.writes_per_s); });
  column("read_bytes_per_s", [](const Step& step) { return Json(step.read_bytes_per_s); });
  column("write_bytes_per_s", [](const Step& step) { return Json(step.write_bytes_per_s); });
  column("busy_share", [](const Step& step) { return Json(step.busy_share); });
  column("depth_mean", [](const Step& step) { return Json(step.depth_mean); });
  column("d2c_p50_ns", [](const Step& step) { return OrNull(step.d2c_p50_ns); });
  column("d2c_p99_ns", [](const Step& step) { return OrNull(step.d2c_p99_ns); });
  column("d2c_max_ns", [](const Step& step) { return OrNull(step.d2c_max_ns); });
  column("share_4k", [](const Step& step) { return OrNull(step.share_4k); });
  return json;
}

Json HistogramJson(const LatencyHistogram& histogram) {
  Json json = Json::array();
  for (const LatencyHistogram::Row& row : histogram.Rows()) {
    if (row.count == 0) continue;
    json.push_back({{"from", row.from_ns}, {"to", row.to_ns}, {"count", row.count}});
  }
  return json;
}

Json SeeksJson(const Details::Seeks& seeks) {
  Json rows = Json::array();
  for (size_t k = 0; k < Details::Seeks::kClasses; ++k) {
    if (seeks.forward[k] + seeks.backward[k] == 0) continue;
    rows.push_back({{"to_bytes", k < 64 ? uint64_t{1} << k : UINT64_MAX},
                    {"forward", seeks.forward[k]},
                    {"backward", seeks.backward[k]}});
  }
  return {{"count", seeks.count},
          {"sequential", seeks.sequential},
          {"mean_bytes", seeks.mean_bytes},
          {"distances", std::move(rows)}};
}

Json BlocksJson(const BlockHistory& blocks) {
  Json by_writes = Json::array();
  for (size_t k = 0; k < BlockHistory::kClasses; ++k) {
    if (blocks.blocks_by_writes[k] == 0) continue;
    by_writes.push_back({{"from", k == 0 ? 1 : (uint64_t{1} << (k - 1)) + 1},
                         {"to", uint64_t{1} << k},
                         {"blocks", blocks.blocks_by_writes[k]}});
  }
  return {{"sampled_share", blocks.sampled_share},
          {"blocks", blocks.blocks},
          {"read_blocks", blocks.read_blocks},
          {"read_first_blocks", blocks.read_first_blocks},
          {"written_blocks", blocks.written_blocks},
          {"block_writes", blocks.block_writes},
          {"overwrites", blocks.overwrites},
          {"by_writes", std::move(by_writes)},
          {"overwrite_distance_ns", SketchJson(blocks.overwrite_distance)}};
}

Json ReuseJson(const ReuseDistance& reuse) {
  Json again = Json::array();
  for (size_t i = 0; i < reuse.again.size(); ++i) {
    if (reuse.again[i] == 0) continue;
    const double below = std::ldexp(4096.0, static_cast<int>(i));
    again.push_back(
        {{"below_bytes", below}, {"touches", reuse.again[i]}, {"hit_share", reuse.HitShare(i)}});
  }
  return {{"method", "SHARDS"},
          {"sampled_share", reuse.sampled_share},
          {"first_touches", reuse.first_touches},
          {"again", std::move(again)}};
}

Json DetailsJson(const Profile& profile) {
  const Details& details = *profile.details;
  Json json;
  json["timeline"] = TimelineJson(details.timeline);
  const Timeline::LatencyMap& map = details.timeline.d2c_map;
  json["d2c_map"] = {{"column_ns", map.column_ns},
                     {"columns", map.columns},
                     {"rows", map.rows},
                     {"row_from_ns", map.row_from_ns},
                     {"counts", map.counts}};
  json["addresses"] = Json::array();
  for (const Details::DeviceMap& device : details.addresses) {
    json["addresses"].push_back({{"device", device.device},
                                 {"column_ns", device.map.column_ns},
                                 {"row_bytes", device.map.row_bytes},
                                 {"columns", device.map.columns},
                                 {"rows", device.map.rows},
                                 {"reads", device.map.reads},
                                 {"writes", device.map.writes}});
  }
  json["histograms"] = {{"d2c_ns", HistogramJson(profile.data.d2c)},
                        {"q2d_ns", HistogramJson(profile.data.q2d)},
                        {"q2c_ns", HistogramJson(profile.data.q2c)},
                        {"read_d2c_ns", HistogramJson(profile.latency_of(Op::kRead).d2c)},
                        {"write_d2c_ns", HistogramJson(profile.latency_of(Op::kWrite).d2c)},
                        {"flush_d2c_ns", HistogramJson(profile.latency_of(Op::kFlush).d2c)},
                        {"inter_arrival_ns", HistogramJson(details.inter_arrival)}};
  json["inter_arrival_ns"] = LatencyJson(details.inter_arrival);
  json["bursts"] = Json::array();
  for (const Details::Burst& burst : details.bursts) {
    json["bursts"].push_back({{"window_ns", burst.window_ns},
                              {"peak_ios", burst.peak_ios},
                              {"mean_ios", burst.mean_ios}});
  }
  json["seeks"] = {{"q2q", SeeksJson(details.q2q)}, {"d2d", SeeksJson(details.d2d)}};
  json["streams"] = {{"followed", Details::kStreams}, {"continued", details.continues_stream}};
  json["latency_error_bound"] = LatencySketch::kRelativeErrorBound;
  json["by_size"] = Json::array();
  for (const Details::SizeRow& row : details.by_size) {
    json["by_size"].push_back({{"to_bytes", row.to_bytes == 0 ? Json(nullptr) : Json(row.to_bytes)},
                               {"reads", PartsJson(row.reads)},
                               {"writes", PartsJson(row.writes)}});
  }
  json["by_flag"] = NamedRowsJson(details.by_flag);
  json["by_process"] = NamedRowsJson(details.by_process);
  json["process_not_split"] = details.process_not_split;
  json["blocks"] = BlocksJson(details.blocks);
  json["working_set"] = Json::array();
  for (const WorkingSet::Window& window : details.working_set.windows) {
    json["working_set"].push_back({{"window_ns", window.window_ns},
                                   {"windows", window.windows},
                                   {"peak_bytes", window.peak_bytes},
                                   {"mean_bytes", window.mean_bytes}});
  }
  json["reuse_distance"] = ReuseJson(details.reuse_distance);
  json["hours"] = Json::array();
  for (const HoursOfDay::Hour& hour : details.hours.hours) {
    json["hours"].push_back({{"reads", hour.reads},
                             {"writes", hour.writes},
                             {"others", hour.others},
                             {"read_bytes", hour.read_bytes},
                             {"write_bytes", hour.write_bytes}});
  }
  json["hours_unplaced"] = details.hours.unplaced;
  return json;
}

std::string ReasonKey(proto::LossReason reason) {
  std::string key = proto::LossReason_Name(reason);
  if (key.empty()) return "unknown_" + std::to_string(reason);
  std::transform(key.begin(), key.end(), key.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return key;
}

Json LossesJson(const Profile& profile) {
  Json json = Json::array();
  for (const auto& [reason, loss] : profile.losses) {
    json.push_back({{"reason", ReasonKey(reason)},
                    {"count", loss.count},
                    {"reports_without_count", loss.unknowable},
                    {"means_lost_events", MeansLostEvents(reason)}});
  }
  return json;
}

Json RowJson(const std::string& name, const Profile::Totals& reads, const Profile::Totals& writes,
             const Profile::Totals& other) {
  return {{"name", name},
          {"ios", reads.ios + writes.ios + other.ios},
          {"reads", reads.ios},
          {"writes", writes.ios},
          {"read_bytes", reads.bytes},
          {"write_bytes", writes.bytes}};
}

Json DevicesJson(const Profile& profile) {
  Json json = Json::array();
  for (const Profile::DeviceRow& row : profile.devices) {
    Json device = RowJson(row.name, row.reads, row.writes, row.other);
    device["max_end_bytes"] = row.max_end_bytes;
    device["d2c_ns"] = LatencyJson(row.d2c);
    json.push_back(device);
  }
  return json;
}

Json ProcessesJson(const Profile& profile) {
  Json json = Json::array();
  for (const Profile::ProcessRow& row : profile.processes) {
    json.push_back(RowJson(row.name, row.reads, row.writes, row.other));
  }
  return json;
}

}  // namespace

Json LatencyJson(const LatencyHistogram& histogram) {
  return {{"count", histogram.count()},
          {"mean", OrNull(histogram.mean_ns())},
          {"min", OrNull(histogram.min_ns())},
          {"p50", OrNull(histogram.PercentileNs(kP50))},
          {"p95", OrNull(histogram.PercentileNs(kP95))},
          {"p99", OrNull(histogram.PercentileNs(kP99))},
          {"p999", OrNull(histogram.PercentileNs(kP999))},
          {"p9999", OrNull(histogram.PercentileNs(kP9999))},
          {"max", OrNull(histogram.max_ns())},
          {"exact", histogram.exact()}};
}

Json ProfileJson(const Profile& profile) {
  const SizeHistogram& reads = profile.read_sizes;
  const SizeHistogram& writes = profile.write_sizes;
  Json json;
  json["ios"] = profile.ios;
  json["reads"] = profile.of(Op::kRead).ios;
  json["writes"] = profile.of(Op::kWrite).ios;
  json["discards"] = profile.of(Op::kDiscard).ios;
  json["flushes"] = profile.of(Op::kFlush).ios;
  json["flushes_asked"] = OrNull(profile.flushes_asked);
  json["flushes_derived"] = profile.flushes_derived;
  json["read_bytes"] = profile.of(Op::kRead).bytes;
  json["write_bytes"] = profile.of(Op::kWrite).bytes;
  json["discard_bytes"] = profile.of(Op::kDiscard).bytes;
  json["data_requests"] = profile.data_requests;
  json["fua_writes"] = profile.fua_writes;
  json["sync_writes"] = profile.sync_writes;
  json["merged_bios"] = profile.merged_bios;
  json["errors"] = profile.errors;

  json["duration_ns"] = profile.duration_ns;
  json["observed_ns"] = profile.observed_ns;
  json["recorded_ns"] = OrNull(profile.recorded_ns);
  json["first_arrival_ns"] = OrNull(profile.first_arrival_ns);
  json["window"] = profile.has_window() ? Json{{"from_ns", OrNull(profile.from_ns)},
                                               {"to_ns", OrNull(profile.to_ns)}}
                                        : Json(nullptr);
  json["filters"] = profile.filters;

  json["size_histogram"] = SizesJson(reads, writes);
  json["size_histogram_other"] = reads.other() + writes.other();
  json["share_4k"] =
      Share(reads.CountOf(4096) + writes.CountOf(4096), reads.count() + writes.count());
  json["read_share_4k"] = Share(reads.CountOf(4096), reads.count());
  json["write_share_4k"] = Share(writes.CountOf(4096), writes.count());
  json["queued"] = QueuedJson(profile);

  json["sequential_fraction"] = Share(profile.sequential_device, profile.data_requests);
  json["sequential"] = {{"any_device", profile.sequential_any},
                        {"same_device", profile.sequential_device},
                        {"same_device_and_op", profile.sequential_direction},
                        {"reads", profile.sequential_reads},
                        {"writes", profile.sequential_device - profile.sequential_reads}};
  json["alignment"] = {{"reads", AlignmentJson(profile.aligned_reads)},
                       {"writes", AlignmentJson(profile.aligned_writes)}};
  json["footprint_bytes"] = profile.footprint.bytes;
  json["footprint_read_bytes"] = profile.footprint.read_bytes;
  json["footprint_write_bytes"] = profile.footprint.write_bytes;
  json["footprint_exact"] = profile.footprint.exact;
  json["max_end_bytes"] = profile.max_end_bytes;

  json["queue_depth"] = DepthJson(profile, profile.depth);
  json["queue_depth_all_ops"] = DepthJson(profile, profile.depth_all);
  json["busy_ns"] = KnowsService(profile) ? Json(profile.busy_ns) : Json(nullptr);
  json["idle_ns"] = KnowsService(profile) ? Json(profile.idle_ns) : Json(nullptr);
  json["idle_gaps"] = IdleJson(profile);
  json["wait_ns"] = KnowsService(profile) ? Json(profile.wait_ns) : Json(nullptr);
  json["idle_caps"] = Json::array();
  for (const Profile::IdleCap& cap : profile.idle_caps) {
    json["idle_caps"].push_back({{"cap_ns", cap.cap_ns}, {"cut_ns", cap.cut_ns}});
  }
  json["activity"] = {{"step_ns", profile.activity_step_ns}, {"ios", profile.activity}};

  json["d2c_ns"] = LatencyJson(profile.data.d2c);
  json["q2c_ns"] = LatencyJson(profile.data.q2c);
  json["q2d_ns"] = LatencyJson(profile.data.q2d);
  json["by_op"] = ByOpJson(profile);
  json["foreground"] = {{"ios", profile.foreground.ios}, {"bytes", profile.foreground.bytes}};
  json["foreground"].update(LatenciesJson(profile.foreground_latency));
  json["devices"] = DevicesJson(profile);
  json["processes"] = ProcessesJson(profile);
  json["processes_lumped"] = profile.processes_lumped;

  json["without_issue"] = profile.without_issue;
  json["without_completion"] = profile.without_completion;
  json["negative_times"] = profile.negative_times;
  json["implausible_times"] = profile.implausible_times;
  json["out_of_order"] = profile.out_of_order;
  json["busy_cut"] = profile.busy_cut;
  json["wait_cut"] = profile.wait_cut;
  json["lost_events"] = profile.lost_events;
  json["lost_events_is_lower_bound"] = profile.losses_uncountable;
  json["losses"] = LossesJson(profile);
  json["finished_cleanly"] = profile.finished_cleanly;
  json["events"] = Json::array();
  for (const Profile::Event& event : profile.events) {
    json["events"].push_back(
        {{"from_ns", event.from_ns}, {"to_ns", event.to_ns}, {"what", event.what}});
  }
  json["events_left_out"] = profile.events_left_out;
  if (profile.details != nullptr) json["details"] = DetailsJson(profile);
  return json;
}

Json HostPartsJson(const proto::ReplayOutcome& outcome) {
  Json json = Json::array();
  for (const proto::HostPart& part : outcome.host_parts()) {
    json.push_back({{"target", part.target()},
                    {"transfer_ns", part.transfer_ns()},
                    {"transfer_after_pause_ns", part.transfer_after_pause_ns()},
                    {"flush_ns", part.flush_ns()},
                    {"flush_after_pause_ns", part.flush_after_pause_ns()}});
  }
  return json;
}

Json CommitsJson(const proto::ReplayOutcome& outcome) {
  const proto::SharedCommits& commits = outcome.commits();
  return {{"recorded", commits.recorded()},
          {"written", commits.written()},
          {"copies", commits.copies()},
          {"left_out", commits.left_out()}};
}

}  // namespace blktape
