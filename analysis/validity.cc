#include "analysis/validity.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/quantity.h"

namespace blktape {
namespace {

using Reasons = InvalidReasons;

void CheckWork(const Segmentation& segmentation, const RunCosts& run,
               const proto::ReplayOutcome& outcome, Reasons* reasons) {
  const auto add = [reasons](uint64_t count, std::string_view what) {
    if (count > 0)
      reasons->push_back(
          {.rule = 1, .text = fmt::format("{} {}", FormatCount(count), what), .run = {}});
  };
  add(outcome.errors(), "I/Os failed");
  add(outcome.short_transfers(), "I/Os were short");
  add(outcome.verify_mismatches(), "reads verified wrong");
  if (outcome.stopped_early()) {
    reasons->push_back(
        {.rule = 1, .text = "the run was stopped early: " + outcome.stop_reason(), .run = {}});
  }
  uint64_t skipped = 0;
  for (const auto& [reason, count] : outcome.skipped()) skipped += count;
  // A commit's I/Os are issued as often as the replay's threads needed it.
  const proto::SharedCommits& commits = outcome.commits();
  const uint64_t once = outcome.issued() + commits.left_out() - commits.copies();
  if (once + skipped != segmentation.records) {
    reasons->push_back(
        {.rule = 1,
         .text = fmt::format("{} issued and {} skipped by name, where the trace holds {}",
                             FormatCounted(once, "I/O"), FormatCount(skipped),
                             FormatCount(segmentation.records)),
         .run = {}});
  }
  if (outcome.completed() != outcome.issued()) {
    reasons->push_back(
        {.rule = 1,
         .text = fmt::format("{} of {} issued I/Os completed", FormatCount(outcome.completed()),
                             FormatCount(outcome.issued())),
         .run = {}});
  }
  // What the recording does not tell the completion of gates nothing by rule; all else must.
  if (outcome.ungated() > segmentation.without_order) {
    reasons->push_back({.rule = 1,
                        .text = fmt::format("order not kept: nothing waited for {}, where the "
                                            "trace lacks the times of {} only",
                                            FormatCounted(outcome.ungated(), "I/O"),
                                            FormatCount(segmentation.without_order)),
                        .run = {}});
  }
  const Profile& profile = run.profile;
  // Where data requests were skipped by name, their bytes are missing by name.
  if (commits.left_out() == 0 && commits.copies() == 0 &&
      profile.data_requests == segmentation.data_requests &&
      (profile.of(Op::kRead).bytes != segmentation.read_bytes ||
       profile.of(Op::kWrite).bytes != segmentation.write_bytes)) {
    reasons->push_back(
        {.rule = 1,
         .text = fmt::format(
             "{} bytes read and {} written, where the trace has {} and {}",
             FormatCount(profile.of(Op::kRead).bytes), FormatCount(profile.of(Op::kWrite).bytes),
             FormatCount(segmentation.read_bytes), FormatCount(segmentation.write_bytes)),
         .run = {}});
  }
  add(run.outside, "records of the result belong to no record of the trace");
  add(run.incomplete, "records of the result lack a time");
  add(run.cut, "intervals lie so far out of order that they count in part only");
}

std::string Stolen(const proto::ReplayOutcome& outcome) {
  if (outcome.stolen_ns() <= 0) return "";
  return fmt::format("; the hypervisor took {} of CPU time meanwhile",
                     FormatDurationNs(outcome.stolen_ns()));
}

void CheckHostWait(const RunCosts& run, const proto::ReplayOutcome& outcome, Reasons* reasons) {
  const auto wait_ns = static_cast<double>(run.wait_ns);
  const auto host_ns = static_cast<double>(run.host_wait_ns);
  if (host_ns <= kHostWaitLimit * wait_ns) return;
  reasons->push_back(
      {.rule = 3,
       .text = fmt::format("the host was late: it adds {} to {} of waiting (limit 10 %){}",
                           FormatDurationNs(run.host_wait_ns), FormatDurationNs(run.wait_ns),
                           Stolen(outcome)),
       .run = {}});
}

void CheckLateness(const proto::ReplayOutcome& outcome, Reasons* reasons) {
  const std::string stolen = Stolen(outcome);
  // By nearest rank the 99.9th percentile is above the limit if more than n - ceil(0.999 n), which
  // is floor(n / 1000), are: their number is exact, the percentile shown is rounded up.
  if (outcome.late_100us() > outcome.timed_ios() / 1000) {
    reasons->push_back({.rule = 3,
                        .text = fmt::format("the host was late: p99.9 of lateness {} (limit {}){}",
                                            FormatDurationNs(std::max(outcome.lateness_p999_ns(),
                                                                      kLateP999LimitNs + 1)),
                                            FormatDurationNs(kLateP999LimitNs), stolen),
                        .run = {}});
  }
  if (static_cast<double>(outcome.late_1ms()) >
      kLateShareLimit * static_cast<double>(outcome.timed_ios())) {
    reasons->push_back(
        {.rule = 3,
         .text =
             fmt::format("the host was late: {} of {} I/Os by more than 1 ms (limit 0.1 %){}",
                         FormatCount(outcome.late_1ms()), FormatCount(outcome.timed_ios()), stolen),
         .run = {}});
  }
}

// At least this was taken out of each transfer's response.
int64_t TakenOutNs(const proto::ReplayOutcome& outcome) {
  std::optional<int64_t> least_ns;
  for (const proto::HostPart& part : outcome.host_parts()) {
    least_ns = std::min(least_ns.value_or(part.transfer_ns()), part.transfer_ns());
  }
  return least_ns.value_or(0);
}

void CheckOwnCost(const RunCosts& run, const proto::ReplayOutcome& outcome, Reasons* reasons) {
  const std::optional<int64_t> median_ns = run.profile.data.d2c.PercentileNs(kP50);
  if (outcome.has_null_engine_ns() && median_ns) {
    // As it was seen: what was taken out of it holds the replayer's cost, too.
    const int64_t seen_ns = *median_ns + TakenOutNs(outcome);
    const double share = static_cast<double>(outcome.null_engine_ns()) /
                         static_cast<double>(std::max<int64_t>(seen_ns, 1));
    if (share > kOwnCostLimit) {
      reasons->push_back(
          {.rule = 4,
           .text = fmt::format(
               "the replayer itself costs {} an I/O, {:.0f} % of the drive's median "
               "service time of {} (limit 5 %)",
               FormatDurationNs(outcome.null_engine_ns()), 100 * share, FormatDurationNs(seen_ns)),
           .run = {}});
    }
  }
  if (outcome.has_issuer_busy_max_share_ppm() &&
      outcome.issuer_busy_max_share_ppm() > kIssuerBusyLimitPpm) {
    reasons->push_back(
        {.rule = 4,
         .text = fmt::format("a core that issues was {:.0f} % busy in some second (limit 90 %)",
                             static_cast<double>(outcome.issuer_busy_max_share_ppm()) / 1e4),
         .run = {}});
  }
}

// "nvme, 16.0 GT/s PCIe x4". A link that was trained anew may be a slower one.
std::string LinkOf(const proto::Device& target) {
  std::string link = target.transport();
  if (!target.link_speed().empty()) link += ", " + target.link_speed();
  if (target.link_width() > 0) link += fmt::format(" x{}", target.link_width());
  return link;
}

}  // namespace

Reasons WhyTraceInvalid(const Profile& recording, bool loss_accepted) {
  Reasons reasons;
  if (loss_accepted) return reasons;
  if (recording.lost_events > 0 || recording.losses_uncountable) {
    const std::string count = FormatCount(recording.lost_events);
    reasons.push_back({.rule = 2,
                       .text = "the recording lost " +
                               (!recording.losses_uncountable ? count
                                : recording.lost_events == 0  ? std::string("an unknown number of")
                                                              : "at least " + count) +
                               (count == "1" ? " event" : " events"),
                       .run = {}});
  }
  if (!recording.finished_cleanly) {
    reasons.push_back({.rule = 2,
                       .text = "the recording was not finished cleanly, its end is missing",
                       .run = {}});
  }
  return reasons;
}

Reasons WhyRunInvalid(const Segmentation& segmentation, const RunCosts& run, RunKind kind) {
  Reasons reasons;
  if (!run.profile.summary || !run.profile.summary->has_replay()) {
    return {{.rule = 1,
             .text = "the result of the run is cut, it does not say how the run went",
             .run = {}}};
  }
  if (run.profile.DataMissing())
    reasons.push_back({.rule = 1, .text = "the result of the run is damaged", .run = {}});
  const proto::ReplayOutcome& outcome = run.profile.summary->replay();
  CheckWork(segmentation, run, outcome, &reasons);
  if (kind == RunKind::kOpen) CheckLateness(outcome, &reasons);
  if (kind == RunKind::kClosed) CheckHostWait(run, outcome, &reasons);
  CheckOwnCost(run, outcome, &reasons);
  if (outcome.foreign_sectors() > 0) {
    reasons.push_back({.rule = 5,
                       .text = fmt::format("someone else moved {} on the target",
                                           FormatBytes(outcome.foreign_sectors() * kSectorBytes)),
                       .run = {}});
  }
  return reasons;
}

bool SpoiledFromOutside(const Reasons& reasons) {
  return std::all_of(reasons.begin(), reasons.end(), [](const InvalidReason& reason) {
    return reason.rule == 3 || reason.rule == 5;
  });
}

Reasons WhyTargetsDiffer(const proto::Header& manifest, const proto::Header& run) {
  Reasons reasons;
  if (const std::string &was = manifest.replay().engine(), &is = run.replay().engine(); was != is) {
    reasons.push_back(
        {.rule = 6, .text = fmt::format("the engine changed from {} to {}", was, is), .run = {}});
  }
  const auto& before = manifest.replay().targets();
  const auto& after = run.replay().targets();
  if (before.size() != after.size()) {
    reasons.push_back({.rule = 6, .text = "the number of targets changed", .run = {}});
    return reasons;
  }
  for (int i = 0; i < before.size(); ++i) {
    const auto differ = [&](std::string_view what, const std::string& was, const std::string& is) {
      if (was == is) return;
      reasons.push_back({.rule = 6,
                         .text = fmt::format("the {} of {} changed from \"{}\" to \"{}\"", what,
                                             before[i].path(), was, is),
                         .run = {}});
    };
    differ("scheduler", before[i].scheduler(), after[i].scheduler());
    differ("write cache", before[i].write_cache(), after[i].write_cache());
    differ("drive's own write cache", before[i].drive_write_cache(), after[i].drive_write_cache());
    differ("link", LinkOf(before[i]), LinkOf(after[i]));
    differ("firmware", before[i].firmware(), after[i].firmware());
    differ("serial number", before[i].serial(), after[i].serial());
  }
  return reasons;
}

}  // namespace blktape
