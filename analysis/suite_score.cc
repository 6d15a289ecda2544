#include "analysis/suite_score.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/statistics.h"
#include "base/check.h"
#include "base/json.h"

namespace blktape {
namespace {

MeanVariance Scaled(const MeanVariance& variance, double share) {
  return {variance.variance * share * share, variance.degrees};
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool AreOneSuite(const SuiteScore& a, const SuiteScore& b) {
  if (a.traces.size() != b.traces.size()) return false;
  for (size_t t = 0; t < a.traces.size(); ++t) {
    const MeasuredScore& one = a.traces[t].score;
    const MeasuredScore& other = b.traces[t].score;
    if (one.trace_hash != other.trace_hash || one.piece != other.piece) return false;
    if (std::abs(a.share(t) - b.share(t)) > 1e-9) return false;
  }
  return true;
}

// The trace's comparison of these two drives.
const DrivePair& PairOf(const DriveComparison& trace, size_t a, size_t b) {
  const auto found = std::find_if(trace.pairs.begin(), trace.pairs.end(), [&](const auto& pair) {
    return std::minmax(pair.first, pair.second) == std::minmax(a, b);
  });
  BLKTAPE_CHECK(found != trace.pairs.end());
  return *found;
}

SuitePair ComparePair(const SuiteComparison& all, size_t first, size_t second) {
  const SuiteScore& a = all.drives[first].suite;
  const SuiteScore& b = all.drives[second].suite;
  SuitePair pair{.first = first, .second = second, .obstacle = {}, .trace = {}, .comparison = {}};
  if (all.traces.empty()) {
    pair.obstacle = Obstacle::kOtherTrace;
    return pair;
  }
  double difference = 0;
  std::vector<MeanVariance> parts;
  for (size_t t = 0; t < all.traces.size(); ++t) {
    pair.obstacle = PairOf(all.traces[t], first, second).obstacle;
    if (pair.obstacle != Obstacle::kNone) {
      pair.trace = t;
      return pair;
    }
    const double share = a.share(t);
    const MeasuredScore& base = a.traces[t].score;
    for (const MeasuredScore* score : {&base, &b.traces[t].score}) {
      const std::vector<double> logs = LogScoresAgainst(*score, base);
      difference += (score == &base ? share : -share) * MeanOf(logs);
      // As two drives are compared on one trace: all runs, and no draw, which is one for both.
      parts.push_back(Scaled(*VarianceOfMean(logs), share));
    }
  }
  pair.comparison = ComparisonOf(difference, HalfWidth95(parts));
  if (difference < 0) {
    std::swap(pair.first, pair.second);
    pair.comparison = ComparisonOf(-difference, HalfWidth95(parts));
  }
  return pair;
}

}  // namespace

bool SuiteScore::valid() const {
  return std::all_of(traces.begin(), traces.end(),
                     [](const Trace& trace) { return trace.score.valid; });
}

double SuiteScore::share(size_t index) const {
  double sum = 0;
  for (const Trace& trace : traces) sum += trace.weight;
  return traces[index].weight / sum;
}

std::optional<SuiteScore::Composite> SuiteScore::composite() const {
  double log_score = 0;
  std::vector<MeanVariance> parts;
  bool has_interval = true;
  for (size_t t = 0; t < traces.size(); ++t) {
    const MeasuredScore& score = traces[t].score;
    if (score.log_scores.empty()) return std::nullopt;
    log_score += share(t) * MeanOf(score.log_scores);
    const std::optional<MeanVariance> runs = score.VarianceOfRuns(score.log_scores);
    // A single cycle tells no spread; of a sample it still has the draw's, as its score has.
    if (runs) parts.push_back(Scaled(*runs, share(t)));
    if (score.draw) parts.push_back(Scaled(*score.draw, share(t)));
    has_interval = has_interval && (runs || score.draw);
  }
  Composite composite{.score = kReferenceScore * std::exp(log_score), .ci_low = {}, .ci_high = {}};
  if (has_interval) {
    const double half_width = HalfWidth95(parts);
    composite.ci_low = composite.score * std::exp(-half_width);
    composite.ci_high = composite.score * std::exp(half_width);
  }
  return composite;
}

bool SuiteScore::interval_too_wide() const {
  const std::optional<Composite> all = composite();
  return all && all->ci_low && *all->ci_high / *all->ci_low > WidestIntervalRatio();
}

Result<SuiteScore> ParseSuiteScore(const std::string& text) {
  const Json json = ParseJson(text);
  const Status damaged(StatusCode::kDataLoss, "no result of a suite, or a damaged one");
  try {
    const auto version = json.at("suite_version").get<int64_t>();
    if (version != kSuiteVersion) {
      return Status(StatusCode::kUnimplemented, "a suite of version " + std::to_string(version) +
                                                    "; this blktape knows version " +
                                                    std::to_string(kSuiteVersion));
    }
    SuiteScore suite;
    suite.name = json.at("suite").get<std::string>();
    for (const Json& one : json.at("traces")) {
      SuiteScore::Trace trace;
      trace.weight = one.at("weight").get<double>();
      if (!(trace.weight > 0) || !std::isfinite(trace.weight)) return damaged;
      ASSIGN_OR_RETURN(trace.score, ParseMeasuredScore(JsonText(one.at("report"), kOneLine)));
      suite.traces.push_back(std::move(trace));
    }
    if (suite.traces.empty()) return damaged;
    return suite;
  } catch (const Json::exception&) {
    return damaged;
  }
}

bool SuiteComparison::whole() const {
  return std::all_of(pairs.begin(), pairs.end(),
                     [](const SuitePair& pair) { return pair.obstacle == Obstacle::kNone; });
}

SuiteComparison CompareSuites(std::vector<ComparedSuite> drives) {
  BLKTAPE_CHECK(drives.size() >= 2);
  SuiteComparison all;
  const size_t n = drives.size();
  // The labels are told apart as those of one trace are.
  const auto of_trace = [&drives](size_t t) {
    std::vector<ComparedDrive> scores;
    scores.reserve(drives.size());
    for (const ComparedSuite& drive : drives) {
      scores.push_back({drive.label, drive.source, drive.suite.traces[t].score});
    }
    return CompareDrives(std::move(scores));
  };
  const DriveComparison first = of_trace(0);
  for (size_t i = 0; i < n; ++i) drives[i].label = first.drives[i].label;
  const bool same = std::all_of(drives.begin(), drives.end(), [&drives](const auto& drive) {
    return AreOneSuite(drives.front().suite, drive.suite);
  });
  if (same) {
    for (size_t t = 0; t < drives.front().suite.traces.size(); ++t) {
      all.traces.push_back(of_trace(t));
    }
  }
  all.drives = std::move(drives);
  const auto score_of = [&all](size_t i) {
    const auto composite = all.drives[i].suite.composite();
    return composite ? composite->score : 0;
  };
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return score_of(a) > score_of(b); });
  std::vector<size_t> faster(n, 0);
  std::vector<bool> unknown(n, false);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const SuitePair pair = ComparePair(all, order[i], order[j]);
      if (pair.obstacle != Obstacle::kNone) unknown[pair.first] = unknown[pair.second] = true;
      if (pair.comparison.verdict == Verdict::kFirstFaster) ++faster[pair.second];
      all.pairs.push_back(pair);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    all.places.push_back(unknown[i] ? std::nullopt : std::optional<size_t>(faster[i] + 1));
  }
  return all;
}

}  // namespace blktape
