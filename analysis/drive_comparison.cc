#include "analysis/drive_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/run_costs.h"
#include "base/check.h"

namespace blktape {
namespace {

// Where the procedure tells the state: ", used before the first cycle"; npos: nowhere.
size_t FindState(const std::string& procedure, const MeasuredScore& score) {
  return score.state.empty() ? std::string::npos : procedure.find(", " + score.state);
}

// The procedure but for the words that tell the state.
std::string StatelessProcedureOf(const MeasuredScore& score) {
  std::string rule(ProcedureOf(score.rule));
  const size_t begin = FindState(rule, score);
  if (begin == std::string::npos) return rule;
  return rule.erase(begin, rule.find(", ", begin + 2) - begin);
}

bool IsSimulated(const MeasuredScore& score) {
  return ProcedureOf(score.rule).ends_with(", simulated");
}

// Of a simulated drive and a real one what both can have: up to the state, of which a simulated one
// has only one. Pause, engine and kind of target follow it.
std::string RuleOfBoth(const MeasuredScore& score) {
  const std::string rule(ProcedureOf(score.rule));
  return rule.substr(0, FindState(rule, score));
}

bool GoByOneRule(const MeasuredScore& a, const MeasuredScore& b) {
  if (ProcedureOf(a.rule) == ProcedureOf(b.rule)) return true;
  return IsSimulated(a) != IsSimulated(b) && RuleOfBoth(a) == RuleOfBoth(b);
}

Obstacle ObstacleOf(const MeasuredScore& a, const MeasuredScore& b) {
  if (a.trace_hash != b.trace_hash || a.piece != b.piece) return Obstacle::kOtherTrace;
  const bool same_rule = GoByOneRule(a, b);
  const bool other_state =
      !same_rule && a.state != b.state && StatelessProcedureOf(a) == StatelessProcedureOf(b);
  if (!same_rule && !other_state) return Obstacle::kOtherRule;
  if (!a.valid || !b.valid) return Obstacle::kInvalid;
  // The segments are the trace's; a report that has others is of something else.
  if (a.cycles.front().size() != b.cycles.front().size()) return Obstacle::kOtherTrace;
  if (a.sampled != b.sampled) return Obstacle::kOtherRule;
  if (a.reference_costs.empty() || (a.sampled && a.reference_costs != b.reference_costs)) {
    return Obstacle::kOtherReference;
  }
  if (std::min(a.cycles.size(), b.cycles.size()) < 2) return Obstacle::kTooFewCycles;
  return other_state ? Obstacle::kOtherState : Obstacle::kNone;
}

// By model and serial number.
bool AreOneDrive(const MeasuredScore& a, const MeasuredScore& b) {
  const auto knows = [&a](const MeasuredScore::Target& target) {
    return !target.serial.empty() &&
           std::any_of(a.targets.begin(), a.targets.end(), [&](const MeasuredScore::Target& other) {
             return other.serial == target.serial && other.model == target.model;
           });
  };
  return std::any_of(b.targets.begin(), b.targets.end(), knows);
}

// Also a file or a drive that tells no serial number, which goes by its path.
bool HaveOneName(const MeasuredScore& a, const MeasuredScore& b) {
  const auto paths = [](const MeasuredScore& score) {
    std::vector<std::string> all;
    for (const MeasuredScore::Target& target : score.targets) {
      if (!target.serial.empty()) return std::vector<std::string>{};
      all.push_back(target.model + " " + target.path);
    }
    return all;
  };
  return AreOneDrive(a, b) || (!paths(a).empty() && paths(a) == paths(b));
}

DrivePair ComparePair(const std::vector<ComparedDrive>& drives, size_t first, size_t second) {
  const MeasuredScore& a = drives[first].score;
  const MeasuredScore& b = drives[second].score;
  DrivePair pair{first, second, ObstacleOf(a, b), {}};
  const bool in_two_states = pair.obstacle == Obstacle::kOtherState && HaveOneName(a, b);
  if (pair.obstacle != Obstacle::kNone && !in_two_states) return pair;
  const std::vector<double> of_a = LogScoresAgainst(a, a);
  const std::vector<double> of_b = LogScoresAgainst(b, a);
  pair.comparison = CompareScores(of_a, of_b);
  if (pair.comparison.ratio < 1) {
    std::swap(pair.first, pair.second);
    pair.comparison = CompareScores(of_b, of_a);
  }
  return pair;
}

// Segments whose costs can be set against one another, whatever the verdict.
bool HaveSameSegments(Obstacle obstacle) {
  return obstacle == Obstacle::kNone || obstacle == Obstacle::kTooFewCycles ||
         obstacle == Obstacle::kOtherState;
}

std::vector<double> SegmentRatios(const MeasuredScore& drive, const MeasuredScore& base) {
  const std::vector<SegmentCosts> costs = ReferenceOf(drive.cycles);
  const std::vector<SegmentCosts> base_costs = ReferenceOf(base.cycles);
  std::vector<double> ratios;
  for (size_t k = 0; k < costs.size(); ++k) {
    ratios.push_back(std::exp(LogScore({&base_costs[k], 1}, {&costs[k], 1})));
  }
  return ratios;
}

// An invalid drive has no place, which takes none from the others; those of another state have
// places of their own. Whoever gets no verdict at all has none.
std::vector<std::optional<size_t>> PlacesOf(const std::vector<ComparedDrive>& drives,
                                            const std::vector<DrivePair>& pairs) {
  std::vector<size_t> place(drives.size(), 1);
  std::vector<bool> compared(drives.size(), false);
  std::vector<bool> unknown(drives.size(), false);
  for (const DrivePair& pair : pairs) {
    if (pair.obstacle == Obstacle::kNone) {
      compared[pair.first] = compared[pair.second] = true;
      if (pair.comparison.verdict == Verdict::kFirstFaster) ++place[pair.second];
      continue;
    }
    const bool both_valid = drives[pair.first].score.valid && drives[pair.second].score.valid;
    if (both_valid && pair.obstacle != Obstacle::kOtherState) {
      unknown[pair.first] = unknown[pair.second] = true;
    }
  }
  std::vector<std::optional<size_t>> places;
  for (size_t i = 0; i < drives.size(); ++i) {
    places.push_back(compared[i] && !unknown[i] ? std::optional(place[i]) : std::nullopt);
  }
  return places;
}

size_t Count(const std::vector<ComparedDrive>& drives, const std::string& label) {
  return static_cast<size_t>(
      std::count_if(drives.begin(), drives.end(),
                    [&label](const ComparedDrive& drive) { return drive.label == label; }));
}

bool IsOneOf(const std::vector<ComparedDrive>& drives, size_t i) {
  return std::any_of(drives.begin(), drives.end(), [&](const ComparedDrive& other) {
    return &other != &drives[i] && other.label == drives[i].label &&
           other.score.state == drives[i].score.state;
  });
}

void TellApart(std::vector<ComparedDrive>* drives) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < drives->size(); ++i) {
    const ComparedDrive& drive = (*drives)[i];
    if (!drive.label.empty() && Count(*drives, drive.label) == 1) {
      labels.push_back(drive.label);
    } else {
      const bool by_state = !drive.label.empty() && !IsOneOf(*drives, i);
      labels.push_back(drive.label + " (" + (by_state ? drive.score.state : drive.source) + ")");
    }
  }
  for (size_t i = 0; i < labels.size(); ++i) (*drives)[i].label = labels[i];
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::count(labels.begin(), labels.end(), labels[i]) > 1) {
      (*drives)[i].label = labels[i] + " #" + std::to_string(i + 1);
    }
  }
}

}  // namespace

// The logarithm of a sample cannot be computed from its costs alone: its report's own are taken.
std::vector<double> LogScoresAgainst(const MeasuredScore& score, const MeasuredScore& base) {
  if (score.sampled) return score.log_scores;
  std::vector<double> log_scores;
  for (const auto& cycle : score.cycles) {
    log_scores.push_back(LogScore(base.reference_costs, cycle));
  }
  return log_scores;
}

bool DriveComparison::whole() const {
  return std::all_of(pairs.begin(), pairs.end(), [](const DrivePair& pair) {
    return pair.obstacle == Obstacle::kNone || pair.shows_state();
  });
}

bool DrivePair::shows_state() const {
  return obstacle == Obstacle::kOtherState && comparison.verdict != Verdict::kTooFewCycles;
}

DriveComparison CompareDrives(std::vector<ComparedDrive> drives) {
  BLKTAPE_CHECK(drives.size() >= 2);
  TellApart(&drives);
  DriveComparison all;
  const size_t n = drives.size();
  // By falling score, those without one last.
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&drives](size_t a, size_t b) {
    return drives[a].score.score.value_or(0) > drives[b].score.score.value_or(0);
  });
  all.segment_ratios.resize(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const DrivePair pair = ComparePair(drives, order[i], order[j]);
      const size_t low = std::min(pair.first, pair.second);
      const size_t high = std::max(pair.first, pair.second);
      if (low == 0 && HaveSameSegments(pair.obstacle)) {
        for (const size_t drive : {low, high}) {
          all.segment_ratios[drive] = SegmentRatios(drives[drive].score, drives[0].score);
        }
      }
      if (AreOneDrive(drives[low].score, drives[high].score)) {
        all.same_drive.emplace_back(low, high);
      }
      all.pairs.push_back(pair);
    }
  }
  all.places = PlacesOf(drives, all.pairs);
  all.drives = std::move(drives);
  return all;
}

}  // namespace blktape
