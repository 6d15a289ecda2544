#include "analysis/measured_reference.h"

#include "analysis/score.h"

namespace blktape {

Result<MeasuredReference> ParseReference(const std::string& report_json,
                                         const std::string& trace_hash) {
  const Result<MeasuredScore> score = ParseMeasuredScore(report_json);
  if (!score.ok()) {
    return score.status().code() == StatusCode::kDataLoss
               ? Status(StatusCode::kDataLoss,
                        "the reference's report.json is no report of a score")
               : Status(StatusCode::kFailedPrecondition,
                        "the reference was " + score.status().message());
  }
  if (score->trace_hash != trace_hash) {
    return Status(StatusCode::kFailedPrecondition,
                  "the reference was scored on another trace: " + score->trace + ", SHA-256 " +
                      score->trace_hash);
  }
  if (!score->valid) {
    return Status(StatusCode::kFailedPrecondition, "the reference's score is invalid");
  }
  const auto cycles = static_cast<double>(score->cycles.size());  // at least one, being valid
  MeasuredReference reference;
  reference.name = score->name();
  reference.rule = score->rule;
  reference.piece = score->piece;
  reference.segment_records = score->segment_records;
  reference.costs = ReferenceOf(score->cycles);
  reference.log_scores = ComputeScore(reference.costs, score->cycles).log_scores;
  reference.interval_too_wide = score->interval_too_wide();
  if (score->storage_wait_ns) {
    reference.wait_ns = static_cast<int64_t>(*score->storage_wait_ns);
  }
  reference.cycle_ns = static_cast<int64_t>(score->wall_ns / cycles);
  return reference;
}

}  // namespace blktape
