#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace blktape {

// A report.json of `score` (docs/score.md, "JSON") as far as others go on with it, of invented
// costs in ns: [segment][cycle], the same for wait and work, against a reference of 1 s each.
inline Json ScoreReportJson(const std::string& model,
                            const std::vector<std::vector<double>>& costs_ns) {
  const size_t cycles = costs_ns.front().size();
  Json segments = Json::array();
  for (const auto& of_cycles : costs_ns) {
    const size_t first = segments.size() * 1000;
    Json segment = {{"first_record", first},
                    {"end_record", first + 1000},
                    {"reference", {{"wait_ns", 1e9}, {"busy_ns", 1e9}}},
                    {"cycles", Json::array()}};
    for (const double ns : of_cycles) {
      segment["cycles"].push_back({{"wait_ns", ns}, {"busy_ns", ns}});
    }
    segments.push_back(segment);
  }
  return {{"score", 1000.0},
          {"ci_low", 990.0},
          {"ci_high", 1010.0},
          {"storage_wait_ns", 41e9},
          {"storage_wait_s_per_workday", 328.0},
          {"valid", true},
          {"invalid_reasons", Json::array()},
          {"state", "as-is"},
          {"rule", "score 2: closed loop, idle cap 1 s, as-is; 512110190592 bytes, write back"},
          {"trace_hash", std::string(64, 'a')},
          {"trace", "monday.tape"},
          {"piece", ""},
          {"score_version", 2},
          {"reference", "simulated drive, version 1"},
          {"targets",
           {{{"path", "/dev/sdx"},
             {"model", model},
             {"serial", ""},
             {"firmware", "1.0"},
             {"size_bytes", 512110190592}}}},
          {"recording_ns", 3600000000000},
          {"cycles", cycles},
          {"trend_ln", nullptr},
          {"repeated_cycles", Json::array()},
          {"log_scores", std::vector<double>(cycles, 0.0)},
          {"waits_ns", std::vector<double>(cycles, 41e9)},
          {"sample", nullptr},
          {"segments", segments},
          {"runs", Json::array()}};
}

}  // namespace blktape
