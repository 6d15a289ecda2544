#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/measured_score.h"
#include "analysis/score.h"

namespace blktape {

// Drives that were scored, side by side. Definition: docs/score.md, "Two drives" and "Drives side
// by side".

struct ComparedDrive {
  std::string label;   // unique among the drives
  std::string source;  // where the score was read: a file, or a result of the store
  MeasuredScore score;
};

// Why two drives get no verdict.
enum class Obstacle {
  kNone,
  kInvalid,         // the score of one or both
  kOtherTrace,      // scored on different traces, or different pieces of one
  kOtherRule,       // measured by different rules
  kOtherState,      // by rules that differ in the state of the drive alone
  kOtherReference,  // samples, whose scores are against different references
  kTooFewCycles,    // fewer than two of either
};

struct DrivePair {
  size_t first = 0, second = 0;  // drives; where there is a verdict, the first scores higher
  Obstacle obstacle = Obstacle::kNone;
  // kTie or kFirstFaster; nothing where there is an obstacle, but kOtherState of one drive: what
  // its state makes of it.
  Comparison comparison;

  // One drive in two states, both measured.
  bool shows_state() const;
};

struct DriveComparison {
  std::vector<ComparedDrive> drives;  // as they were given
  std::vector<DrivePair> pairs;       // each two once, those of the fastest first
  // 1 + how many drives are proven faster, so that ties share a place. Absent for an invalid one,
  // and where there is no verdict on any other, or a verdict on a valid one is missing for another
  // reason than the state.
  std::vector<std::optional<size_t>> places;
  // How many times as fast as the first drive each one is in each segment of the trace: ratio of
  // the scores of that segment alone, costs as geometric mean over cycles. [drive][segment]; empty
  // for a drive that gets no verdict beside the first.
  std::vector<std::vector<double>> segment_ratios;
  // Drives that are one by serial number: [first, second].
  std::vector<std::pair<size_t, size_t>> same_drive;

  // Every two drives get a verdict, or are one in two states.
  bool whole() const;
};

// ln(S / 1000) of each cycle against the reference of `base`, so that the logarithms of two drives
// may be subtracted. Both have the same segments.
std::vector<double> LogScoresAgainst(const MeasuredScore& score, const MeasuredScore& base);

// At least two drives. Labels that occur more than once are told apart by the state, by their
// source, then by their number.
DriveComparison CompareDrives(std::vector<ComparedDrive> drives);

}  // namespace blktape
