#include "report/day_page.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"
#include "base/units.h"
#include "base/version.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "report/day_sections.h"
#include "report/day_verdict.h"
#include "report/page.h"

namespace blktape {
namespace {

std::string Subtitle(const Profile& profile) {
  std::string text =
      FormatCounted(profile.ios, "I/O") + " in " + FormatDurationNs(profile.observed_ns);
  text += ", " + FormatBytes(profile.of(Op::kRead).bytes) + " read, " +
          FormatBytes(profile.of(Op::kWrite).bytes) + " written";
  std::string devices;
  for (const proto::Device& device : profile.header.devices()) {
    devices += (devices.empty() ? " · " : ", ") + device.name();
    if (!device.model().empty()) devices += " (" + device.model() + ")";
    if (devices.size() > 120) break;
  }
  text += devices.substr(0, 160);
  if (!profile.header.source().empty()) text += " · by " + profile.header.source();
  if (profile.has_window()) {
    text += " · only from " + FormatDurationNs(profile.from_ns.value_or(0));
    if (profile.to_ns) text += " to " + FormatDurationNs(*profile.to_ns);
    text += " of the trace";
  }
  return text;
}

// Local time at the first arrival.
int64_t Clock(const Profile& profile) {
  if (!profile.header.has_start() || !profile.first_arrival_ns) return 0;
  const proto::ClockAnchor& start = profile.header.start();
  if (start.wall_ns() <= 0) return 0;
  int64_t offset_minutes = 0;
  const std::string& zone = profile.header.timezone();  // "+02:00"
  int hours = 0;
  int minutes = 0;
  if (zone.size() == 6 && std::sscanf(zone.c_str() + 1, "%2d:%2d", &hours, &minutes) == 2) {
    offset_minutes = (zone[0] == '-' ? -1 : 1) * (hours * 60 + minutes);
  }
  const __int128 clock_ns = static_cast<__int128>(start.wall_ns()) + *profile.first_arrival_ns -
                            start.monotonic_ns() +
                            static_cast<__int128>(offset_minutes) * 60 * kNanosPerSecond;
  return clock_ns > 0 && clock_ns < (int64_t{1} << 62) ? static_cast<int64_t>(clock_ns) : 0;
}

}  // namespace

std::string ClassName(size_t k) {
  if (k < 2) return std::to_string(k + 1);
  return FormatCount((uint64_t{1} << (k - 1)) + 1) + " to " + FormatCount(uint64_t{1} << k);
}

Page DayPage(const Profile& profile, std::string_view name) {
  BLKTAPE_CHECK(profile.details != nullptr);
  DayPageMaker day{.profile = profile, .details = *profile.details, .name = std::string(name)};
  day.page.title = name;
  day.page.subtitle = Subtitle(profile);
  day.page.footer = "Made by blktape " + std::string(kVersion) +
                    ". docs/metrics.md defines each figure. This file needs no network and asks "
                    "nobody for anything.";
  day.page.clock_ns = Clock(profile);
  day.page.verdict = DayVerdict(profile);
  if (profile.ios > 0) {
    AddOverTime(day);
    AddSizes(day);
    AddAddresses(day);
    AddLatency(day);
    AddDepth(day);
    AddProcesses(day);
    AddFigures(day);
  }
  AddConditions(day);
  return std::move(day.page);
}

}  // namespace blktape
