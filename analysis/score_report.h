#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/derived_figures.h"
#include "analysis/foreground.h"
#include "analysis/invalid_reason.h"
#include "analysis/latency_histogram.h"
#include "analysis/run_costs.h"
#include "analysis/run_series.h"
#include "analysis/score.h"
#include "analysis/segments.h"
#include "format/trace.pb.h"

namespace blktape {

// One replay of a score, as the report shows it.
struct ScoredRun {
  std::string label;  // "cycle 2, closed"
  std::string file;   // of the result trace, within the report's folder
  std::string rule;   // of the replay: "closed idle-cap 10000ms", "max order"
  std::string engine;
  proto::ReplayOutcome outcome;
  LatencyHistogram lateness;  // the host's, of all operations
  LatencyHistogram service;   // D2C of data requests
  int64_t busy_ns = 0;
  int64_t wait_ns = 0;
  int64_t host_wait_ns = 0;  // the part of it that is only for the host's lateness
  ClassResponses responses;
  RunSeries series;
  int64_t began_ns = 0;  // since the Unix epoch; 0: not known
  InvalidReasons invalid_reasons;
  bool waits = false;     // in a closed or open loop, not at max speed
  bool repeated = false;  // of a cycle that does not count, see RepeatedCycle
};

// A cycle that was spoiled from outside and measured again: it does not count, but is shown.
struct RepeatedCycle {
  uint64_t number = 0;     // counted with the others, from 1
  InvalidReasons reasons;  // each names its run
  std::vector<SegmentCosts> costs;
};

// Of a score that was estimated from windows of the trace.
struct SampleReport {
  SampleDesign design;
  uint64_t windows = 0;     // that there are; design.stratum_of has those that were drawn
  uint64_t foreground = 0;  // I/Os of the whole
  int64_t budget_ns = 0;    // a cycle
  uint64_t seed = 0;
};

// All that a score says. `score` is absent where no cycle could be measured.
struct ScoreReport {
  std::string trace_name;
  std::string trace_hash;  // SHA-256 of the trace file
  std::string piece;       // "sda, from 60 s to 300 s"; empty: the whole trace
  std::string state;       // "as-is", "used", "fresh"
  std::string rule;        // all that decides, docs/score.md
  std::vector<proto::Device> targets;
  std::vector<std::string> shared;  // recorded devices whose addresses overlap on one target
  std::string reference;            // "simulated drive, version 1", or the folder of a measured one
  std::string host;                 // what this host can judge, in a sentence; empty: nobody looked
  uint64_t lost_events = 0;
  bool loss_accepted = false;
  int64_t recording_ns = 0;

  Segmentation segmentation;
  std::vector<SegmentCosts> reference_costs;
  std::optional<int64_t> reference_wait_ns;
  std::optional<Comparison> comparison;  // with a measured reference by the same rule
  Cycles cycles;
  std::vector<RepeatedCycle> repeated;
  // Of each cycle's run in a closed (or open) loop; of a sample the estimate for the whole.
  std::vector<int64_t> waits_ns;
  std::optional<SampleReport> sample;
  // Of a published score: so many cycles told the spread, and by it how many there are in all.
  uint64_t first_stage = 0;
  // A rule was broken for good, so that the cycles that were left were not run.
  bool ended_early = false;
  std::optional<Score> score;
  DerivedFigures derived;
  // Of the closed-loop (or open-loop) runs of all cycles that count, together.
  ClassLatencies latencies;
  std::vector<ScoredRun> runs;
  InvalidReasons invalid_reasons;  // of all runs and of the whole

  bool valid() const { return invalid_reasons.empty() && score.has_value(); }
  // The mean over cycles: what one waits for this drive in the recording. Absent without a cycle.
  std::optional<double> storage_wait_ns() const;
  // The same of the responses of a class, of the cycles that count.
  ClassResponse MeanResponse(WaitClass wait_class) const;
  // The mean over cycles, scaled to a workday; absent without a cycle, or a recording of no length.
  std::optional<double> storage_wait_s_per_workday() const;
  // The host's lateness in these runs.
  LatencyHistogram lateness() const;
  // Of these runs the one whose wait is the median one, of two the lower: its series stands for the
  // others. Null where there is none.
  const ScoredRun* TypicalRun() const;
  // What the score would be if the repeated cycles counted; absent where there is none of either.
  std::optional<double> score_with_repeated() const;
};

}  // namespace blktape
