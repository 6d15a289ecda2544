#include "report/report_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

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
  return {{"data_bios", count},
          {"reads", reads.count()},
          {"writes", writes.count()},
          {"share_4k", Share(reads.CountOf(4096) + writes.CountOf(4096), count)},
          {"size_histogram", SizesJson(reads, writes)},
          {"size_histogram_other", reads.other() + writes.other()},
          {"flushes_asked", OrNull(profile.flushes_asked)},
          {"flagged_writes", OrNull(profile.flagged_writes_asked)}};
}

Json DepthJson(const Profile& profile, const Profile::Depth& depth) {
  const bool known = KnowsService(profile);
  return {{"mean", known ? Json(depth.mean) : Json(nullptr)},
          {"mean_busy", depth.max > 0 ? Json(depth.mean_busy) : Json(nullptr)},
          {"max", known ? Json(depth.max) : Json(nullptr)},
          {"max_is_lower_bound", depth.limited}};
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

  json["size_histogram"] = SizesJson(reads, writes);
  json["size_histogram_other"] = reads.other() + writes.other();
  json["share_4k"] =
      Share(reads.CountOf(4096) + writes.CountOf(4096), reads.count() + writes.count());
  json["queued"] = QueuedJson(profile);

  json["sequential_fraction"] = Share(profile.sequential_device, profile.data_requests);
  json["sequential"] = {{"any_device", profile.sequential_any},
                        {"same_device", profile.sequential_device},
                        {"same_device_and_op", profile.sequential_direction}};
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
  json["lost_events"] = profile.lost_events;
  json["lost_events_is_lower_bound"] = profile.losses_uncountable;
  json["losses"] = LossesJson(profile);
  json["finished_cleanly"] = profile.finished_cleanly;
  return json;
}

}  // namespace blktape
