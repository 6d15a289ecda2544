#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/import/fields.h"
#include "capture/import/import_format.h"
#include "capture/import/row_importer.h"

namespace blktape {
namespace {

// xperf -a dumper: between BeginHeader and EndHeader a line per kind of event with the names of its
// columns, then the events. Microsoft's Production Server and Enterprise traces are these.
// "DiskRead, TimeStamp, Process Name ( PID), ThreadID, CPU, IrpPtr, ByteOffset, IOSize,
// ElapsedTime, DiskNum, ..." is logged when the I/O completes: TimeStamp and ElapsedTime in us,
// offset and size in hexadecimal. Versions differ in their columns: the header decides. The ...Init
// events say nothing that these do not.
class Xperf : public LineImporter {
 public:
  Status Verdict() const override {
    if (header_ended_) return OkStatus();
    return Status(StatusCode::kDataLoss, "no EndHeader");
  }

 private:
  struct Columns {
    std::optional<size_t> time, process, cpu, offset, size, elapsed, disk;
    size_t end = 0;
  };

  void Line(std::string_view line, RowSink* sink) override {
    const std::string_view text = Trim(line);
    if (text.starts_with("EndHeader")) {
      header_ended_ = true;
      return;
    }
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos) return;
    const std::string_view kind = Trim(text.substr(0, comma));
    size_t which = 0;
    if (kind == "DiskRead") {
      which = 0;
    } else if (kind == "DiskWrite") {
      which = 1;
    } else if (kind == "DiskFlush") {
      which = 2;
    } else {
      return;
    }
    SplitFields(text, ',', &fields_);
    if (!header_ended_) {
      columns_[which] = FindColumns(fields_);
      return;
    }
    const char* wrong = Row(which, sink);
    if (wrong != nullptr) sink->Dropped(wrong);
  }

  static Columns FindColumns(const std::vector<std::string_view>& names) {
    Columns found;
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string name = Lower(Trim(names[i]));
      const auto take = [&](std::string_view begin, std::optional<size_t>* column) {
        if (*column || !name.starts_with(begin)) return;
        *column = i;
        found.end = i + 1;
      };
      take("timestamp", &found.time);
      take("process name", &found.process);
      take("cpu", &found.cpu);
      take("byteoffset", &found.offset);
      take("iosize", &found.size);
      take("elapsedtime", &found.elapsed);
      take("disknum", &found.disk);
    }
    return found;
  }

  const char* Row(size_t which, RowSink* sink) {
    const Columns& columns = columns_[which];
    if (!columns.time || !columns.elapsed) return "an event whose columns the header does not name";
    if (fields_.size() < columns.end) return "too few columns";
    IoRecord io;
    io.op = which == 0 ? Op::kRead : which == 1 ? Op::kWrite : Op::kFlush;
    const auto end_ns = ParseDecimal(fields_[*columns.time], 3);
    const auto elapsed_ns = ParseDecimal(fields_[*columns.elapsed], 3);
    int64_t begin_ns = 0;
    if (!end_ns || !elapsed_ns || *elapsed_ns < 0 ||
        __builtin_sub_overflow(*end_ns, *elapsed_ns, &begin_ns)) {
      return "a time that is no number";
    }
    io.issue_ns = begin_ns;
    io.complete_ns = end_ns;
    if (io.op != Op::kFlush) {
      if (!columns.offset || !columns.size) return "an event without address and size";
      const auto offset = ParseHex(fields_[*columns.offset]);
      const auto size = ParseHex(fields_[*columns.size]);
      if (!offset || !size) return "an address or size that is no number";
      io.bytes = *size;
      if (!SetAddress(*offset, &io)) {
        sink->Repaired("address rounded down to a sector of 512 bytes");
      }
    }
    if (columns.cpu) {
      const auto cpu = ParseUnsigned(fields_[*columns.cpu]);
      if (cpu && *cpu <= UINT32_MAX) io.cpu = static_cast<uint32_t>(*cpu);
    }
    // "System (   4)".
    std::string_view process = columns.process ? Trim(fields_[*columns.process]) : "";
    if (const size_t open = process.rfind('(');
        open != std::string_view::npos && process.ends_with(')')) {
      const auto pid = ParseUnsigned(process.substr(open + 1, process.size() - open - 2));
      if (pid && *pid <= UINT32_MAX) {
        io.pid = static_cast<uint32_t>(*pid);
        process = Trim(process.substr(0, open));
      }
    }
    io.device = sink->Device(
        "disk" + std::string(columns.disk ? Trim(fields_[*columns.disk]) : std::string_view("0")));
    sink->Row(io, process);
    return nullptr;
  }

  Columns columns_[3];
  bool header_ended_ = false;
  std::vector<std::string_view> fields_;
};

bool LooksLike(std::string_view head) {
  for (const std::string_view line : WholeLines(head)) {
    const std::string_view text = Trim(line);
    if (text.empty()) continue;
    return text.starts_with("BeginHeader");
  }
  return false;
}

}  // namespace

ImportFormat XperfFormat() {
  return {.name = "xperf",
          .title = "xperf -a dumper text (Microsoft Production Server, Enterprise)",
          .lacks = "flags, discards, the wall clock",
          .looks_like = LooksLike,
          .make = [] { return std::make_unique<Xperf>(); }};
}

}  // namespace blktape
