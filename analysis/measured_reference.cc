#include "analysis/measured_reference.h"

#include <nlohmann/json.hpp>

#include "analysis/score.h"

namespace blktape {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string_view ProcedureOf(std::string_view rule) { return rule.substr(0, rule.find(';')); }

Result<MeasuredReference> ParseReference(const std::string& report_json,
                                         const std::string& trace_hash) {
  const Json json = Json::parse(report_json, nullptr, /*allow_exceptions=*/false);
  const Status damaged(StatusCode::kDataLoss,
                       "the reference's report.json is no report of a score");
  try {
    if (json.at("trace_hash").get<std::string>() != trace_hash) {
      return Status(
          StatusCode::kFailedPrecondition,
          "the reference was scored on another trace: " + json.at("trace").get<std::string>() +
              ", SHA-256 " + json.at("trace_hash").get<std::string>());
    }
    if (json.at("score_version").get<int>() != kScoreVersion) {
      return Status(StatusCode::kFailedPrecondition,
                    "the reference was scored by another version of the score");
    }
    if (!json.at("valid").get<bool>()) {
      return Status(StatusCode::kFailedPrecondition, "the reference's score is invalid");
    }
    MeasuredReference reference;
    for (const Json& target : json.at("targets")) {
      const std::string model = target.at("model").get<std::string>();
      reference.name = model.empty() ? target.at("path").get<std::string>() : model;
    }
    reference.rule = json.at("rule").get<std::string>();
    const Json& segments = json.at("segments");
    const auto count = json.at("cycles").get<size_t>();
    // Before so much memory is taken.
    if (segments.empty() || segments[0].at("cycles").size() != count) return damaged;
    Cycles cycles(count);
    for (const Json& segment : segments) {
      if (segment.at("cycles").size() != cycles.size()) return damaged;
      for (size_t cycle = 0; cycle < cycles.size(); ++cycle) {
        SegmentCosts costs{};
        for (size_t m = 0; m < kCosts; ++m) {
          costs[m] = segment.at("cycles")[cycle].at(CostKey(static_cast<Cost>(m))).get<double>();
          if (!(costs[m] > 0)) return damaged;
        }
        cycles[cycle].push_back(costs);
      }
    }
    if (cycles.empty() || cycles.front().empty()) return damaged;
    reference.costs = ReferenceOf(cycles);
    reference.log_scores = ComputeScore(reference.costs, cycles).log_scores;
    // Null for a single cycle.
    const Json& low = json.at("ci_low");
    const Json& high = json.at("ci_high");
    if (low.is_number() && high.is_number()) {
      Score own;
      own.ci_low = low.get<double>();
      own.ci_high = high.get<double>();
      reference.interval_too_wide = own.interval_too_wide().value_or(false);
    }
    double wait_ns = 0;
    for (const Json& wait : json.at("waits_ns")) wait_ns += wait.get<double>();
    reference.wait_ns = static_cast<int64_t>(wait_ns / static_cast<double>(cycles.size()));
    double wall_ns = 0;
    for (const Json& run : json.at("runs")) {
      if (!run.at("repeated").get<bool>()) wall_ns += run.at("wall_ns").get<double>();
    }
    reference.cycle_ns = static_cast<int64_t>(wall_ns / static_cast<double>(cycles.size()));
    return reference;
  } catch (const Json::exception&) {
    return damaged;
  }
}

}  // namespace blktape
