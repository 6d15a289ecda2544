#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analysis/latency_histogram.h"
#include "analysis/run_series.h"
#include "analysis/score_evidence.h"
#include "base/json.h"
#include "format/trace.pb.h"
#include "report/report_json.h"
#include "report/score_report_out.h"

namespace blktape {
namespace {

// The rule of each reason, in their order.
Json RulesOf(const InvalidReasons& reasons) {
  Json rules = Json::array();
  for (const InvalidReason& reason : reasons) rules.push_back(reason.rule);
  return rules;
}

Json CostsJson(const SegmentCosts& costs) {
  Json json;
  for (size_t m = 0; m < kCosts; ++m) json[CostKey(static_cast<Cost>(m))] = costs[m];
  return json;
}

Json ResponsesJson(const ClassResponses& responses) {
  Json json;
  for (size_t i = 0; i < kWaitClasses; ++i) {
    json[kWaitClassKeys[i]] = {{"ios", responses[i].ios},
                               {"mean_ns", OrNull(responses[i].mean_ns)},
                               {"worst_1_percent_ns", OrNull(responses[i].tail_ns)}};
  }
  return json;
}

Json SegmentsJson(const ScoreReport& report) {
  Json json = Json::array();
  for (size_t k = 0; k < report.segmentation.segments.size(); ++k) {
    const Segment& segment = report.segmentation.segments[k];
    Json row = {{"first_record", segment.first_ordinal},
                {"end_record", segment.end_ordinal},
                {"from_ns", segment.from_ns},
                {"cut_at_idle", segment.cut_at_idle},
                {"foreground_ios", segment.foreground},
                {"bytes", segment.bytes}};
    for (size_t i = 0; i < kWaitClasses; ++i) row[kWaitClassKeys[i]] = segment.by_class[i];
    row["reference"] =
        k < report.reference_costs.size() ? CostsJson(report.reference_costs[k]) : Json(nullptr);
    row["cycles"] = Json::array();
    for (const auto& cycle : report.cycles) row["cycles"].push_back(CostsJson(cycle[k]));
    json.push_back(row);
  }
  return json;
}

Json SampleJson(const ScoreReport& report) {
  if (!report.sample) return nullptr;
  const SampleReport& sample = *report.sample;
  Json strata = Json::array();
  for (const SampleDesign::Stratum& stratum : sample.design.strata) {
    strata.push_back({{"segment", stratum.segment}, {"windows", stratum.windows}});
  }
  return {{"seed", sample.seed},
          {"budget_ns", sample.budget_ns},
          {"windows", sample.windows},
          {"windows_drawn", sample.design.stratum_of.size()},
          {"foreground_ios", sample.foreground},
          {"score_segments", sample.design.segments},
          {"strata", strata},
          {"stratum_of_window", sample.design.stratum_of}};
}

Json VariantsJson(const ScoreReport& report) {
  Json json = Json::array();
  if (!report.score) return json;
  for (const Score::Variant& variant : report.score->variants) {
    json.push_back(
        {{"weight", CostName(variant.cost)}, {"factor", variant.factor}, {"score", variant.score}});
  }
  return json;
}

Json ComparisonJson(const std::optional<Comparison>& comparison) {
  if (!comparison) return nullptr;
  const auto verdict = [&]() -> Json {
    switch (comparison->verdict) {
      case Verdict::kFirstFaster:
        return "faster";
      case Verdict::kSecondFaster:
        return "slower";
      case Verdict::kTie:
        return "tie";
      case Verdict::kTooFewCycles:
        break;
    }
    return nullptr;
  }();
  if (verdict.is_null()) return {{"verdict", nullptr}};
  return {{"verdict", verdict},
          {"ratio", comparison->ratio},
          {"ratio_low", comparison->ratio_low},
          {"ratio_high", comparison->ratio_high}};
}

// "16.0 GT/s PCIe x4", and what drive and slot could do where that is more; "" where nobody tells.
std::string LinkOf(const proto::Device& target) {
  const auto link = [](const std::string& speed, uint32_t width) {
    return width > 0 ? speed + " x" + std::to_string(width) : speed;
  };
  std::string text = link(target.link_speed(), target.link_width());
  const std::string best = link(target.link_speed_max(), target.link_width_max());
  if (!target.link_speed_max().empty() && best != text) text += ", could be " + best;
  return text;
}

Json TargetsJson(const ScoreReport& report) {
  Json json = Json::array();
  for (const proto::Device& target : report.targets) {
    json.push_back(
        {{"path", target.path()},
         {"model", target.model()},
         {"serial", target.serial()},
         {"firmware", target.firmware()},
         {"transport", target.transport()},
         {"scheduler", target.scheduler()},
         {"write_cache", target.write_cache()},
         {"drive_write_cache", target.drive_write_cache()},
         {"link", LinkOf(target)},
         {"size_bytes", target.size_bytes()},
         {"is_file", target.is_file()},
         {"unwritten_bytes",
          target.has_unwritten_bytes() ? Json(target.unwritten_bytes()) : Json(nullptr)}});
  }
  return json;
}

Json DerivedJson(const DerivedFigures& derived) {
  return {{"data_rate_mb_s", OrNull(derived.data_rate_mb_s())},
          {"access_time_us", OrNull(derived.access_time_us())},
          {"pcmark_form", OrNull(derived.pcmark_form())},
          {"max_iops", OrNull(derived.max_iops())},
          {"max_mb_s", OrNull(derived.max_mb_s())},
          {"mean_transfer_bytes", OrNull(derived.mean_transfer_bytes())},
          {"read_response_ns", LatencyJson(derived.read_response())},
          {"write_response_ns", LatencyJson(derived.write_response())},
          {"read_service_ns", LatencyJson(derived.read_service())},
          {"write_service_ns", LatencyJson(derived.write_service())}};
}

// Degrees Celsius, and how often and how long the drive slowed itself down: of the target that got
// warmest, where there are several.
Json HeatJson(const proto::ReplayOutcome& outcome) {
  const proto::DriveCondition* warmest = nullptr;
  uint64_t throttles = 0;
  uint64_t throttled_s = 0;
  bool tells = false;
  for (const proto::DriveCondition& one : outcome.conditions()) {
    if (one.has_temperature_after() &&
        (warmest == nullptr || one.temperature_after() > warmest->temperature_after())) {
      warmest = &one;
    }
    tells = tells || one.has_throttles() || one.has_throttled_s();
    throttles += one.throttles();
    throttled_s += one.throttled_s();
  }
  const auto celsius = [warmest](bool has, int64_t thousandths) {
    return warmest != nullptr && has ? Json(static_cast<double>(thousandths) / 1000)
                                     : Json(nullptr);
  };
  static const proto::DriveCondition kNone;
  const proto::DriveCondition& of = warmest == nullptr ? kNone : *warmest;
  return {{"celsius_before", celsius(of.has_temperature_before(), of.temperature_before())},
          {"celsius_after", celsius(of.has_temperature_after(), of.temperature_after())},
          {"celsius_limit", celsius(of.has_temperature_limit(), of.temperature_limit())},
          {"throttles", tells ? Json(throttles) : Json(nullptr)},
          {"throttled_s", tells ? Json(throttled_s) : Json(nullptr)},
          {"cpu_throttles",
           outcome.has_cpu_throttles() ? Json(outcome.cpu_throttles()) : Json(nullptr)}};
}

// By reason or operation, in words.
template <typename Map>
Json CountsJson(const Map& counts) {
  Json json = Json::object();
  for (const auto& [what, count] : std::map<std::string, uint64_t>(counts.begin(), counts.end())) {
    json[what] = count;
  }
  return json;
}

Json PercentilesOf(const LatencyHistogram& histogram) {
  Json json = {{"ios", histogram.count()}, {"ns", Json::array()}};
  for (const uint32_t ppm : kShownPercentilesPpm) {
    json["ns"].push_back(OrNull(histogram.MeaningfulPercentileNs(ppm)));
  }
  return json;
}

Json PercentilesJson(const ScoreReport& report) {
  Json json = {{"ppm", kShownPercentilesPpm}};
  for (size_t i = 0; i < kWaitClasses; ++i) {
    json[kWaitClassKeys[i]] = PercentilesOf(report.latencies[i]);
  }
  json["lateness"] = PercentilesOf(report.lateness());
  return json;
}

Json SeriesJson(const ScoreReport& report) {
  const ScoredRun* run = report.TypicalRun();
  if (run == nullptr) return nullptr;
  Json json = {{"run", run->label}, {"step_ns", run->series.step_ns}};
  for (const char* key : {"ios_per_s", "bytes_per_s", "depth_mean", "p99_ns", "max_ns"}) {
    json[key] = Json::array();
  }
  for (const RunSeries::Step& step : run->series.steps) {
    json["ios_per_s"].push_back(step.ios_per_s);
    json["bytes_per_s"].push_back(step.bytes_per_s);
    json["depth_mean"].push_back(step.depth_mean);
    json["p99_ns"].push_back(OrNull(step.p99_ns));
    json["max_ns"].push_back(OrNull(step.max_ns));
  }
  return json;
}

Json RunsJson(const ScoreReport& report) {
  Json json = Json::array();
  for (const ScoredRun& run : report.runs) {
    json.push_back(
        {{"label", run.label},
         {"file", run.file},
         {"rule", run.rule},
         {"engine", run.engine},
         {"began_ns", run.began_ns > 0 ? Json(run.began_ns) : Json(nullptr)},
         {"planned", run.outcome.planned()},
         {"issued", run.outcome.issued()},
         {"completed", run.outcome.completed()},
         {"errors", run.outcome.errors()},
         {"wall_ns", run.outcome.wall_ns()},
         {"busy_ns", run.busy_ns},
         {"wait_ns", run.wait_ns},
         {"host_wait_ns", run.host_wait_ns},
         {"host_parts", HostPartsJson(run.outcome)},
         {"responses", ResponsesJson(run.responses)},
         {"lateness_ns", LatencyJson(run.lateness)},
         {"d2c_ns", LatencyJson(run.service)},
         {"skipped", CountsJson(run.outcome.skipped())},
         {"emulated", CountsJson(run.outcome.emulated())},
         {"commits", CommitsJson(run.outcome)},
         {"foreign_sectors",
          run.outcome.has_foreign_sectors() ? Json(run.outcome.foreign_sectors()) : Json(nullptr)},
         {"idle_cut_ns",
          run.outcome.has_idle_cut_ns() ? Json(run.outcome.idle_cut_ns()) : Json(nullptr)},
         {"heat", HeatJson(run.outcome)},
         {"invalid_reasons", Sentences(run.invalid_reasons)},
         {"invalid_rules", RulesOf(run.invalid_reasons)},
         {"repeated", run.repeated}});
  }
  return json;
}

Json RepeatedJson(const ScoreReport& report) {
  Json json = Json::array();
  for (const RepeatedCycle& one : report.repeated) {
    json.push_back({{"cycle", one.number},
                    {"reasons", Sentences(one.reasons)},
                    {"rules", RulesOf(one.reasons)}});
  }
  return json;
}

}  // namespace

Json ScoreJson(const ScoreReport& report) {
  const std::optional<Score>& score = report.score;
  Json json;
  json["score"] = score ? Json(score->score) : Json(nullptr);
  json["ci_low"] = score ? OrNull(score->ci_low) : Json(nullptr);
  json["ci_high"] = score ? OrNull(score->ci_high) : Json(nullptr);
  json["interval_ratio"] = score ? OrNull(score->interval_ratio()) : Json(nullptr);
  json["interval_too_wide"] = score ? OrNull(score->interval_too_wide()) : Json(nullptr);
  json["storage_wait_ns"] = OrNull(report.storage_wait_ns());
  json["storage_wait_s_per_workday"] = OrNull(report.storage_wait_s_per_workday());
  json["valid"] = report.valid();
  json["invalid_reasons"] = Sentences(report.invalid_reasons);
  json["invalid_rules"] = RulesOf(report.invalid_reasons);
  json["ended_early"] = report.ended_early;
  json["state"] = report.state;
  json["rule"] = report.rule;
  json["trace_hash"] = report.trace_hash;
  json["trace"] = report.trace_name;
  json["piece"] = report.piece;
  json["score_version"] = kScoreVersion;
  json["reference"] = report.reference;
  json["comparison"] = ComparisonJson(report.comparison);
  json["targets"] = TargetsJson(report);
  json["notes"] = ScoreNotes(report);
  json["shared"] = report.shared;
  json["host"] = report.host;
  json["lost_events"] = report.lost_events;
  json["loss_accepted"] = report.loss_accepted;
  json["recording_ns"] = report.recording_ns;
  json["cycles"] = report.cycles.size();
  json["first_stage_cycles"] = report.first_stage > 0 ? Json(report.first_stage) : Json(nullptr);
  json["trend_ln"] = score ? OrNull(score->trend_ln) : Json(nullptr);
  json["repeated_cycles"] = RepeatedJson(report);
  json["score_with_repeated"] = OrNull(report.score_with_repeated());
  json["half_width_ln"] = score ? OrNull(score->half_width_ln) : Json(nullptr);
  json["log_scores"] = score ? Json(score->log_scores) : Json::array();
  json["waits_ns"] = report.waits_ns;
  json["reference_wait_ns"] = OrNull(report.reference_wait_ns);
  json["weights"] = Json::object();
  for (size_t m = 0; m < kCosts; ++m) json["weights"][CostName(static_cast<Cost>(m))] = kWeights[m];
  json["weight_variants"] = VariantsJson(report);
  json["rank_changes_with_weights"] = score && score->rank_changes;
  json["all_is_foreground"] = report.segmentation.all_is_foreground;
  ClassResponses responses;
  for (size_t i = 0; i < kWaitClasses; ++i) {
    responses[i] = report.MeanResponse(static_cast<WaitClass>(i));
  }
  json["responses"] = ResponsesJson(responses);
  json["percentiles"] = PercentilesJson(report);
  json["series"] = SeriesJson(report);
  json["sample"] = SampleJson(report);
  json["sampling_sd_ln"] = score ? OrNull(score->sampling_sd_ln) : Json(nullptr);
  json["segments"] = SegmentsJson(report);
  json["derived"] = DerivedJson(report.derived);
  json["runs"] = RunsJson(report);
  return json;
}

}  // namespace blktape
