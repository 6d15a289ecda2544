#include "cli/info_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cctype>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "base/quantity.h"
#include "base/saturating.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "base/utf8.h"
#include "format/io_record.h"

namespace blktape {
namespace {

// Seconds east of Greenwich of "+02:00"; 0 if it is not of that form.
int64_t ZoneSeconds(std::string_view zone) {
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return 0;
  const auto two_digits = [zone](size_t at) {
    return (zone[at] - '0') * 10 + (zone[at + 1] - '0');
  };
  const int64_t seconds = two_digits(1) * 3600 + two_digits(4) * 60;
  return zone[0] == '-' ? -seconds : seconds;
}

std::string WallTime(int64_t wall_ns, const std::string& zone) {
  const std::time_t local = wall_ns / kNanosPerSecond + ZoneSeconds(zone);
  std::tm parts{};
  if (gmtime_r(&local, &parts) == nullptr) return "an impossible date";
  return fmt::format("{:%Y-%m-%d %H:%M:%S} {}", parts, zone.empty() ? "UTC" : zone);
}

std::string Condition(const TraceInfo& info) {
  if (info.being_written) return "STILL BEING RECORDED; this is what has reached the disk so far";
  if (!info.summary) return "NOT FINISHED: its recorder died, or the end is cut off";
  if (info.lost_events > 0) return "finished, but DATA IS MISSING";
  if (info.damaged) return "finished and no I/O missing, but THE FILE IS DAMAGED";
  if (!info.losses.empty()) return "finished; what is not in it is listed below";
  return "whole, nothing lost";
}

class InfoWriter {
 public:
  InfoWriter(const TraceInfo& info, size_t columns) : info_(info), columns_(columns) {}

  std::string Text() {
    Add("trace", Printable(info_.name));
    Add("state", Condition(info_));
    if (!info_.summary && !info_.being_written && info_.name.ends_with(".partial")) {
      Add("", "try:  blktape recover " + Printable(info_.name));
    }
    if (info_.summary && info_.lost_events == 0 && info_.damaged) {
      Add("", "try:  blktape recover " + Printable(info_.name) + " -o FILE");
    }
    if (info_.summary && info_.summary->recovered()) Add("", "recovered from an unfinished one");
    Origin();
    Size();
    for (const proto::Device& device : info_.header.devices()) Device("device", device);
    Operations();
    Losses();
    Marks();
    if (info_.header.has_replay()) Replay();
    return text_;
  }

 private:
  static std::string Printable(std::string_view text) { return ToPrintable(text); }

  // A line "label  value", wrapped at spaces.
  void Add(std::string_view label, std::string_view value) {
    constexpr size_t kLabelColumns = 12;
    text_ += Wrapped(fmt::format("{:<{}}", label, kLabelColumns), std::string(kLabelColumns, ' '),
                     value, columns_);
  }

  void AddIf(std::string_view label, const std::string& value) {
    if (!value.empty()) Add(label, Printable(value));
  }

  void Origin() {
    const proto::Header& header = info_.header;
    Add("source", Printable(header.source() + ", written by blktape " + header.tool_version()));
    for (const std::string& file : header.imported_from()) Add("from file", Printable(file));
    AddIf("generator", header.generator());
    AddIf("host", header.host() + (header.kernel().empty() ? "" : ", kernel " + header.kernel()));
    AddIf("command", header.command());
    for (const std::string& filter : header.filters()) Add("left out", Printable(filter));
    if (const auto begin_ns = info_.begin_wall_ns()) {
      Add("began", Printable(WallTime(*begin_ns, header.timezone())));
    }
    if (const auto end_ns = info_.end_wall_ns()) {
      Add(info_.summary ? "ended" : "last known", Printable(WallTime(*end_ns, header.timezone())));
    }
    if (const auto duration_ns = info_.duration_ns()) {
      Add("lasted", FormatDurationNs(*duration_ns) + " from the first I/O to the last");
    }
  }

  void Size() {
    if (!info_.file_bytes) return;
    std::string value = FormatBytes(*info_.file_bytes);
    if (info_.records > 0) {
      value += ", " +
               FormatNumber(static_cast<double>(*info_.file_bytes) /
                            static_cast<double>(info_.records)) +
               " bytes per I/O";
    }
    Add("size", value);
  }

  void Device(std::string_view label, const proto::Device& device) {
    std::string value = device.name();
    if (device.major() != 0 || device.minor() != 0) {
      value += fmt::format(" ({}:{})", device.major(), device.minor());
    }
    if (!device.path().empty() && device.path() != device.name()) value += ", " + device.path();
    const auto word = [&value](const std::string& text) {
      if (!text.empty()) value += ", " + text;
    };
    word(device.model());
    if (!device.firmware().empty()) word("firmware " + device.firmware());
    if (!device.serial().empty()) word("serial " + device.serial());
    word(device.transport());
    if (device.has_size_bytes()) word(FormatBytes(device.size_bytes()));
    if (device.has_logical_block_bytes()) {
      word("blocks of " + FormatBytes(device.logical_block_bytes()) +
           (device.has_physical_block_bytes()
                ? " (physical " + FormatBytes(device.physical_block_bytes()) + ")"
                : ""));
    }
    if (device.has_rotational()) word(device.rotational() ? "rotational" : "not rotational");
    if (!device.scheduler().empty()) word("scheduler " + device.scheduler());
    word(device.write_cache());
    if (device.has_fua()) word(device.fua() ? "FUA" : "no FUA");
    if (device.has_discard_max_bytes()) {
      word(device.discard_max_bytes() == 0
               ? "no discard"
               : "discard up to " + FormatBytes(device.discard_max_bytes()));
    }
    if (device.has_hardware_queues()) {
      word(FormatCounted(device.hardware_queues(), "hardware queue"));
    }
    if (device.has_nr_requests()) word(FormatCounted(device.nr_requests(), "request"));
    if (device.has_read_ahead_kb()) word(fmt::format("read-ahead {} KiB", device.read_ahead_kb()));
    if (device.has_nomerges()) word(fmt::format("nomerges {}", device.nomerges()));
    if (device.has_max_sectors_kb()) word(fmt::format("max {} KiB", device.max_sectors_kb()));
    if (!device.zoned().empty() && device.zoned() != "none") word(device.zoned());
    Add(label, Printable(value));
  }

  void Operations() {
    Add("I/Os", FormatCount(info_.records));
    for (int op = 0; op < kOpCount; ++op) {
      if (info_.records_by_op[op] == 0) continue;
      std::string line = fmt::format("{:<14}{:>14}", OpName(static_cast<Op>(op)),
                                     FormatCount(info_.records_by_op[op]));
      if (info_.bytes_by_op[op] > 0) {
        line += fmt::format("  {:>10}", FormatBytes(info_.bytes_by_op[op]));
      }
      Add("", line);
    }
    if (!info_.summary) return;
    if (info_.summary->own_excluded() > 0) {
      Add("excluded", fmt::format("{} of the recorder itself ({})",
                                  FormatCounted(info_.summary->own_excluded(), "I/O"),
                                  FormatBytes(info_.summary->own_excluded_bytes())));
    }
    if (info_.summary->filtered() > 0) {
      Add("filtered", FormatCounted(info_.summary->filtered(), "I/O") + " by the rules above");
    }
  }

  void Losses() {
    std::string_view label = "losses";
    for (const std::string& line : info_.losses.Lines()) {
      Add(label, Printable(line));
      label = "";
    }
  }

  void Marks() {
    for (const proto::Mark& mark : info_.marks) {
      std::string what = proto::MarkKind_Name(mark.kind());
      for (char& c : what) c = c == '_' ? ' ' : static_cast<char>(std::tolower(c));
      if (mark.value_ns() != 0) what += " of " + FormatDurationNs(mark.value_ns());
      if (info_.header.has_start()) {
        what += ", " +
                FormatDurationNs(
                    SaturatingSubtract(mark.at_ns(), info_.header.start().monotonic_ns())) +
                " after the beginning";
      }
      if (!mark.detail().empty()) what += ": " + mark.detail();
      Add("mark", Printable(what));
    }
  }

  void Replay() {
    const proto::ReplayPlan& plan = info_.header.replay();
    Add("replay of", Printable(plan.trace_name()));
    AddIf("", plan.trace_sha256().empty() ? "" : "sha256 " + plan.trace_sha256());
    for (const proto::Device& target : plan.targets()) Device("target", target);
    Add("rule", Printable(plan.rule()));
    std::string engine = plan.engine();
    if (!plan.engine_mode().empty()) engine += " (" + plan.engine_mode() + ")";
    AddIf("engine", engine);
    if (!plan.state().empty()) {
      Add("drive state", Printable(fmt::format("{}, cycle {}", plan.state(), plan.cycle())));
    }
    for (const std::string& filter : plan.filters()) Add("left out", Printable(filter));
    for (const std::string& one : plan.shared()) Add("shared", Printable(one));
    for (const std::string& setting : plan.settings_changed()) Add("setting", Printable(setting));
    if (!info_.summary || !info_.summary->has_replay()) {
      Add("outcome", "not known: the replay was cut off");
      return;
    }
    const proto::ReplayOutcome& outcome = info_.summary->replay();
    Add("outcome", fmt::format("planned {}, issued {}, completed {}, errors {}",
                               FormatCount(outcome.planned()), FormatCount(outcome.issued()),
                               FormatCount(outcome.completed()), FormatCount(outcome.errors())));
    if (outcome.commits().recorded() > 0) {
      Add("", fmt::format("{} commits for {} of the recording, as threads shared them",
                          FormatCount(outcome.commits().written()),
                          FormatCount(outcome.commits().recorded())));
    }
    Add("", fmt::format("{} issued in {}", FormatBytes(outcome.issued_bytes()),
                        FormatDurationNs(outcome.wall_ns())));
    for (const auto& [reason, count] : outcome.skipped()) {
      Add("", Printable("skipped " + FormatCount(count) + ": " + reason));
    }
    for (const auto& [op, count] : outcome.emulated()) {
      Add("", Printable("emulated " + FormatCount(count) + ": " + op));
    }
    for (const std::string& setting : outcome.settings_not_restored()) {
      Add("", Printable("setting not restored: " + setting));
    }
    if (outcome.stopped_early()) Add("", Printable("STOPPED EARLY: " + outcome.stop_reason()));
  }

  const TraceInfo& info_;
  const size_t columns_;
  std::string text_;
};

}  // namespace

std::string InfoText(const TraceInfo& info, size_t columns) {
  return InfoWriter(info, columns).Text();
}

}  // namespace blktape
