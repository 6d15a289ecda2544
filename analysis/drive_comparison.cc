#include "analysis/drive_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/run_costs.h"
#include "base/check.h"

namespace blktape {
namespace {

// Against the reference of `base`, so that the logarithms of two drives may be subtracted. That of
// a sample cannot be computed from its costs alone: its report's own are taken.
std::vector<double> LogScores(const MeasuredScore& score, const MeasuredScore& base) {
  if (score.sampled) return score.log_scores;
  std::vector<double> log_scores;
  for (const auto& cycle : score.cycles) {
    log_scores.push_back(LogScore(base.reference_costs, cycle));
  }
  return log_scores;
}

Obstacle ObstacleOf(const MeasuredScore& a, const MeasuredScore& b) {
  if (a.trace_hash != b.trace_hash || a.piece != b.piece) return Obstacle::kOtherTrace;
  if (ProcedureOf(a.rule) != ProcedureOf(b.rule)) return Obstacle::kOtherRule;
  if (!a.valid || !b.valid) return Obstacle::kInvalid;
  // The segments are the trace's; a report that has others is of something else.
  if (a.cycles.front().size() != b.cycles.front().size()) return Obstacle::kOtherTrace;
  if (a.sampled != b.sampled) return Obstacle::kOtherRule;
  if (a.reference_costs.empty() || (a.sampled && a.reference_costs != b.reference_costs)) {
    return Obstacle::kOtherReference;
  }
  return std::min(a.cycles.size(), b.cycles.size()) < 2 ? Obstacle::kTooFewCycles : Obstacle::kNone;
}

DrivePair ComparePair(const std::vector<ComparedDrive>& drives, size_t first, size_t second) {
  const MeasuredScore& a = drives[first].score;
  const MeasuredScore& b = drives[second].score;
  DrivePair pair{first, second, ObstacleOf(a, b), {}};
  if (pair.obstacle != Obstacle::kNone) return pair;
  const std::vector<double> of_a = LogScores(a, a);
  const std::vector<double> of_b = LogScores(b, a);
  pair.comparison = CompareScores(of_a, of_b);
  if (pair.comparison.ratio < 1) {
    std::swap(pair.first, pair.second);
    pair.comparison = CompareScores(of_b, of_a);
  }
  return pair;
}

// Segments whose costs can be set against one another, whatever the verdict.
bool HaveSameSegments(Obstacle obstacle) {
  return obstacle == Obstacle::kNone || obstacle == Obstacle::kTooFewCycles;
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

size_t Count(const std::vector<ComparedDrive>& drives, const std::string& label) {
  return static_cast<size_t>(
      std::count_if(drives.begin(), drives.end(),
                    [&label](const ComparedDrive& drive) { return drive.label == label; }));
}

void TellApart(std::vector<ComparedDrive>* drives) {
  std::vector<std::string> labels;
  for (const ComparedDrive& drive : *drives) {
    const bool clear = !drive.label.empty() && Count(*drives, drive.label) == 1;
    labels.push_back(clear ? drive.label : drive.label + " (" + drive.source + ")");
  }
  for (size_t i = 0; i < labels.size(); ++i) (*drives)[i].label = labels[i];
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::count(labels.begin(), labels.end(), labels[i]) > 1) {
      (*drives)[i].label = labels[i] + " #" + std::to_string(i + 1);
    }
  }
}

bool AreOneDrive(const MeasuredScore& a, const MeasuredScore& b) {
  const auto knows = [&a](const MeasuredScore::Target& target) {
    return !target.serial.empty() &&
           std::any_of(a.targets.begin(), a.targets.end(), [&](const MeasuredScore::Target& other) {
             return other.serial == target.serial && other.model == target.model;
           });
  };
  return std::any_of(b.targets.begin(), b.targets.end(), knows);
}

}  // namespace

bool DriveComparison::whole() const {
  return std::all_of(pairs.begin(), pairs.end(),
                     [](const DrivePair& pair) { return pair.obstacle == Obstacle::kNone; });
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
  std::vector<size_t> faster(n, 0);
  std::vector<bool> unknown(n, false);
  all.segment_ratios.resize(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const DrivePair pair = ComparePair(drives, order[i], order[j]);
      if (pair.obstacle != Obstacle::kNone) unknown[pair.first] = unknown[pair.second] = true;
      if (pair.comparison.verdict == Verdict::kFirstFaster) ++faster[pair.second];
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
  for (size_t i = 0; i < n; ++i) {
    all.places.push_back(unknown[i] ? std::nullopt : std::optional<size_t>(faster[i] + 1));
  }
  all.drives = std::move(drives);
  return all;
}

}  // namespace blktape
