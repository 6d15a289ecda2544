#include "cli/replay_report.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "analysis/validity.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "format/io_record.h"
#include "replay/plan/timing_rule.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/target_notes.h"

namespace blktape {
namespace {

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

std::string Celsius(int64_t thousandths) {
  return fmt::format("{:.0f} C", static_cast<double>(thousandths) / 1e3);
}

// "8.0 GT/s PCIe x2 (of 16.0 GT/s PCIe x4)"; empty where nobody tells.
std::string LinkText(const proto::Device& device) {
  if (device.link_speed().empty()) return "";
  const auto lanes = [](bool known, uint32_t width) {
    return known ? fmt::format(" x{}", width) : std::string();
  };
  const std::string now = device.link_speed() + lanes(device.has_link_width(), device.link_width());
  const std::string most =
      device.link_speed_max() + lanes(device.has_link_width_max(), device.link_width_max());
  return most.empty() || most == now ? now : now + " (of " + most + ")";
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
std::string Warnings(const proto::ReplayPlan& plan, const proto::ReplayOutcome& outcome,
                     bool reads) {
  std::string lines;
  const auto warn = [&lines](const std::string& text) { lines += WrappedLine("note", text); };
  for (const std::string& note : TargetNotes(plan.targets(), plan.state(), reads)) warn(note);
  for (const proto::DriveCondition& one : outcome.conditions()) {
    if (one.throttles() > 0 || one.throttled_s() > 0) {
      warn(fmt::format("the drive throttled because of its temperature: {}, {} s",
                       FormatCounted(one.throttles(), "time"), FormatCount(one.throttled_s())));
    } else if (one.temperature_limit() > 0 && one.temperature_after() >= one.temperature_limit()) {
      warn(fmt::format("the drive is too hot: {}, and its limit is {}",
                       Celsius(one.temperature_after()), Celsius(one.temperature_limit())));
    }
  }
  if (outcome.cpu_throttles() > 0) {
    warn("CPUs were throttled because of their temperature " +
         FormatCounted(outcome.cpu_throttles(), "time"));
  }
  if (outcome.stopped_early()) warn("stopped early: " + outcome.stop_reason());
  for (const auto& [error, count] : outcome.errors_by_errno()) {
    warn(FormatCounted(count, "I/O") + " failed: " + std::strerror(error));
  }
  if (outcome.short_transfers() > 0) {
    warn(FormatCounted(outcome.short_transfers(), "I/O") + " transferred less than requested");
  }
  if (outcome.verify_mismatches() > 0) {
    warn(FormatCounted(outcome.verify_mismatches(), "sector") +
         " did not contain the data written last; first: " + outcome.first_mismatch());
  }
  if (outcome.foreign_sectors() > 0) {
    warn(fmt::format("other programs read or wrote {} on the target during the run",
                     FormatBytes(outcome.foreign_sectors() * kSectorBytes)));
  }
  for (const std::string& one : outcome.settings_not_restored()) {
    warn("queue setting not restored: " + one);
  }
  if (outcome.punted() > 0) {
    warn("handed to a kernel worker: " + FormatCounted(outcome.punted(), "I/O"));
  }
  if (outcome.issuer_busy_max_share_ppm() > kIssuerBusyLimitPpm) {
    warn(
        fmt::format("an issuing thread was {:.0f} % busy in some second, and may have been the "
                    "limit; timed, or at a queue depth, --threads N issues from several threads",
                    static_cast<double>(outcome.issuer_busy_max_share_ppm()) / 1e4));
  }
  if (outcome.issued_by_reserve() > 0) {
    warn("issued by the thread in reserve, as the first was held up: " +
         FormatCounted(outcome.issued_by_reserve(), "I/O"));
  }
  if (const uint64_t stalled = outcome.stalled_submissions(); stalled > 0) {
    warn(fmt::format("the submission of {} took over 100 us, because of the host or the drive",
                     FormatCounted(stalled, "I/O")));
  }
  if (const uint64_t stalled = outcome.stalled_completions(); stalled > 0) {
    warn(
        fmt::format("the host stalled while {} {} in flight: only the time until its last check "
                    "before the stall counts as service time",
                    FormatCounted(stalled, "I/O"), stalled == 1 ? "was" : "were"));
  }
  if (outcome.done_within_call() > 0) {
    warn(
        "the driver executes requests within the submitting call; meanwhile the thread cannot "
        "issue others, which counts as the drive's backlog");
  }
  if (outcome.overlaps_ordered() > 0) {
    warn(FormatCounted(outcome.overlaps_ordered(), "I/O") +
         " waited for a conflicting one in flight");
  }
  if (outcome.ungated() > 0) {
    warn(FormatCounted(outcome.ungated(), "I/O") +
         " could not be waited for: without a recorded completion, or too many at once");
  }
  return lines;
}

Json Counts(const google::protobuf::Map<std::string, uint64_t>& counts) {
  Json json = Json::object();
  for (const auto& [what, count] : counts) json[what] = count;
  return json;
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json LinkJson(const proto::Device& device) {
  const auto width = [](bool known, uint32_t lanes) { return known ? Json(lanes) : Json(nullptr); };
  return {{"speed", TextOrNull(device.link_speed())},
          {"width", width(device.has_link_width(), device.link_width())},
          {"speed_max", TextOrNull(device.link_speed_max())},
          {"width_max", width(device.has_link_width_max(), device.link_width_max())}};
}

Json ConditionsJson(const proto::ReplayOutcome& outcome) {
  const auto celsius = [](bool known, int64_t thousandths) {
    return known ? Json(static_cast<double>(thousandths) / 1e3) : Json(nullptr);
  };
  const auto count = [](bool known, uint64_t value) { return known ? Json(value) : Json(nullptr); };
  Json conditions = Json::array();
  for (const proto::DriveCondition& one : outcome.conditions()) {
    conditions.push_back(
        {{"target", one.target()},
         {"celsius_before", celsius(one.has_temperature_before(), one.temperature_before())},
         {"celsius_after", celsius(one.has_temperature_after(), one.temperature_after())},
         {"celsius_limit", celsius(one.has_temperature_limit(), one.temperature_limit())},
         {"throttles", count(one.has_throttles(), one.throttles())},
         {"throttled_s", count(one.has_throttled_s(), one.throttled_s())}});
  }
  return conditions;
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
    if (const std::string link = LinkText(target); !link.empty()) text += Line("link", link);
  }
  for (const proto::DriveCondition& one : outcome.conditions()) {
    if (!one.has_temperature_before() || !one.has_temperature_after()) continue;
    text +=
        Line("temperature", fmt::format("{} before, {} after", Celsius(one.temperature_before()),
                                        Celsius(one.temperature_after())));
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
  for (const proto::HostPart& part : outcome.host_parts()) {
    const auto costs = [](int64_t at_once_ns, const char* of, int64_t after_pause_ns) {
      return fmt::format("{} a {}, {} after a pause", FormatDurationNs(at_once_ns), of,
                         FormatDurationNs(after_pause_ns));
    };
    text += Line("host's part",
                 costs(part.transfer_ns(), "transfer", part.transfer_after_pause_ns()) + ";");
    text += Line("", costs(part.flush_ns(), "flush", part.flush_after_pause_ns()) +
                         ": measured before, taken out");
  }
  const uint64_t bytes = profile.of(Op::kRead).bytes + profile.of(Op::kWrite).bytes;
  text +=
      Line("I/Os", fmt::format("{} planned, {} issued, {} completed, {} failed",
                               FormatCount(outcome.planned()), FormatCount(outcome.issued()),
                               FormatCount(outcome.completed()), FormatCount(outcome.errors())));
  text += CountLines("left out", outcome.skipped());
  if (outcome.commits().recorded() > 0) {
    text += Line("commits", fmt::format("{} recorded, {} written here, as threads shared them",
                                        FormatCount(outcome.commits().recorded()),
                                        FormatCount(outcome.commits().written())));
  }
  text += CountLines("emulated", outcome.emulated());
  if (outcome.remapped() > 0) {
    text += Line("remapped", FormatCounted(outcome.remapped(), "I/O") + " (" + plan.remap() + ")");
  }
  text += Line("time",
               fmt::format("{} overall, the drive busy for {}{}",
                           FormatDurationNs(outcome.wall_ns()), FormatDurationNs(profile.busy_ns),
                           outcome.idle_cut_ns() > 0
                               ? ", idle cut by " + FormatDurationNs(outcome.idle_cut_ns())
                               : ""));
  text += Line("wait", fmt::format("{}, in which software waited for reads, sync writes or flushes",
                                   FormatDurationNs(profile.wait_ns)));
  text += WrappedLine(
      "data", fmt::format("{} read, {} written; {} overall, {} while busy",
                          FormatBytes(profile.of(Op::kRead).bytes),
                          FormatBytes(profile.of(Op::kWrite).bytes), Rate(bytes, outcome.wall_ns()),
                          Rate(bytes, profile.busy_ns)));
  if (outcome.has_verified_sectors()) {
    text += Line("verified",
                 fmt::format("{}, {} wrong", FormatCounted(outcome.verified_sectors(), "sector"),
                             FormatCount(outcome.verify_mismatches())));
  }
  if (outcome.cpu_ns() > 0 && outcome.completed() > 0) {
    text += Line("cpu", fmt::format("{} per I/O",
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
  text += Warnings(plan, outcome, profile.of(Op::kRead).ios > 0);
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
      text_of_wake_up = ", about " + FormatDurationNs(outcome.wake_up_p50_ns()) + " (median)";
    }
    text += Wrapped("", "",
                    fmt::format("The service time of {} of {} I/Os includes a wake-up of the "
                                "issuing thread{}; the other completions were found by polling.",
                                FormatCount(outcome.woken_completions()),
                                FormatCount(outcome.completed()), text_of_wake_up));
  }
  return text;
}

Json ReplayJson(const Profile& profile, const proto::ReplayOutcome& outcome) {
  const proto::ReplayPlan& plan = profile.header.replay();
  Json targets = Json::array();
  for (const proto::Device& device : plan.targets()) {
    targets.push_back(
        {{"name", device.name()},
         {"path", device.path()},
         {"model", device.model()},
         {"serial", device.serial()},
         {"firmware", device.firmware()},
         {"size_bytes", device.size_bytes()},
         {"logical_block_bytes", device.logical_block_bytes()},
         {"link", LinkJson(device)},
         {"write_cache", TextOrNull(device.write_cache())},
         {"drive_write_cache", TextOrNull(device.drive_write_cache())},
         {"unwritten_bytes",
          device.has_unwritten_bytes() ? Json(device.unwritten_bytes()) : Json(nullptr)}});
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
               {"commits", CommitsJson(outcome)},
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
  json["conditions"] = ConditionsJson(outcome);
  json["cpu_throttles"] =
      outcome.has_cpu_throttles() ? Json(outcome.cpu_throttles()) : Json(nullptr);
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
  json["host_parts"] = HostPartsJson(outcome);
  return json;
}

std::string PreviewText(const ReplayPreview& preview) {
  std::string text = WrappedLine("would run", preview.rule);
  for (const proto::Device& target : preview.targets) {
    text += WrappedLine("on", DescribeTarget(target));
    if (const std::string link = LinkText(target); !link.empty()) text += Line("link", link);
    if (const std::string note = LostFlushesNote(target); !note.empty()) {
      text += WrappedLine("note", note);
    }
  }
  for (const std::string& one : preview.shared) text += WrappedLine("shared", one);
  for (const std::string& setting : preview.settings) {
    text += Line("setting", setting + " while it runs");
  }
  text += CountLines("I/Os", preview.planned_by_op);
  text += Line("data", FormatBytes(preview.planned_bytes));
  text += CountLines("left out", preview.skipped);
  text += CountLines("emulated", preview.emulated);
  if (preview.remapped > 0) text += Line("remapped", FormatCounted(preview.remapped, "I/O"));
  if (preview.widened > 0) text += Line("widened", FormatCounted(preview.widened, "I/O"));
  if (preview.duration_ns > 0) text += Line("takes", FormatDurationNs(preview.duration_ns));
  if (preview.idle_cut_ns > 0) text += Line("idle cut", FormatDurationNs(preview.idle_cut_ns));
  return text + "nothing was written\n";
}

std::string ExpectedTimeText(const ReplayOptions& options, const ReplayPreview& preview) {
  if (options.engine == "simulated") return "";
  const std::optional<int64_t>& limit_ns = options.duration_ns;
  if (!preview.recorded_ns) {
    if (limit_ns && options.loops == 0) return "takes " + FormatDurationNs(*limit_ns);
    if (limit_ns) return "takes at most " + FormatDurationNs(*limit_ns);
    return options.loops == 0 ? "runs until it is stopped"
                              : "how long it takes is not known: the trace does not tell";
  }
  const bool thinks = IsPunctual(options.rule) || options.keep_think_time;
  const double speed = thinks ? options.speed : 1;
  const auto ns = static_cast<int64_t>(static_cast<double>(*preview.recorded_ns) / speed);
  if (limit_ns && *limit_ns < ns) {
    const bool whole = options.rule == TimingRule::kTimed && !options.idle_cap_ns;
    return (whole ? "takes " : "takes at most ") + FormatDurationNs(*limit_ns);
  }
  const std::string time = FormatDurationNs(ns);
  const std::string basis =
      fmt::format("the recording{}{}", speed == 1 ? "" : fmt::format(" at x{:g}", speed),
                  options.idle_cap_ns ? ", less idle time" : "");
  const std::string drive = " on a drive as fast as the recorded one (" + basis + ")";
  switch (options.rule) {
    case TimingRule::kTimed:
      return (options.idle_cap_ns ? "takes at most " : "takes ") + time + " (" + basis + ")";
    case TimingRule::kClosed:
      return (options.idle_cap_ns ? "takes at most some " : "takes some ") + time + drive;
    case TimingRule::kMaxOrder:
      return (thinks ? "takes some " : "takes at most ") + time + drive;
    case TimingRule::kQueueDepth:
      return "takes as long as the drive needs; the recording took " + time;
  }
  return "";
}

std::string ProgressText(const ReplayProgress& now, const ReplayProgress& before) {
  const int64_t interval_ns = now.elapsed_ns - before.elapsed_ns;
  const std::string left = now.fraction > 0.001
                               ? Clock(static_cast<int64_t>(static_cast<double>(now.elapsed_ns) *
                                                            (1 - now.fraction) / now.fraction))
                               : "?";
  return fmt::format("{:3.0f} %  {} left {}  {} IOPS  {}  depth {}  late {}{}", now.fraction * 100,
                     Clock(now.elapsed_ns), left,
                     FormatNumber(PerSecond(now.completed - before.completed, interval_ns)),
                     Rate(now.bytes - before.bytes, interval_ns), now.in_flight,
                     FormatDurationNs(now.lateness_max_ns),
                     now.errors > 0 ? "  " + FormatCounted(now.errors, "error") : "");
}

}  // namespace blktape
