#include <cstdint>
#include <memory>
#include <optional>
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

std::optional<BlockAction> ActionOf(std::string_view letter) {
  if (letter == "Q") return BlockAction::kQueue;
  if (letter == "G") return BlockAction::kGetRequest;
  if (letter == "I") return BlockAction::kInsert;
  if (letter == "M") return BlockAction::kBackMerge;
  if (letter == "F") return BlockAction::kFrontMerge;
  if (letter == "X") return BlockAction::kSplit;
  if (letter == "A") return BlockAction::kRemap;
  if (letter == "R") return BlockAction::kRequeue;
  if (letter == "D") return BlockAction::kIssue;
  if (letter == "C") return BlockAction::kComplete;
  return std::nullopt;
}

// blkparse's default output, blkparse_fmt.c, process_default(): "MAJ,MIN CPU SEQUENCE SECONDS PID
// ACTION RWBS" and, by action, extent and name. Sequence numbers are not checked: whoever chose
// actions with -a, or cut lines out, has made gaps that are no loss; what blktrace dropped stands
// under "Skips".
class Blkparse : public LineImporter {
 private:
  void Line(std::string_view line, RowSink* sink) override {
    std::string_view rest = line;
    const std::string_view first = TakeWord(&rest);
    const std::optional<uint32_t> dev = ParseDevNumbers(first);
    if (!dev) {
      if (first == "Skips:") Skips(rest, sink);
      return;  // summary, message, or a remark
    }
    BlockEvent event;
    event.device = *dev;
    const auto cpu = ParseUnsigned(TakeWord(&rest));
    const auto sequence = ParseUnsigned(TakeWord(&rest));
    const auto ns = ParseDecimal(TakeWord(&rest), 9);
    const auto pid = ParseUnsigned(TakeWord(&rest));
    if (!cpu || *cpu > UINT32_MAX || !sequence || !ns || !pid || *pid > UINT32_MAX) {
      sink->Dropped("not \"cpu sequence time pid\"");
      return;
    }
    event.cpu = static_cast<uint32_t>(*cpu);
    event.time_ns = *ns;
    event.pid = static_cast<uint32_t>(*pid);
    const std::string_view letter = TakeWord(&rest);
    const std::optional<BlockAction> action = ActionOf(letter);
    if (!action) return;  // plug, unplug, message ...
    event.action = *action;
    const char* wrong = Body(rest, &event);
    if (wrong != nullptr) {
      sink->Dropped(wrong);
      return;
    }
    sink->Event(event);
  }

  static const char* Body(std::string_view rest, BlockEvent* event) {
    const std::string_view rwbs = TakeWord(&rest);
    const std::string_view inside = TakeBrackets(&rest);
    // "BYTES (CDB) [comm]": a command of user space, the CDB in hexadecimal.
    const bool passthrough = rest.find(" (") != std::string_view::npos &&
                             rest.find('+') == std::string_view::npos &&
                             event->action != BlockAction::kComplete;
    if (passthrough) {
      event->passthrough = true;
    } else if (!TakeExtent(&rest, event)) {
      return "no \"sector + sectors\"";
    }
    if (!SetOpByLetters(rwbs, event)) return "operation letters that blkparse does not use";
    if (event->action == BlockAction::kSplit) {
      if (TakeWord(&rest) != "/") return "a split without its second half";
      const auto second = ParseUnsigned(TakeWord(&rest));
      if (!second) return "a split without its second half";
      event->split_lba = Lba(*second);
    } else if (event->action == BlockAction::kRemap) {
      if (TakeWord(&rest) != "<-") return "a remap without its origin";
      const auto from = ParseDevNumbers(TakeWord(&rest));
      const auto sector = ParseUnsigned(TakeWord(&rest));
      if (!from || !sector) return "a remap without its origin";
      event->from_device = *from;
      event->from_lba = Lba(*sector);
    }
    if (event->action == BlockAction::kComplete || event->action == BlockAction::kRequeue) {
      const auto error = ParseDecimal(inside, 0);
      if (!error) return "a completion without its error";
      event->error = static_cast<uint32_t>(*error < 0 ? -*error : *error);
    } else {
      SetComm(inside, event);
    }
    NormalizeFlush(event);
    return nullptr;
  }

  // "Skips: 12 forward (4,096 -   0.1%)".
  static void Skips(std::string_view rest, RowSink* sink) {
    const auto times = ParseUnsigned(TakeWord(&rest));
    if (!times || *times == 0 || TakeWord(&rest) != "forward") return;
    std::string_view count = TakeWord(&rest);
    if (count.starts_with('(')) count.remove_prefix(1);
    const auto events = ParseUnsigned(count);
    sink->Lost(proto::SEQUENCE_GAP, events.value_or(*times), "blkparse says so under \"Skips\"");
  }
};

bool LooksLike(std::string_view head) {
  // Within the first lines one that is an event; before it there may be remarks.
  size_t events = 0;
  for (const std::string_view line : WholeLines(head)) {
    std::string_view rest = line;
    if (!ParseDevNumbers(TakeWord(&rest))) continue;
    if (!ParseUnsigned(TakeWord(&rest)) || !ParseUnsigned(TakeWord(&rest))) return false;
    const std::string_view time = TakeWord(&rest);
    if (time.find('.') == std::string_view::npos || !ParseDecimal(time, 9)) return false;
    if (!ParseUnsigned(TakeWord(&rest)) || TakeWord(&rest).size() > 2) return false;
    ++events;
  }
  return events > 0;
}

}  // namespace

ImportFormat BlkparseFormat() {
  return {.name = "blkparse",
          .title = "blkparse text (its default format)",
          .lacks = "the wall clock; losses between events",
          .looks_like = LooksLike,
          .make = [] { return std::make_unique<Blkparse>(); }};
}

}  // namespace blktape
