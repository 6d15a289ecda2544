#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "capture/import/fields.h"
#include "capture/import/import_format.h"
#include "capture/import/row_importer.h"
#include "format/io_names.h"

namespace blktape {
namespace {

// What `blktape export --to jsonl` writes: an object a line; a key that is not there is not known.
class JsonLines : public LineImporter {
 private:
  // Objects nest no deeper in what is read here: a file made to hurt must not exhaust the stack.
  static constexpr int kDeepest = 4;

  void Line(std::string_view line, RowSink* sink) override {
    if (Trim(line).empty()) return;
    const char* wrong = Row(line, sink);
    if (wrong != nullptr) sink->Dropped(wrong);
  }

  static const char* Row(std::string_view line, RowSink* sink) {
    const nlohmann::json json = nlohmann::json::parse(
        line,
        [](int depth, nlohmann::json::parse_event_t /*event*/, nlohmann::json& /*parsed*/) {
          return depth <= kDeepest;
        },
        /*allow_exceptions=*/false);
    if (!json.is_object()) return "no JSON object";
    const auto text = [&json](const char* key) {
      const auto it = json.find(key);
      return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    bool good = true;
    const auto number = [&]<typename Number>(const char* key, std::optional<Number>* value) {
      const auto it = json.find(key);
      if (it == json.end()) return;
      // A whole number that is not negative is unsigned to the library.
      const bool fits = it->is_number_unsigned()
                            ? std::in_range<Number>(it->get<uint64_t>())
                            : it->is_number_integer() && std::in_range<Number>(it->get<int64_t>());
      good &= fits;
      if (fits) *value = it->get<Number>();
    };
    IoRecord io;
    const auto op = ParseOp(text("op"));
    if (!op) return "an operation of no known name";
    io.op = op->op;
    const auto flags = ParseFlagNames(text("flags"));
    if (!flags) return "flags of no known name";
    io.flags = *flags;
    std::optional<uint64_t> bytes, lba;
    number("queue_ns", &io.queue_ns);
    number("issue_ns", &io.issue_ns);
    number("complete_ns", &io.complete_ns);
    number("lba", &lba);
    number("bytes", &bytes);
    number("error", &io.error);
    number("pid", &io.pid);
    number("cpu", &io.cpu);
    number("merged_bios", &io.merged_bios);
    number("prio", &io.prio);
    number("backlog_ns", &io.backlog_ns);
    number("waker", &io.waker);
    number("since_wake_ns", &io.since_wake_ns);
    if (!good) return "a value that is no whole number, or out of range";
    if (!bytes) return "no size";
    io.bytes = *bytes;
    if (lba) io.lba = Lba(*lba);
    io.device = sink->Device(text("device"));
    sink->Row(io, text("process"));
    return nullptr;
  }
};

}  // namespace

ImportFormat JsonLinesFormat() {
  return {.name = "jsonl",
          .title = "blktape's own JSON lines (export --to jsonl)",
          .lacks = "losses, marks, sizes as queued, the wall clock, what the disk is",
          .looks_like =
              [](std::string_view head) {
                for (const std::string_view line : WholeLines(head)) {
                  if (!line.starts_with('{') || line.find("\"op\":") == std::string_view::npos ||
                      line.find("\"bytes\":") == std::string_view::npos) {
                    return false;
                  }
                }
                return head.starts_with('{');
              },
          .make = [] { return std::make_unique<JsonLines>(); }};
}

}  // namespace blktape
