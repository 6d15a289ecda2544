#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/import/fields.h"
#include "capture/import/import_format.h"
#include "capture/import/row_importer.h"
#include "format/io_names.h"

namespace blktape {
namespace {

// What `blktape dump --csv` and `blktape export --to csv` write: a header line that names the
// columns, in any order, then a row an I/O; what is not known is empty. Names in quotation marks
// may hold line ends (RFC 4180).
class BlktapeCsv : public LineImporter {
 public:
  Status Verdict() const override {
    if (names_.empty()) return Status(StatusCode::kDataLoss, "no header line");
    // Without these nothing is known of an I/O; what else is missing is unknown.
    for (const char* needed : {"op", "lba", "bytes"}) {
      if (std::ranges::find(names_, needed) != names_.end()) continue;
      return Status(StatusCode::kDataLoss,
                    "its header line names no column \"" + std::string(needed) + "\"");
    }
    return OkStatus();
  }

 private:
  size_t LineEnd(std::string_view bytes, size_t begin, bool at_end) const override {
    const size_t first = bytes.find('\n', begin);
    if (first == std::string_view::npos) return first;
    const size_t mark = bytes.substr(0, first).find('"', begin);
    if (mark == std::string_view::npos) return first;
    bool quoted = false;
    const size_t end = std::min(bytes.size(), begin + kLongestQuotedRow);
    for (size_t i = mark; i < end; ++i) {
      if (bytes[i] == '"') quoted = !quoted;
      if (bytes[i] == '\n' && !quoted) return i;
    }
    // Either the rest is still to come, or a mark is damage: that costs its line only.
    return at_end || bytes.size() - begin >= kLongestQuotedRow ? first : std::string_view::npos;
  }

  void Line(std::string_view line, RowSink* sink) override {
    if (line.empty()) return;
    SplitFields(line, ',', &fields_);
    if (names_.empty()) {
      for (const std::string_view field : fields_) names_.emplace_back(field);
      return;
    }
    const char* wrong =
        fields_.size() == names_.size() ? Row(sink) : "not as many columns as names";
    if (wrong != nullptr) sink->Dropped(wrong);
  }

  const char* Row(RowSink* sink) {
    IoRecord io;
    std::string process, device;
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::string_view field = fields_[i];
      const std::string& name = names_[i];
      if (name == "op") {
        const auto op = ParseOp(field);
        if (!op) return "an operation of no known name";
        io.op = op->op;
      } else if (name == "flags") {
        const auto flags = ParseFlagNames(field);
        if (!flags) return "flags of no known name";
        io.flags = *flags;
      } else if (name == "device") {
        device = Unquoted(field);
      } else if (name == "process") {
        process = Unquoted(field);
      } else if (field.empty()) {
        if (name == "bytes") return "no size";
      } else if (!Number(name, field, &io)) {
        return "a column that is no number";
      }
    }
    io.device = sink->Device(device);
    sink->Row(io, process);
    return nullptr;
  }

  static bool Number(const std::string& name, std::string_view field, IoRecord* io) {
    if (name.ends_with("_ns")) {
      const auto ns = ParseDecimal(field, 0);
      const bool span = name == "backlog_ns" || name == "since_wake_ns";
      if (!ns || (span && *ns < 0)) return false;
      if (name == "queue_ns") io->queue_ns = ns;
      if (name == "issue_ns") io->issue_ns = ns;
      if (name == "complete_ns") io->complete_ns = ns;
      if (name == "backlog_ns") io->backlog_ns = static_cast<uint64_t>(*ns);
      if (name == "since_wake_ns") io->since_wake_ns = static_cast<uint64_t>(*ns);
      return true;
    }
    const auto number = ParseUnsigned(field);
    if (!number) return false;
    if (name == "lba") io->lba = Lba(*number);
    if (name == "bytes") io->bytes = *number;
    const auto small = static_cast<uint32_t>(*number);
    if (small != *number) return name == "lba" || name == "bytes";
    if (name == "error") io->error = small;
    if (name == "pid") io->pid = small;
    if (name == "cpu") io->cpu = small;
    if (name == "merged_bios") io->merged_bios = small;
    if (name == "prio") io->prio = small;
    if (name == "waker") io->waker = small;
    return true;
  }

  // Doubled quotation marks inside a quoted field.
  static std::string Unquoted(std::string_view field) {
    std::string text;
    for (size_t i = 0; i < field.size(); ++i) {
      text.push_back(field[i]);
      if (field[i] == '"' && i + 1 < field.size() && field[i + 1] == '"') ++i;
    }
    return text;
  }

  static constexpr size_t kLongestQuotedRow = 4096;

  std::vector<std::string> names_;
  std::vector<std::string_view> fields_;
};

// By its header line, which a spreadsheet may have put in another order, behind a byte order mark.
bool LooksLikeBlktapeCsv(std::string_view head) {
  const std::vector<std::string_view> lines = WholeLines(head);
  if (lines.empty()) return false;
  std::vector<std::string_view> names;
  SplitFields(lines.front(), ',', &names);
  const auto has = [&names](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  return has("op") && has("lba") && has("bytes") && (has("queue_ns") || has("issue_ns"));
}

}  // namespace

ImportFormat BlktapeCsvFormat() {
  return {.name = "csv",
          .title = "blktape's own CSV (dump --csv, export --to csv)",
          .lacks = "losses, marks, sizes as queued, the wall clock, what the disk is",
          .looks_like = LooksLikeBlktapeCsv,
          .make = [] { return std::make_unique<BlktapeCsv>(); }};
}

}  // namespace blktape
