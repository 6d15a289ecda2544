#include "cli/replay_report.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "analysis/validity.h"
#include "base/quantity.h"
#include "base/units.h"
#include "format/io_record.h"
#include "report/report_json.h"
#include "report/report_text.h"

namespace blktape {
namespace {

using Json = nlohmann::ordered_json;

std::string Clock(int64_t ns) {
  const int64_t seconds = ns / kNanosPerSecond;
  if (seconds >= 3600) {
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

double PerSecond(uint64_t count, int64_t ns) {
  return ns <= 0 ? 0 : static_cast<double>(count) / static_cast<double>(ns) * 1e9;
}

std::string Rate(uint64_t bytes, int64_t ns) {
  return FormatBytes(static_cast<uint64_t>(PerSecond(bytes, ns))) + "/s";
}

std::string Line(const std::string& label, const std::string& text) {
  return fmt::format("{:<12}{}\n", label, text);
}

// The same, broken between words where it is too long.
std::string WrappedLine(const std::string& label, const std::string& text) {
  return Wrapped(fmt::format("{:<12}", label), std::string(12, ' '), text);
}

template <typename Map>
std::string CountLines(const std::string& label, const Map& counts) {
  std::string lines;
  for (const auto& [what, count] : counts) {
    lines += Line(lines.empty() ? label : "", FormatCount(count) + " " + what);
  }
  return lines;
}

// What a reader must know before believing the figures.
std::string Warnings(const proto::ReplayOutcome& outcome) {
  std::string lines;
  const auto warn = [&lines](const std::string& text) { lines += WrappedLine("note", text); };
  if (outcome.stopped_early()) warn("stopped early: " + outcome.stop_reason());
  for (const auto& [error, count] : outcome.errors_by_errno()) {
    warn(fmt::format("{} I/Os failed: {}", FormatCount(count), std::strerror(error)));
  }
  if (outcome.short_transfers() > 0) {
    warn(FormatCount(outcome.short_transfers()) + " I/Os moved less than asked for");
  }
  if (outcome.verify_mismatches() > 0) {
    warn(FormatCount(outcome.verify_mismatches()) +
         " sectors did not hold what was written last; first: " + outcome.first_mismatch());
  }
  if (outcome.foreign_sectors() > 0) {
    warn(fmt::format("somebody else moved {} on the target meanwhile",
                     FormatBytes(outcome.foreign_sectors() * kSectorBytes)));
  }
  for (const std::string& one : outcome.settings_not_restored()) {
    warn("queue setting not restored: " + one);
  }
  if (outcome.punted() > 0) {
    warn(FormatCount(outcome.punted()) + " I/Os were handed to a kernel worker");
  }
  if (outcome.issuer_busy_max_share_ppm() > kIssuerBusyLimitPpm) {
    warn(
        fmt::format("a thread that issues was {:.0f} % busy in some second, and may have been the "
                    "limit; timed, or at a queue depth, --threads N issues from several",
                    static_cast<double>(outcome.issuer_busy_max_share_ppm()) / 1e4));
  }
  if (outcome.issued_by_reserve() > 0) {
    warn(FormatCount(outcome.issued_by_reserve()) +
         " I/Os were issued by the thread in reserve, as the first was held up");
  }
  if (const uint64_t stalled = outcome.stalled_submissions(); stalled > 0) {
    warn(fmt::format("the submission of {} {} took over 100 us, by the host or the drive",
                     FormatCount(stalled), stalled == 1 ? "I/O" : "I/Os"));
  }
  if (const uint64_t stalled = outcome.stalled_completions(); stalled > 0) {
    warn(
        fmt::format("the host stopped while {} {} out: counted as service time is what is "
                    "certain, until it last looked before the stop",
                    FormatCount(stalled), stalled == 1 ? "I/O was" : "I/Os were"));
  }
  if (outcome.done_within_call() > 0) {
    warn(
        "the driver works within the call that submits: while it does, the thread can issue "
        "nothing else, which counts as the drive's backlog");
  }
  if (outcome.overlaps_ordered() > 0) {
    warn(FormatCount(outcome.overlaps_ordered()) + " I/Os waited for a conflicting one in flight");
  }
  if (outcome.ungated() > 0) {
    warn(FormatCount(outcome.ungated()) +
         " I/Os gated nothing: without a recorded completion, or too many at once");
  }
  return lines;
}

Json Counts(const google::protobuf::Map<std::string, uint64_t>& counts) {
  Json json = Json::object();
  for (const auto& [what, count] : counts) json[what] = count;
  return json;
}

}  // namespace

std::string DescribeTarget(const proto::Device& device) {
  std::string text = device.model().empty() ? device.name() : device.model();
  if (!device.serial().empty()) text += ", serial " + device.serial();
  text += ", " + FormatBytes(device.size_bytes());
  if (!device.path().empty()) text += ", " + device.path();
  if (device.is_file()) text += " (a file)";
  return text;
}

std::string ReplayText(const Profile& profile, const proto::ReplayOutcome& outcome) {
  const proto::ReplayPlan& plan = profile.header.replay();
  std::string text = WrappedLine("replayed", plan.trace_name() + ", " + plan.rule());
  for (const proto::Device& target : plan.targets()) {
    text += WrappedLine("on", DescribeTarget(target));
  }
  for (const std::string& setting : plan.settings_changed())
    text += WrappedLine("setting", setting);
  text += WrappedLine("engine", plan.engine() + ": " + plan.engine_mode());
  if (outcome.host_granted_size() > 0) {
    std::string granted;
    for (const std::string& one : outcome.host_granted()) {
      granted += (granted.empty() ? "" : ", ") + one;
    }
    text += WrappedLine("host", granted);
  }
  const uint64_t bytes = profile.of(Op::kRead).bytes + profile.of(Op::kWrite).bytes;
  text +=
      Line("I/Os", fmt::format("{} planned, {} issued, {} completed, {} failed",
                               FormatCount(outcome.planned()), FormatCount(outcome.issued()),
                               FormatCount(outcome.completed()), FormatCount(outcome.errors())));
  text += CountLines("left out", outcome.skipped());
  text += CountLines("emulated", outcome.emulated());
  if (outcome.remapped() > 0) {
    text += Line("remapped", FormatCount(outcome.remapped()) + " I/Os (" + plan.remap() + ")");
  }
  text += Line(
      "time", fmt::format("{} in all, the drive busy for {}{}", FormatDurationNs(outcome.wall_ns()),
                          FormatDurationNs(profile.busy_ns),
                          outcome.idle_cut_ns() > 0
                              ? ", idle cut by " + FormatDurationNs(outcome.idle_cut_ns())
                              : ""));
  text += Line("wait", fmt::format("{}, in which software waited for reads, sync writes or flushes",
                                   FormatDurationNs(profile.wait_ns)));
  text += WrappedLine(
      "data", fmt::format("{} read, {} written; {} in all, {} while busy",
                          FormatBytes(profile.of(Op::kRead).bytes),
                          FormatBytes(profile.of(Op::kWrite).bytes), Rate(bytes, outcome.wall_ns()),
                          Rate(bytes, profile.busy_ns)));
  if (outcome.has_verified_sectors()) {
    text += Line("verified",
                 fmt::format("{} sectors, {} wrong", FormatCount(outcome.verified_sectors()),
                             FormatCount(outcome.verify_mismatches())));
  }
  if (outcome.cpu_ns() > 0 && outcome.completed() > 0) {
    text += Line("cpu", fmt::format("{} an I/O",
                                    FormatDurationNs(outcome.cpu_ns() /
                                                     static_cast<int64_t>(outcome.completed()))));
  }
  if (outcome.stolen_ns() > 0) {
    text +=
        Line("stolen", FormatDurationNs(outcome.stolen_ns()) + " of CPU time by the hypervisor");
  }
  for (const std::string& one : plan.shared()) {
    text += WrappedLine("shared", one + ": their I/Os go to the same addresses");
  }
  text += Warnings(outcome);
  text += "\n" + LatencyHeading("");
  text += LatencyRow("lateness", profile.lateness.host);
  if (profile.lateness.backlog.count() > 0) {
    text += LatencyRow("backlog", profile.lateness.backlog);
  }
  text += LatencyRow("service", profile.data.d2c);
  text += LatencyRow("response", profile.data.q2c);
  if (outcome.woken_completions() > 0) {
    std::string text_of_wake_up;
    if (outcome.has_wake_up_p50_ns()) {
      text_of_wake_up = ", some " + FormatDurationNs(outcome.wake_up_p50_ns()) + " (median)";
    }
    text += Wrapped("", "",
                    fmt::format("The service time of {} of {} I/Os includes a wake-up of the "
                                "issuing thread{}; the others were polled for.",
                                FormatCount(outcome.woken_completions()),
                                FormatCount(outcome.completed()), text_of_wake_up));
  }
  return text;
}

Json ReplayJson(const Profile& profile, const proto::ReplayOutcome& outcome) {
  const proto::ReplayPlan& plan = profile.header.replay();
  Json targets = Json::array();
  for (const proto::Device& device : plan.targets()) {
    targets.push_back({{"name", device.name()},
                       {"path", device.path()},
                       {"model", device.model()},
                       {"serial", device.serial()},
                       {"firmware", device.firmware()},
                       {"size_bytes", device.size_bytes()},
                       {"logical_block_bytes", device.logical_block_bytes()}});
  }
  Json by_errno = Json::object();
  for (const auto& [error, count] : outcome.errors_by_errno()) {
    by_errno[std::to_string(error)] = count;
  }
  Json json = {{"trace", plan.trace_name()},
               {"trace_hash", plan.trace_sha256()},
               {"rule", plan.rule()},
               {"engine", plan.engine()},
               {"engine_mode", plan.engine_mode()},
               {"targets", targets},
               {"payload", plan.payload()},
               {"state", plan.state()},
               {"planned", outcome.planned()},
               {"issued", outcome.issued()},
               {"completed", outcome.completed()},
               {"errors", outcome.errors()},
               {"errors_by_errno", by_errno},
               {"short_transfers", outcome.short_transfers()},
               {"skipped", Counts(outcome.skipped())},
               {"emulated", Counts(outcome.emulated())},
               {"remapped", outcome.remapped()},
               {"widened", outcome.widened()},
               {"stopped_early", outcome.stopped_early()},
               {"stop_reason", outcome.stop_reason()},
               {"lateness_ns", LatencyJson(profile.lateness.host)},
               {"backlog_ns", LatencyJson(profile.lateness.backlog)},
               {"d2c_ns", LatencyJson(profile.data.d2c)},
               {"q2c_ns", LatencyJson(profile.data.q2c)},
               {"busy_ns", profile.busy_ns},
               {"wait_ns", profile.wait_ns},
               {"wall_ns", outcome.wall_ns()},
               {"idle_cut_ns", outcome.idle_cut_ns()},
               {"read_bytes", profile.of(Op::kRead).bytes},
               {"write_bytes", profile.of(Op::kWrite).bytes},
               {"queue_depth", {{"mean", profile.depth.mean}, {"max", profile.depth.max}}}};
  json["late"] = {{"ios", outcome.timed_ios()},
                  {"over_100us", outcome.late_100us()},
                  {"over_1ms", outcome.late_1ms()},
                  {"p999_ns", outcome.has_lateness_p999_ns() ? Json(outcome.lateness_p999_ns())
                                                             : Json(nullptr)}};
  json["overlaps_ordered"] = outcome.overlaps_ordered();
  json["issued_by_reserve"] =
      outcome.has_issued_by_reserve() ? Json(outcome.issued_by_reserve()) : Json(nullptr);
  json["stalled_submissions"] = outcome.stalled_submissions();
  const auto quantile = [](bool known, int64_t ns) { return known ? Json(ns) : Json(nullptr); };
  json["completions"] = {
      {"stalled", outcome.stalled_completions()},
      {"within_call", outcome.done_within_call()},
      {"woken", outcome.woken_completions()},
      {"wake_up_ns",
       {{"count", outcome.wake_ups()},
        {"p50", quantile(outcome.has_wake_up_p50_ns(), outcome.wake_up_p50_ns())},
        {"p99", quantile(outcome.has_wake_up_p99_ns(), outcome.wake_up_p99_ns())}}}};
  json["ungated"] = outcome.ungated();
  json["punted"] = outcome.punted();
  json["cpu_ns"] = outcome.cpu_ns();
  json["stolen_ns"] = outcome.has_stolen_ns() ? Json(outcome.stolen_ns()) : Json(nullptr);
  json["null_engine_ns"] =
      outcome.has_null_engine_ns() ? Json(outcome.null_engine_ns()) : Json(nullptr);
  json["issuer_busy_max_share"] =
      outcome.has_issuer_busy_max_share_ppm()
          ? Json(static_cast<double>(outcome.issuer_busy_max_share_ppm()) / 1e6)
          : Json(nullptr);
  json["foreign_sectors"] =
      outcome.has_foreign_sectors() ? Json(outcome.foreign_sectors()) : Json(nullptr);
  json["verified_sectors"] =
      outcome.has_verified_sectors() ? Json(outcome.verified_sectors()) : Json(nullptr);
  json["verify_mismatches"] =
      outcome.has_verify_mismatches() ? Json(outcome.verify_mismatches()) : Json(nullptr);
  json["first_mismatch"] =
      outcome.verify_mismatches() > 0 ? Json(outcome.first_mismatch()) : Json(nullptr);
  json["shared"] = plan.shared();
  json["settings_changed"] = plan.settings_changed();
  json["settings_not_restored"] = outcome.settings_not_restored();
  Json granted = Json::array();
  for (const std::string& one : outcome.host_granted()) granted.push_back(one);
  json["host"] = granted;
  return json;
}

std::string PreviewText(const ReplayPreview& preview) {
  std::string text = WrappedLine("would run", preview.rule);
  for (const proto::Device& target : preview.targets) {
    text += WrappedLine("on", DescribeTarget(target));
  }
  for (const std::string& one : preview.shared) text += WrappedLine("shared", one);
  for (const std::string& setting : preview.settings) {
    text += Line("setting", setting + " while it runs");
  }
  text += CountLines("I/Os", preview.planned_by_op);
  text += Line("data", FormatBytes(preview.planned_bytes));
  text += CountLines("left out", preview.skipped);
  text += CountLines("emulated", preview.emulated);
  if (preview.remapped > 0) text += Line("remapped", FormatCount(preview.remapped) + " I/Os");
  if (preview.widened > 0) text += Line("widened", FormatCount(preview.widened) + " I/Os");
  if (preview.duration_ns > 0) text += Line("takes", FormatDurationNs(preview.duration_ns));
  if (preview.idle_cut_ns > 0) text += Line("idle cut", FormatDurationNs(preview.idle_cut_ns));
  return text + "nothing was written\n";
}

std::string ProgressText(const ReplayProgress& now, const ReplayProgress& before) {
  const int64_t interval_ns = now.elapsed_ns - before.elapsed_ns;
  const std::string left = now.fraction > 0.001
                               ? Clock(static_cast<int64_t>(static_cast<double>(now.elapsed_ns) *
                                                            (1 - now.fraction) / now.fraction))
                               : "?";
  return fmt::format("{:3.0f} %  {} left {}  {:.0f} IOPS  {}  depth {}  late {}{}",
                     now.fraction * 100, Clock(now.elapsed_ns), left,
                     PerSecond(now.completed - before.completed, interval_ns),
                     Rate(now.bytes - before.bytes, interval_ns), now.in_flight,
                     FormatDurationNs(now.lateness_max_ns),
                     now.errors > 0 ? fmt::format("  {} errors", now.errors) : "");
}

}  // namespace blktape
