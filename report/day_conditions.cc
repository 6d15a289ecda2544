#include <cstdint>
#include <string>
#include <utility>

#include "analysis/profile.h"
#include "base/quantity.h"
#include "format/loss.h"
#include "format/trace.pb.h"
#include "report/day_sections.h"
#include "report/page.h"
#include "report/table_maker.h"

namespace blktape {

void AddConditions(DayPageMaker& day) {
  using State = Checklist::State;
  Section& section = day.NewSection("conditions", "Conditions and validity");
  Checklist list{.caption = "What this rests on", .subjects = {day.name}, .rows = {}};
  const auto row = [&list](std::string check, State state, std::string text) {
    list.rows.push_back({std::move(check), {{state, std::move(text)}}});
  };
  const auto none = [&row](std::string check, uint64_t count, const std::string& unit,
                           State else_state) {
    row(std::move(check), count == 0 ? State::kGood : else_state,
        count == 0 ? "none" : FormatCount(count) + unit);
  };
  row("the recorder ended the trace itself",
      day.profile.finished_cleanly ? State::kGood : State::kBad,
      day.profile.finished_cleanly ? "yes" : "no, its end may be missing");
  row("lost events",
      day.profile.lost_events == 0 && !day.profile.losses_uncountable ? State::kGood : State::kBad,
      day.profile.lost_events == 0 && !day.profile.losses_uncountable
          ? "none"
          : (day.profile.losses_uncountable ? "at least " : "") +
                FormatCount(day.profile.lost_events));
  none("failed I/Os", day.profile.errors, " with an error", State::kBad);
  none("times that run backwards", day.profile.negative_times, ", in no latency", State::kBad);
  none("I/Os without an issue time", day.profile.without_issue, "; their queue time stands for it",
       State::kNone);
  none("I/Os without a completion time", day.profile.without_completion,
       ", in no latency or busy time", State::kNone);
  none("records out of the order of arrival", day.profile.out_of_order, ", put in their place",
       State::kNone);
  if (day.profile.recorded_ns)
    row("recorded for", State::kNone, FormatDurationNs(*day.profile.recorded_ns));
  if (!day.profile.header.source().empty())
    row("recorded by", State::kNone, day.profile.header.source());
  if (!day.profile.header.kernel().empty())
    row("kernel", State::kNone, day.profile.header.kernel());
  for (const std::string& filter : day.profile.header.filters())
    row("left out on purpose", State::kNone, filter);
  int devices = 0;
  for (const proto::Device& device : day.profile.header.devices()) {
    if (++devices > 20) break;
    std::string text = device.name();
    if (!device.model().empty()) text += ", " + device.model();
    if (device.has_size_bytes()) text += ", " + FormatBytes(device.size_bytes());
    if (!device.transport().empty()) text += ", " + device.transport();
    if (!device.scheduler().empty()) text += ", scheduler " + device.scheduler();
    if (!device.write_cache().empty()) text += ", " + device.write_cache();
    row("device", State::kNone, std::move(text));
  }
  section.parts.push_back(std::move(list));
  if (!day.profile.losses.empty()) {
    TableMaker losses("losses", "Not in the trace");
    losses.Column("reason", "reason", Unit::kText)
        .Column("events", "events", Unit::kCount)
        .Column("reports_without_count", "reports without a number", Unit::kCount)
        .Column("means_lost", "means lost data", Unit::kText);
    for (const auto& [reason, loss] : day.profile.losses) {
      losses.Row({std::string(LossReasonName(reason)), loss.count, loss.unknowable,
                  std::string(MeansLostEvents(reason) ? "yes" : "no")});
    }
    day.Add(std::move(losses));
    section.parts.push_back(TableView{"losses"});
  }
}

}  // namespace blktape
