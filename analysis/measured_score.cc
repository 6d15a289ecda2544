#include "analysis/measured_score.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/json.h"

namespace blktape {
namespace {

std::optional<double> NumberAt(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

// An infinite cost would make every ratio one.
bool IsCost(double ns) { return ns > 0 && std::isfinite(ns); }

// Fits into an int64_t.
bool IsTime(double ns) { return ns >= 0 && ns < 9e18; }

bool ReadCosts(const Json& json, SegmentCosts* costs) {
  for (size_t m = 0; m < kCosts; ++m) {
    (*costs)[m] = json.at(CostKey(static_cast<Cost>(m))).get<double>();
    if (!IsCost((*costs)[m])) return false;
  }
  return true;
}

// False where cycles, segments and costs do not fit together.
bool ReadSegments(const Json& json, MeasuredScore* score) {
  const Json& segments = json.at("segments");
  const auto count = json.at("cycles").get<size_t>();
  if (count == 0) return true;
  // Before so much memory is taken.
  if (segments.empty() || segments[0].at("cycles").size() != count) return false;
  score->cycles.resize(count);
  for (const Json& segment : segments) {
    if (segment.at("cycles").size() != count) return false;
    score->segment_records.push_back({.first = segment.at("first_record").get<uint64_t>(),
                                      .end = segment.at("end_record").get<uint64_t>()});
    for (size_t cycle = 0; cycle < count; ++cycle) {
      SegmentCosts costs{};
      if (!ReadCosts(segment.at("cycles")[cycle], &costs)) return false;
      score->cycles[cycle].push_back(costs);
    }
    const Json& reference = segment.at("reference");
    if (reference.is_null()) continue;
    SegmentCosts costs{};
    if (!ReadCosts(reference, &costs)) return false;
    score->reference_costs.push_back(costs);
  }
  if (score->reference_costs.size() != segments.size()) score->reference_costs.clear();
  return true;
}

// The variance of the draw, with the degrees of freedom by the strata that it left to chance.
// False where the sample's parts do not fit together.
bool ReadDraw(const Json& sample, const std::optional<double>& sd_ln, MeasuredScore* score) {
  if (!sd_ln) return true;
  std::vector<uint64_t> drawn(sample.at("strata").size(), 0);
  for (const Json& stratum : sample.at("stratum_of_window")) {
    const auto index = stratum.get<size_t>();
    if (index >= drawn.size()) return false;
    ++drawn[index];
  }
  double left_to_chance = 0;
  for (size_t h = 0; h < drawn.size(); ++h) {
    const auto windows = sample.at("strata")[h].at("windows").get<uint64_t>();
    if (drawn[h] >= 2 && drawn[h] < windows) ++left_to_chance;
  }
  score->draw = {.variance = *sd_ln * *sd_ln,
                 .degrees = std::max(left_to_chance / kSamplingDegreesOneOf, 1.0)};
  return std::isfinite(*sd_ln);
}

bool Read(const Json& json, MeasuredScore* score) {
  score->trace = json.at("trace").get<std::string>();
  score->trace_hash = json.at("trace_hash").get<std::string>();
  score->piece = json.at("piece").get<std::string>();
  score->state = json.at("state").get<std::string>();
  score->rule = json.at("rule").get<std::string>();
  score->reference = json.at("reference").get<std::string>();
  for (const Json& target : json.at("targets")) {
    MeasuredScore::Target one;
    one.path = target.at("path").get<std::string>();
    one.model = target.at("model").get<std::string>();
    one.serial = target.at("serial").get<std::string>();
    one.firmware = target.at("firmware").get<std::string>();
    if (const Json& size = target.at("size_bytes"); !size.is_null())
      one.size_bytes = size.get<uint64_t>();
    score->targets.push_back(std::move(one));
  }
  score->valid = json.at("valid").get<bool>();
  score->invalid_reasons = json.at("invalid_reasons").get<std::vector<std::string>>();
  score->score = NumberAt(json, "score");
  score->ci_low = NumberAt(json, "ci_low");
  score->ci_high = NumberAt(json, "ci_high");
  score->trend_ln = NumberAt(json, "trend_ln");
  score->storage_wait_s_per_workday = NumberAt(json, "storage_wait_s_per_workday");
  score->storage_wait_ns = NumberAt(json, "storage_wait_ns");
  score->recording_ns = json.at("recording_ns").get<int64_t>();
  score->repeated_cycles = json.at("repeated_cycles").size();
  score->sampled = !json.at("sample").is_null();
  score->log_scores = json.at("log_scores").get<std::vector<double>>();
  // What tells the interval apart by its causes; neither is there in a report of another kind.
  if (const auto stage = json.find("first_stage_cycles");
      stage != json.end() && !stage->is_null()) {
    score->first_stage = stage->get<uint64_t>();
    if (score->first_stage < 2) return false;
  }
  if (score->sampled && !ReadDraw(json.at("sample"), NumberAt(json, "sampling_sd_ln"), score)) {
    return false;
  }
  for (const Json& run : json.at("runs")) {
    if (!run.at("repeated").get<bool>()) score->wall_ns += run.at("wall_ns").get<double>();
  }
  if (!ReadSegments(json, score)) return false;
  score->evidence = ReadEvidence(json);
  // A valid score has what it was computed from, all of it positive.
  for (const auto& value : {score->score, score->ci_low, score->ci_high}) {
    if (value && !IsCost(*value)) return false;
  }
  if (!IsTime(score->storage_wait_ns.value_or(0)) || !IsTime(score->wall_ns)) return false;
  if (!score->score) return !score->valid && score->log_scores.empty();
  return !score->cycles.empty() && score->log_scores.size() == score->cycles.size();
}

}  // namespace

std::string MeasuredScore::name() const {
  if (targets.empty()) return "";
  const Target& last = targets.back();
  return last.model.empty() ? last.path : last.model;
}

bool MeasuredScore::interval_too_wide() const {
  Score own;
  own.ci_low = ci_low;
  own.ci_high = ci_high;
  return own.interval_too_wide().value_or(false);
}

std::optional<MeanVariance> MeasuredScore::VarianceOfRuns(std::span<const double> logs) const {
  const bool staged = first_stage >= 2 && first_stage <= logs.size();
  std::optional<MeanVariance> runs = VarianceOfMean(staged ? logs.first(first_stage) : logs);
  // Of the mean of all cycles, by the spread of the first stage.
  if (staged) runs->variance *= static_cast<double>(first_stage) / static_cast<double>(logs.size());
  return runs;
}

std::string_view ProcedureOf(std::string_view rule) { return rule.substr(0, rule.find(';')); }

Result<MeasuredScore> ParseMeasuredScore(const std::string& report_json) {
  const Json json = ParseJson(report_json);
  const Status damaged(StatusCode::kDataLoss, "no report of a score, or a damaged one");
  try {
    const auto version = json.at("score_version").get<int64_t>();
    if (version != kScoreVersion) {
      return Status(StatusCode::kUnimplemented, "scored by version " + std::to_string(version) +
                                                    " of the score; this blktape knows version " +
                                                    std::to_string(kScoreVersion));
    }
    MeasuredScore score;
    if (!Read(json, &score)) return damaged;
    return score;
  } catch (const Json::exception&) {
    return damaged;
  }
}

}  // namespace blktape
