#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"
#include "capture/import/row_importer.h"

namespace blktape {
namespace {

constexpr std::string_view kVersion2 = "fio version 2 iolog";
constexpr std::string_view kVersion3 = "fio version 3 iolog";

// fio's HOWTO, "Trace file format". Version 3: "us FILE ACTION [OFFSET LENGTH]", the time counted
// from the start of the log. Version 2: the same without the time; "FILE wait US" waits, counted
// from the wait before, and what has no wait before it comes at once. Version 1: "0|1, OFFSET,
// LENGTH", no time and no file. Offset and length in bytes.
class FioIolog : public LineImporter {
 public:
  Status Verdict() const override {
    if (version_ != 0) return OkStatus();
    return Status(StatusCode::kDataLoss, "no line that fio would have written");
  }

 private:
  void Line(std::string_view line, RowSink* sink) override {
    const std::string_view text = Trim(line);
    if (text.empty()) return;
    if (line_number() == 1 && (text == kVersion2 || text == kVersion3)) {
      version_ = text == kVersion2 ? 2 : 3;
      return;
    }
    if (version_ == 0) version_ = 1;
    const char* wrong = version_ == 1 ? Version1(text, sink) : Row(text, sink);
    if (wrong != nullptr) sink->Dropped(wrong);
  }

  const char* Version1(std::string_view text, RowSink* sink) {
    SplitFields(text, ',', &fields_);
    const auto number = [this](size_t i) {
      return i < fields_.size() ? ParseUnsigned(fields_[i]) : std::nullopt;
    };
    if (!number(0) || *number(0) > 1 || !number(1) || !number(2)) {
      return "not \"direction, offset, length\"";
    }
    IoRecord io;
    io.op = *number(0) == 1 ? Op::kWrite : Op::kRead;
    return Emit(&io, "file", *number(1), *number(2), sink);
  }

  const char* Row(std::string_view text, RowSink* sink) {
    SplitFields(text, ' ', &fields_);
    const size_t first = version_ == 3 ? 1 : 0;
    if (fields_.size() < first + 2) return "too few words";
    IoRecord io;
    if (version_ == 3) {
      const std::optional<int64_t> ns = ParseDecimal(fields_[0], 3);
      if (!ns) return "a time that is no number";
      io.issue_ns = ns;
    } else {
      io.issue_ns = waited_ns_;
    }
    const std::string_view file = fields_[first];
    const std::string_view action = fields_[first + 1];
    const auto number = [&](size_t i) {
      return first + i < fields_.size() ? ParseUnsigned(fields_[first + i]) : std::nullopt;
    };
    if (action == "add" || action == "open" || action == "close") return nullptr;
    if (action == "wait" && version_ == 2) {
      const auto us = number(2);
      int64_t ns = 0;
      if (!us || __builtin_mul_overflow(*us, kNanosPerMicro, &ns) ||
          __builtin_add_overflow(waited_ns_, ns, &waited_ns_)) {
        return "a wait that is no number";
      }
      return nullptr;
    }
    if (action == "sync" || action == "datasync") {
      io.op = Op::kFlush;
      return Emit(&io, file, 0, 0, sink);
    }
    if (action == "read") {
      io.op = Op::kRead;
    } else if (action == "write") {
      io.op = Op::kWrite;
    } else if (action == "trim") {
      io.op = Op::kDiscard;
    } else {
      return "an action that fio does not know";
    }
    if (!number(2) || !number(3)) return "no offset and length";
    return Emit(&io, file, *number(2), *number(3), sink);
  }

  const char* Emit(IoRecord* io, std::string_view file, uint64_t offset, uint64_t length,
                   RowSink* sink) {
    if (io->op != Op::kFlush) {
      if (!SetAddress(offset, io)) sink->Repaired("address rounded down to a sector of 512 bytes");
      io->bytes = length;
    }
    if (file.starts_with("/dev/")) file.remove_prefix(5);
    io->device = sink->Device(file);
    sink->Row(*io, {});
    return nullptr;
  }

  int version_ = 0;
  int64_t waited_ns_ = 0;
  std::vector<std::string_view> fields_;
};

bool LooksLike(std::string_view head) {
  if (head.starts_with(kVersion2) || head.starts_with(kVersion3)) return true;
  std::vector<std::string_view> fields;
  const std::vector<std::string_view> lines = WholeLines(head);
  for (const std::string_view line : lines) {
    SplitFields(line, ',', &fields);
    if (fields.size() != 3 || (Trim(fields[0]) != "0" && Trim(fields[0]) != "1") ||
        !ParseUnsigned(fields[1]) || !ParseUnsigned(fields[2])) {
      return false;
    }
  }
  return !lines.empty();
}

}  // namespace

ImportFormat FioIologFormat() {
  return {.name = "fio-iolog",
          .title = "fio iolog version 3, 2 or 1",
          .lacks = "completions, processes, flags, the wall clock; version 1 also times",
          .looks_like = LooksLike,
          .make = [] { return std::make_unique<FioIolog>(); }};
}

}  // namespace blktape
