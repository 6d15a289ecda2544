#include "bench/scored_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/invalid_reason.h"
#include "analysis/profile.h"
#include "analysis/profile_trace.h"
#include "analysis/score.h"
#include "analysis/validity.h"
#include "base/byte_stream.h"
#include "base/file.h"
#include "base/sha256.h"
#include "replay/plan/record_stream.h"

namespace blktape {

Result<std::shared_ptr<const ScoredTrace>> ReadScoredTrace(const TracePiece& piece, bool open_loop,
                                                           bool loss_accepted,
                                                           const std::atomic<bool>& stop) {
  const auto trace = std::make_shared<ScoredTrace>();
  const std::string& path = piece.trace_path;
  // Refuses what can be read only once.
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> stream, OpenPiece(piece));
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenForReading(path));
  ASSIGN_OR_RETURN(trace->hash, Sha256Hex(source.get()));
  ProfileOptions part{.from_ns = piece.from_ns, .to_ns = piece.to_ns, .footprint = false};
  ASSIGN_OR_RETURN(part.device, DeviceOf(piece, stream->header()));
  ASSIGN_OR_RETURN(const Profile recording, ProfileTrace(path, part));
  // Known before the first run, which may take long: nothing is run for an invalid score.
  for (const InvalidReason& reason : WhyTraceInvalid(recording, loss_accepted)) {
    return Status(StatusCode::kFailedPrecondition,
                  path + ": " + reason.Sentence() +
                      "; nothing was run\n  try:  --accept-loss to score what is there, which "
                      "the report names");
  }
  ASSIGN_OR_RETURN(trace->segmentation, CutPiece(piece, stop));
  const uint64_t foreground = trace->segmentation.foreground();
  if (foreground < kLeastForeground) {
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{}: holds {} I/Os that somebody waits for, and a score takes {}\n"
                              "  try:  a longer recording",
                              path, foreground, kLeastForeground));
  }
  trace->lost_events = recording.lost_events;
  trace->recording_ns = trace->segmentation.observed_ns;
  if (piece.Name().empty()) {
    trace->recording_ns = std::max(recording.recorded_ns.value_or(0), trace->recording_ns);
  }
  trace->ordered = recording.all.q2c.count() + recording.all.d2c.count() > 0;
  if (!trace->ordered && !open_loop) {
    return Status(StatusCode::kFailedPrecondition,
                  path +
                      ": does not tell when I/Os completed, so what waited for what is not "
                      "known\n  try:  --open, which is a rule of its own");
  }
  return std::shared_ptr<const ScoredTrace>(trace);
}

}  // namespace blktape
