#include <algorithm>
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

// The table "Disk Usage" of Windows Performance Analyzer as it exports it, and as wpaexporter does.
// Which columns there are, their separator and how numbers are written depend on the profile and
// the locale: the header line names the columns, the first rows show the rest.
struct Columns {
  std::optional<size_t> op, process, init, complete, size, min_offset, disk;
};

// "Init Time (s)" is called so in every version; other columns have had remarks behind their name.
Columns FindColumns(const std::vector<std::string_view>& names) {
  Columns found;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = Lower(Trim(names[i]));
    const auto take = [&](std::string_view begin, std::optional<size_t>* column) {
      if (!*column && name.starts_with(begin)) *column = i;
    };
    take("io type", &found.op);
    take("process", &found.process);
    take("init time", &found.init);
    take("complete time", &found.complete);
    take("size", &found.size);
    take("min offset", &found.min_offset);
    if (name == "disk") found.disk = i;
  }
  return found;
}

bool Complete(const Columns& columns) {
  return columns.op && columns.init && columns.size && columns.min_offset;
}

char SeparatorOf(std::string_view header) {
  for (const char c : {';', '\t', ','}) {
    if (header.find(c) != std::string_view::npos) return c;
  }
  return ',';
}

bool IsHeader(std::string_view line) {
  std::vector<std::string_view> names;
  SplitFields(line, SeparatorOf(line), &names);
  return Complete(FindColumns(names));
}

// `text` without what groups digits: blanks, no-break spaces (U+00A0, U+202F), apostrophes (U+2019
// too), and whichever of point and comma is not `decimal`.
std::string Ungrouped(std::string_view text, char decimal) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i).starts_with("\xc2\xa0")) {
      ++i;
    } else if (text.substr(i).starts_with("\xe2\x80\xaf") ||
               text.substr(i).starts_with("\xe2\x80\x99")) {
      i += 2;
    } else if (c == decimal || (c != '.' && c != ',' && c != ' ' && c != '\'')) {
      plain.push_back(c);
    }
  }
  return plain;
}

class Wpa : public LineImporter {
 public:
  Status Verdict() const override {
    if (Complete(columns_)) return OkStatus();
    return Status(StatusCode::kDataLoss,
                  "no header line with IO Type, Init Time, Size and Min Offset\n"
                  "  try:  export the table Disk Usage with these columns and without groups");
  }

 private:
  void Line(std::string_view line, RowSink* sink) override {
    if (Trim(line).empty()) return;
    if (!Complete(columns_)) {
      separator_ = SeparatorOf(line);
      SplitFields(line, separator_, &fields_);
      columns_ = FindColumns(fields_);
      if (!Complete(columns_)) return;
      columns_end_ = 0;
      for (const auto& column : {columns_.op, columns_.process, columns_.init, columns_.complete,
                                 columns_.size, columns_.min_offset, columns_.disk}) {
        if (column) columns_end_ = std::max(columns_end_, *column + 1);
      }
      return;
    }
    SplitFields(line, separator_, &fields_);
    const char* wrong = fields_.size() < columns_end_ ? "too few columns" : Row(sink);
    if (wrong != nullptr) sink->Dropped(wrong);
  }

  // Times are written to 100 ns: of the last separator in one more than three digits follow, so
  // that it is the decimal one.
  char DecimalOf(std::string_view time) const {
    const size_t last = time.find_last_of(".,");
    if (last == std::string_view::npos || time.size() - last - 1 <= 3) return 0;
    return time[last];
  }

  const char* Row(RowSink* sink) {
    if (decimal_ == 0) decimal_ = DecimalOf(Trim(fields_[*columns_.init]));
    // Whole seconds and milliseconds alone do not tell. A comma cannot be both.
    const char decimal = decimal_ != 0 ? decimal_ : separator_ == ';' ? ',' : '.';
    const auto time = [&](size_t column) {
      return ParseDecimal(Ungrouped(Trim(fields_[column]), decimal), 9, decimal);
    };
    IoRecord io;
    const auto op = ParseOp(fields_[*columns_.op]);
    if (!op) return "an operation of no known name";
    io.op = op->op;
    io.issue_ns = time(*columns_.init);
    if (!io.issue_ns) return "a time that is no number";
    if (columns_.complete) {
      io.complete_ns = time(*columns_.complete);
      if (!io.complete_ns) return "a time that is no number";
    }
    const auto size = ParseUnsigned(Ungrouped(Trim(fields_[*columns_.size]), decimal));
    if (!size) return "a size that is no number";
    io.bytes = *size;
    if (io.op != Op::kFlush) {
      const std::string_view text = Trim(fields_[*columns_.min_offset]);
      const auto offset =
          text.starts_with("0x") ? ParseHex(text) : ParseUnsigned(Ungrouped(text, decimal));
      if (!offset) return "an address that is no number";
      if (!SetAddress(*offset, &io)) {
        sink->Repaired("address rounded down to a sector of 512 bytes");
      }
    }
    NormalizeFlushRecord(&io);
    std::string_view process = columns_.process ? Trim(fields_[*columns_.process]) : "";
    // "chrome.exe (4,123)", where the profile shows it so.
    if (const size_t open = process.rfind(" ("); open != std::string_view::npos) {
      const auto pid =
          ParseUnsigned(Ungrouped(process.substr(open + 2, process.size() - open - 3), decimal));
      if (process.ends_with(')') && pid && *pid <= UINT32_MAX) {
        io.pid = static_cast<uint32_t>(*pid);
        process = process.substr(0, open);
      }
    }
    io.device = sink->Device("disk" + std::string(columns_.disk ? Trim(fields_[*columns_.disk])
                                                                : std::string_view("0")));
    sink->Row(io, process);
    return nullptr;
  }

  Columns columns_;
  size_t columns_end_ = 0;
  char separator_ = ',';
  char decimal_ = 0;
  std::vector<std::string_view> fields_;
};

}  // namespace

ImportFormat WpaFormat() {
  return {.name = "wpa",
          .title = "Windows Performance Analyzer, Disk Usage as CSV (any locale)",
          .lacks = "flags, discards, the wall clock",
          .looks_like =
              [](std::string_view head) {
                const std::vector<std::string_view> lines = WholeLines(head);
                return std::any_of(lines.begin(), lines.end(), IsHeader);
              },
          .make = [] { return std::make_unique<Wpa>(); }};
}

}  // namespace blktape
