#include "bench/suite.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/version.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kBlanks = " \t\r";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::optional<double> WeightOf(std::string_view word) {
  double weight = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), weight);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  if (!(weight > 0) || !std::isfinite(weight)) return std::nullopt;
  return std::optional<double>(weight);
}

}  // namespace

Result<Suite> ParseSuite(std::string_view text, const std::string& path) {
  Suite suite{.name = fs::path(path).stem().string(), .traces = {}};
  std::set<std::string> named;
  size_t number = 0;
  const auto refused = [&](const std::string& what) {
    return Status(StatusCode::kInvalidArgument,
                  path + ", line " + std::to_string(number) + ": " + what +
                      "\n  try:  a line for each trace, its weight and its path:  2 monday.tape");
  };
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = Trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const size_t blank = line.find_first_of(kBlanks);
    const std::string word(line.substr(0, blank));
    const std::optional<double> weight = WeightOf(word);
    if (!weight) {
      return refused("\"" + ToPrintable(ToUtf8(word)) + "\" is no weight, a number above 0");
    }
    const std::string_view name =
        blank == std::string_view::npos ? "" : Trimmed(line.substr(blank));
    if (name.empty()) return refused("names no trace");
    // An absolute path stays as it is.
    const fs::path trace = (fs::path(path).parent_path() / name).lexically_normal();
    if (!named.insert(trace.string()).second) {
      return refused(ToPrintable(ToUtf8(name)) + " is named twice");
    }
    if (suite.traces.size() == kMostSuiteTraces) {
      return refused("a suite has at most " + std::to_string(kMostSuiteTraces) + " traces");
    }
    suite.traces.push_back({*weight, trace.string()});
  }
  if (suite.traces.empty()) return refused("the suite names no trace");
  return suite;
}

Result<Suite> ReadSuite(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseSuite(text, path);
}

Result<std::string> SuiteResultText(const Suite& suite, uint64_t order_seed,
                                    const std::vector<std::string>& reports) {
  Json traces = Json::array();
  for (size_t t = 0; t < reports.size(); ++t) {
    Json report = ParseJson(reports[t]);
    traces.push_back({{"weight", suite.traces[t].weight}, {"report", std::move(report)}});
  }
  Json json = {{"suite_version", kSuiteVersion},
               {"suite", suite.name},
               {"tool_version", kVersion},
               {"order_seed", order_seed},
               {"traces", std::move(traces)}};
  const auto dumped = [](const Json& one) { return JsonText(one) + "\n"; };
  // What is derived is that of whoever reads it.
  ASSIGN_OR_RETURN(const SuiteScore score, ParseSuiteScore(dumped(json)));
  const std::optional<SuiteScore::Composite> composite = score.composite();
  json["drive"] = score.drive();
  json["valid"] = score.valid();
  json["score"] = composite ? Json(composite->score) : Json(nullptr);
  json["ci_low"] = composite ? OrNull(composite->ci_low) : Json(nullptr);
  json["ci_high"] = composite ? OrNull(composite->ci_high) : Json(nullptr);
  json["interval_too_wide"] =
      composite && composite->ci_low ? Json(score.interval_too_wide()) : Json(nullptr);
  return dumped(json);
}

}  // namespace blktape
