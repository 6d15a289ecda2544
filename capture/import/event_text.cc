#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "capture/import/event_line.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"
#include "capture/import/row_importer.h"
#include "capture/source/rwbs.h"

namespace blktape {
namespace {

struct Head {
  int64_t ns = 0;
  uint32_t cpu = 0;
  uint32_t pid = 0;
  std::string_view comm;
  std::string_view name;  // "block_rq_issue"
  std::string_view body;
};

// "comm  pid [cpu] time: block:block_rq_issue: ..." of perf script, "comm-pid [cpu] time:
// block_rq_issue: ..." of trace-cmd report, and the kernel's own with flags before the time.
std::optional<Head> ParseHead(std::string_view line) {
  size_t event = line.find(" block_");
  if (event == std::string_view::npos) event = line.find(" block:block_");
  if (event == std::string_view::npos) return std::nullopt;
  Head head;
  std::string_view rest = line.substr(event + 1);
  if (rest.starts_with("block:")) rest.remove_prefix(6);
  const size_t colon = rest.find(':');
  if (!rest.starts_with("block_") || colon == std::string_view::npos) return std::nullopt;
  head.name = rest.substr(0, colon);
  head.body = rest.substr(colon + 1);

  std::string_view front = Trim(line.substr(0, event));
  if (!front.ends_with(':')) return std::nullopt;
  front.remove_suffix(1);
  const size_t blank = front.find_last_of(" \t");
  const size_t open = front.rfind('[');
  const size_t close = front.rfind(']');
  if (blank == std::string_view::npos || open == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const auto ns = ParseDecimal(front.substr(blank + 1), 9);
  const auto cpu = ParseUnsigned(front.substr(open + 1, close - open - 1));
  if (!ns || !cpu || *cpu > UINT32_MAX) return std::nullopt;
  head.ns = *ns;
  head.cpu = static_cast<uint32_t>(*cpu);
  front = Trim(front.substr(0, open));
  if (front.ends_with(')')) front = Trim(front.substr(0, front.rfind('(')));  // thread group
  size_t before = front.find_last_of(" \t");
  std::string_view number = before == std::string_view::npos ? front : front.substr(before + 1);
  if (const size_t slash = number.find('/'); slash != std::string_view::npos) {
    number = number.substr(slash + 1);  // perf's pid/tid
  }
  auto pid = ParseUnsigned(number);
  if (!pid) {
    before = front.rfind('-');
    if (before == std::string_view::npos) return std::nullopt;
    pid = ParseUnsigned(front.substr(before + 1));
  }
  if (!pid || *pid > UINT32_MAX) return std::nullopt;
  head.pid = static_cast<uint32_t>(*pid);
  if (before != std::string_view::npos) head.comm = Trim(front.substr(0, before));
  if (head.comm == "<...>") head.comm = {};
  return head;
}

// The print formats are those of include/trace/events/block.h.
class EventText : public LineImporter {
 private:
  struct Event {
    std::string_view name;
    BlockAction action;
    bool of_request;
    bool has_bytes;    // before the command
    bool has_command;  // in parentheses
  };
  static constexpr Event kEvents[] = {
      {"block_bio_queue", BlockAction::kQueue, false, false, false},
      {"block_bio_backmerge", BlockAction::kBackMerge, false, false, false},
      {"block_bio_frontmerge", BlockAction::kFrontMerge, false, false, false},
      {"block_bio_complete", BlockAction::kComplete, false, false, false},
      {"block_bio_remap", BlockAction::kRemap, false, false, false},
      {"block_getrq", BlockAction::kGetRequest, false, false, false},
      {"block_split", BlockAction::kSplit, false, false, false},
      {"block_rq_insert", BlockAction::kInsert, true, true, true},
      {"block_rq_issue", BlockAction::kIssue, true, true, true},
      {"block_rq_requeue", BlockAction::kRequeue, true, false, true},
      {"block_rq_complete", BlockAction::kComplete, true, false, true},
  };

  void Line(std::string_view line, RowSink* sink) override {
    if (const size_t lost = line.find("[LOST "); lost != std::string_view::npos) {
      Lost(line.substr(lost + 6), sink);
      return;
    }
    const std::optional<Head> head = ParseHead(line);
    if (!head) return;  // another event, a header, a remark
    for (const Event& event : kEvents) {
      if (event.name != head->name) continue;
      const char* wrong = One(event, *head, sink);
      if (wrong != nullptr) sink->Dropped(wrong);
      return;
    }
  }

  const char* One(const Event& kind, const Head& head, RowSink* sink) {
    BlockEvent event;
    event.time_ns = head.ns;
    event.cpu = head.cpu;
    event.pid = head.pid;
    event.action = kind.action;
    std::string_view rest = head.body;
    const std::optional<uint32_t> dev = ParseDevNumbers(TakeWord(&rest));
    if (!dev) return "no device";
    event.device = *dev;
    if (kind.of_request) requests_.insert(*dev);
    // Of a disk with requests the end of a bio is told by the request's.
    if (kind.action == BlockAction::kComplete && !kind.of_request && requests_.contains(*dev)) {
      return nullptr;
    }
    const std::string_view rwbs = TakeWord(&rest);
    uint64_t command_bytes = 0;
    if (kind.has_bytes) {
      const auto bytes = ParseUnsigned(TakeWord(&rest));
      if (!bytes) return "no size";
      command_bytes = *bytes;
    }
    if (kind.has_command) {
      const size_t end = rest.find(')');
      if (!Trim(rest).starts_with('(') || end == std::string_view::npos) return "no command";
      event.passthrough = Trim(rest.substr(0, end)).size() > 1;
      rest.remove_prefix(end + 1);
    }
    const std::string_view inside = TakeBrackets(&rest);
    if (!TakeExtent(&rest, &event)) return "no \"sector + sectors\"";
    if (!SetOpByLetters(rwbs, &event)) return "operation letters that the kernel does not use";
    if (event.passthrough) event.bytes = command_bytes;
    if (kind.action == BlockAction::kSplit) {
      if (TakeWord(&rest) != "/") return "a split without its second half";
      const auto second = ParseUnsigned(TakeWord(&rest));
      if (!second) return "a split without its second half";
      event.split_lba = Lba(*second);
    } else if (kind.action == BlockAction::kRemap) {
      if (TakeWord(&rest) != "<-") return "a remap without its origin";
      const auto from = ParseDevNumbers(TakeWord(&rest));
      const auto sector = ParseUnsigned(TakeWord(&rest));
      if (!from || !sector) return "a remap without its origin";
      event.from_device = *from;
      event.from_lba = Lba(*sector);
    }
    if (kind.action == BlockAction::kComplete || kind.action == BlockAction::kRequeue) {
      const auto error = ParseDecimal(inside, 0);
      if (!error) return "a completion without its error";
      event.error = static_cast<uint32_t>(*error < 0 ? -*error : *error);
    } else if (kind.action != BlockAction::kRemap) {
      SetComm(inside.empty() ? head.comm : inside, &event);
    }
    NormalizeFlush(&event);
    sink->Event(event);
    return nullptr;
  }

  // trace-cmd: "CPU:1 [LOST 12 EVENTS]" or "[LOST EVENTS]"; perf: "LOST 12 events".
  static void Lost(std::string_view rest, RowSink* sink) {
    const auto count = ParseUnsigned(TakeWord(&rest));
    sink->Lost(proto::RING_OVERRUN, count.value_or(1), "the text says so");
  }

  std::set<uint32_t> requests_;  // disks of which an event of a request was seen
};

bool LooksLike(std::string_view head) {
  for (const std::string_view line : WholeLines(head)) {
    if (const auto event = ParseHead(line)) {
      std::string_view body = event->body;
      if (ParseDevNumbers(TakeWord(&body))) return true;
    }
  }
  return false;
}

}  // namespace

ImportFormat EventTextFormat() {
  return {.name = "event-text",
          .title = "perf script, trace-cmd report or trace_pipe of block events",
          .lacks = "the wall clock; what was not recorded",
          .looks_like = LooksLike,
          .make = [] { return std::make_unique<EventText>(); }};
}

}  // namespace blktape
