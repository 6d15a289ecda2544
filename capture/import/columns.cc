#include "capture/import/columns.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "capture/import/fields.h"
#include "format/io_record.h"

namespace blktape {
namespace {

using Column = ColumnLayout::Column;
using Kind = ColumnLayout::Kind;

// 1601-01-01 to 1970-01-01 in ticks of 100 ns.
constexpr int64_t kFiletimeEpochTicks = 116'444'736'000'000'000;

struct TimeUnit {
  std::string_view name;
  int decimals;
  uint64_t factor;
  int64_t epoch_ticks;
  bool wall_clock;
};
constexpr std::array<TimeUnit, 10> kTimeUnits = {{{"s", 9, 1, 0, false},
                                                  {"ms", 6, 1, 0, false},
                                                  {"us", 3, 1, 0, false},
                                                  {"ns", 0, 1, 0, false},
                                                  {"100ns", 0, 100, 0, false},
                                                  {"unix-s", 9, 1, 0, true},
                                                  {"unix-ms", 6, 1, 0, true},
                                                  {"unix-us", 3, 1, 0, true},
                                                  {"unix-ns", 0, 1, 0, true},
                                                  {"filetime", 0, 100, kFiletimeEpochTicks, true}}};

constexpr std::array<std::pair<std::string_view, Kind>, 18> kKinds = {{
    {"-", Kind::kIgnore},
    {"time", Kind::kIssue},
    {"issue", Kind::kIssue},
    {"queue", Kind::kQueue},
    {"complete", Kind::kComplete},
    {"latency", Kind::kLatency},
    {"op", Kind::kOp},
    {"offset", Kind::kOffset},
    {"lba", Kind::kOffset},
    {"size", Kind::kSize},
    {"device", Kind::kDevice},
    {"major", Kind::kMajor},
    {"minor", Kind::kMinor},
    {"process", Kind::kProcess},
    {"pid", Kind::kPid},
    {"cpu", Kind::kCpu},
    {"error", Kind::kError},
    {"ignore", Kind::kIgnore},
}};

bool IsTime(Kind kind) {
  return kind == Kind::kQueue || kind == Kind::kIssue || kind == Kind::kComplete ||
         kind == Kind::kLatency;
}

Status Wrong(const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "--columns: " + what);
}

Result<Column> ParseColumn(std::string_view word) {
  const size_t colon = word.find(':');
  const std::string_view name = Trim(word.substr(0, colon));
  const std::string_view unit =
      colon == std::string_view::npos ? std::string_view() : Trim(word.substr(colon + 1));
  Column column;
  const auto* kind = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const auto& candidate) { return candidate.first == name; });
  if (kind == kKinds.end()) {
    return Wrong("\"" + std::string(name) +
                 "\" is no column; there are time, queue, issue, "
                 "complete, latency, op, offset, lba, size, device, major, minor, process, pid, "
                 "cpu, error and -");
  }
  column.kind = kind->second;
  if (IsTime(column.kind)) {
    const auto* time = std::find_if(kTimeUnits.begin(), kTimeUnits.end(), [&](const TimeUnit& u) {
      return u.name == (unit.empty() ? "s" : unit);
    });
    if (time == kTimeUnits.end()) {
      return Wrong("\"" + std::string(unit) +
                   "\" is no unit of time; there are s, ms, us, ns, "
                   "100ns, unix-s, unix-ms, unix-us, unix-ns and filetime");
    }
    column.decimals = time->decimals;
    column.factor = time->factor;
    column.epoch_ticks = time->epoch_ticks;
    column.wall_clock = time->wall_clock;
    return column;
  }
  if (column.kind == Kind::kOffset || column.kind == Kind::kSize) {
    if (name == "lba") column.factor = kSectorBytes;
    if (unit == "sectors") {
      column.factor = kSectorBytes;
    } else if (unit == "kib") {
      column.factor = 1024;
    } else if (!unit.empty() && unit != "bytes") {
      const std::optional<uint64_t> block = ParseUnsigned(unit);
      if (!block || *block == 0 || *block > (uint64_t{1} << 30)) {
        return Wrong("\"" + std::string(unit) + "\" is no unit of " + std::string(name) +
                     "; there are bytes, sectors, kib, or a number of bytes");
      }
      column.factor = *block;
    }
    return column;
  }
  if (column.kind == Kind::kOp && !unit.empty()) {
    if (unit == "01") {
      column.ops = Column::Ops::kOneWrites;
    } else if (unit == "10") {
      column.ops = Column::Ops::kOneReads;
    } else if (unit == "bit0") {
      column.ops = Column::Ops::kBitWrites;
    } else {
      return Wrong(
          "op is a word, op:01 (0 reads, 1 writes), op:10 (1 reads, 0 writes) or op:bit0 "
          "(an odd number writes)");
    }
    return column;
  }
  if (!unit.empty()) return Wrong("\"" + std::string(name) + "\" takes no unit");
  return column;
}

Status ParseOption(std::string_view option, ColumnLayout* layout) {
  const size_t equals = option.find('=');
  const std::string_view name = Trim(option.substr(0, equals));
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : Trim(option.substr(equals + 1));
  if (name == "separator") {
    constexpr std::array<std::pair<std::string_view, char>, 5> kNames = {
        {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"blank", ' '}, {"bar", '|'}}};
    for (const auto& [word, separator] : kNames) {
      if (value == word) layout->separator = separator;
    }
    if (layout->separator != 0) return OkStatus();
    return Wrong("separator is comma, semicolon, tab, blank or bar");
  }
  if (name == "decimal") {
    if (value == "point") return OkStatus();
    if (value != "comma") return Wrong("decimal is point or comma");
    layout->decimal = ',';
    return OkStatus();
  }
  if (name == "skip") {
    const std::optional<uint64_t> lines = ParseUnsigned(value);
    if (!lines) return Wrong("skip is a number of lines");
    layout->skip_lines = *lines;
    return OkStatus();
  }
  if (name == "text" && value == "between") {
    layout->text_between = true;
    return OkStatus();
  }
  if (name == "device" && !value.empty()) {
    layout->device = std::string(value);
    return OkStatus();
  }
  return Wrong("\"" + std::string(option) +
               "\" is no option; there are separator=, decimal=, "
               "skip=, text=between and device=");
}

bool HasLetter(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

char SeparatorOf(std::string_view line) {
  for (const char c : {';', '\t', ',', '|'}) {
    if (line.find(c) != std::string_view::npos) return c;
  }
  return ' ';
}

class ColumnImporter : public LineImporter {
 public:
  explicit ColumnImporter(const ColumnLayout& layout) : layout_(layout) {}

 private:
  void Line(std::string_view line, RowSink* sink) override {
    if (line_number() <= layout_.skip_lines) return;
    const std::string_view text = Trim(line);
    if (text.empty() || text.front() == '#') return;
    if (layout_.separator == 0) layout_.separator = SeparatorOf(line);
    SplitFields(line, layout_.separator, &fields_);
    if (layout_.text_between && !ParseDecimal(fields_.front(), 9, layout_.decimal)) return;
    const char* wrong = Row(sink);
    if (wrong == nullptr) {
      any_ = true;
    } else if (!any_ && !first_failed_ && HasLetter(line)) {
      first_failed_ = true;  // the names of the columns
    } else {
      sink->Dropped(wrong);
    }
  }

  // Why it is no row; null: it was one.
  const char* Row(RowSink* sink) {
    if (fields_.size() < layout_.columns.size()) return "too few columns";
    IoRecord io;
    std::optional<int64_t> latency_ns;
    std::string_view process;
    std::optional<uint64_t> major, minor;
    device_.clear();
    bool rounded = false;
    bool wall_clock = false;
    for (size_t i = 0; i < layout_.columns.size(); ++i) {
      const Column& column = layout_.columns[i];
      const std::string_view field = fields_[i];
      switch (column.kind) {
        case Kind::kIgnore:
          break;
        case Kind::kQueue:
        case Kind::kIssue:
        case Kind::kComplete:
        case Kind::kLatency: {
          if (Trim(field).empty() && column.kind != Kind::kIssue) break;  // not known
          std::optional<int64_t> ns = ParseDecimal(field, column.decimals, layout_.decimal);
          if (!ns || __builtin_sub_overflow(*ns, column.epoch_ticks, &*ns) ||
              __builtin_mul_overflow(*ns, static_cast<int64_t>(column.factor), &*ns)) {
            return "a time that is no number";
          }
          if (column.kind == Kind::kQueue) io.queue_ns = ns;
          if (column.kind == Kind::kIssue) io.issue_ns = ns;
          if (column.kind == Kind::kComplete) io.complete_ns = ns;
          if (column.kind == Kind::kLatency) latency_ns = ns;
          wall_clock |= column.wall_clock && column.kind != Kind::kLatency;
          break;
        }
        case Kind::kOp: {
          const char* wrong = SetOp(column, field, &io);
          if (wrong != nullptr) return wrong;
          break;
        }
        case Kind::kOffset:
        case Kind::kSize: {
          const std::optional<uint64_t> number = Number(field);
          uint64_t bytes = 0;
          if (!number || __builtin_mul_overflow(*number, column.factor, &bytes)) {
            return column.kind == Kind::kSize ? "a size that is no number"
                                              : "an address that is no number";
          }
          if (column.kind == Kind::kSize) {
            io.bytes = bytes;
          } else {
            rounded = !SetAddress(bytes, &io);
          }
          break;
        }
        case Kind::kDevice:
          if (!device_.empty()) device_ += '_';
          device_ += Trim(field);
          break;
        case Kind::kMajor:
          major = Number(field);
          break;
        case Kind::kMinor:
          minor = Number(field);
          break;
        case Kind::kProcess:
          process = Trim(field);
          break;
        case Kind::kPid:
          io.pid = Small(field);
          break;
        case Kind::kCpu:
          io.cpu = Small(field);
          break;
        case Kind::kError:
          io.error = Small(field);
          break;
      }
    }
    const std::optional<int64_t> begin_ns = io.issue_ns ? io.issue_ns : io.queue_ns;
    if (latency_ns && *latency_ns >= 0 && begin_ns) {
      int64_t end_ns = 0;
      if (__builtin_add_overflow(*begin_ns, *latency_ns, &end_ns)) return "a time out of range";
      io.complete_ns = end_ns;
    }
    NormalizeFlushRecord(&io);
    if (wall_clock && !anchored_ && io.arrival_ns()) {
      // Times count from the epoch: the clock of the trace is the wall clock.
      proto::ClockAnchor anchor;
      anchor.set_monotonic_ns(*io.arrival_ns());
      anchor.set_wall_ns(*io.arrival_ns());
      sink->Anchor(anchor);
      anchored_ = true;
    }
    io.device = DeviceOf(major, minor, sink);
    if (rounded) sink->Repaired("address rounded down to a sector of 512 bytes");
    sink->Row(io, process);
    return nullptr;
  }

  static const char* SetOp(const Column& column, std::string_view field, IoRecord* io) {
    if (column.ops == Column::Ops::kWord) {
      if (Trim(field).empty()) return "no operation";
      const std::optional<OpWord> op = ParseOp(field);
      if (!op) return "an operation of no known name";
      io->op = op->op;
      io->flags = op->flags;
      return nullptr;
    }
    const std::optional<uint64_t> number = ParseUnsigned(field);
    if (!number) return "an operation that is no number";
    if (column.ops == Column::Ops::kBitWrites) {
      io->op = (*number & 1) != 0 ? Op::kWrite : Op::kRead;
      return nullptr;
    }
    if (*number > 1) return "an operation that is neither 0 nor 1";
    io->op = (*number == 1) == (column.ops == Column::Ops::kOneWrites) ? Op::kWrite : Op::kRead;
    return nullptr;
  }

  // A whole number, also one with a fraction of zeroes ("4096.0").
  std::optional<uint64_t> Number(std::string_view field) const {
    field = Trim(field);
    if (field.starts_with("0x") || field.starts_with("0X")) return ParseHex(field);
    const size_t point = field.find(layout_.decimal);
    if (point != std::string_view::npos && point > 0 &&
        field.find_first_not_of('0', point + 1) == std::string_view::npos) {
      field = field.substr(0, point);
    }
    return ParseUnsigned(field);
  }
  static std::optional<uint32_t> Small(std::string_view field) {
    const std::optional<uint64_t> number = ParseUnsigned(field);
    if (!number || *number > UINT32_MAX) return std::nullopt;
    return static_cast<uint32_t>(*number);
  }

  uint32_t DeviceOf(const std::optional<uint64_t>& major, const std::optional<uint64_t>& minor,
                    RowSink* sink) {
    if (major && minor) device_ = std::to_string(*major) + ":" + std::to_string(*minor);
    if (device_.empty()) {
      device_ = layout_.device;
    } else if (device_.find_first_not_of("0123456789") == std::string::npos) {
      device_.insert(0, layout_.device);
    }
    if (device_ == last_device_) return last_number_;
    last_device_ = device_;
    last_number_ = sink->Device(device_);
    if (major && minor && *major < 4096 && *minor < (1u << 20)) {
      proto::Device* described = sink->Describe(last_number_);
      described->set_major(static_cast<uint32_t>(*major));
      described->set_minor(static_cast<uint32_t>(*minor));
    }
    return last_number_;
  }

  ColumnLayout layout_;
  std::vector<std::string_view> fields_;
  std::string device_;
  std::string last_device_;
  uint32_t last_number_ = 0;
  bool any_ = false;
  bool first_failed_ = false;
  bool anchored_ = false;
};

}  // namespace

const char* const kColumnsHelp =
    "of a table without a format of its own, by commas: time (of issue), queue, issue, complete, "
    "latency (each :s, :ms, :us, :ns, :100ns, :unix-s, :unix-ms, :unix-us, :unix-ns or :filetime), "
    "op (a word; or :01, :10, :bit0), offset and size (:bytes, :sectors, :kib or :NUMBER), lba, "
    "device, major, minor, process, pid, cpu, error, and - for one that does not matter; further "
    "columns are ignored. Behind semicolons: separator=comma|semicolon|tab|blank|bar, "
    "decimal=comma, skip=LINES, device=NAME, text=between (lines that do not begin with a number)";

Result<ColumnLayout> ParseColumns(std::string_view text) {
  ColumnLayout layout;
  std::vector<std::string_view> parts, words;
  SplitFields(text, ';', &parts);
  SplitFields(parts.empty() ? std::string_view() : parts.front(), ',', &words);
  std::array<int, 32> count{};
  for (const std::string_view word : words) {
    ASSIGN_OR_RETURN(const Column column, ParseColumn(word));
    layout.columns.push_back(column);
    const int seen = ++count.at(static_cast<size_t>(column.kind));
    if (seen > 1 && column.kind != Kind::kIgnore && column.kind != Kind::kDevice) {
      return Wrong("\"" + std::string(word) + "\" is there twice");
    }
  }
  for (size_t i = 1; i < parts.size(); ++i) RETURN_IF_ERROR(ParseOption(parts[i], &layout));
  const auto has = [&count](Kind kind) { return count.at(static_cast<size_t>(kind)) > 0; };
  if (!has(Kind::kOp) || !has(Kind::kOffset) || !has(Kind::kSize)) {
    return Wrong("op, offset (or lba) and size must be among the columns");
  }
  if (layout.separator != 0 && layout.separator == layout.decimal) {
    return Wrong("separator and decimal are the same character");
  }
  return layout;
}

std::unique_ptr<RowImporter> MakeColumnImporter(const ColumnLayout& layout) {
  return std::make_unique<ColumnImporter>(layout);
}

ImportFormat MakeColumnFormat(const ColumnFormat& format) {
  const Result<ColumnLayout> layout = ParseColumns(format.columns);
  BLKTAPE_CHECK(layout.ok());
  ImportFormat made;
  made.name = format.name;
  made.title = format.title;
  made.lacks = format.lacks;
  made.make = [layout = *layout] { return MakeColumnImporter(layout); };
  made.looks_like = [format, layout = *layout](std::string_view head) {
    std::vector<std::string_view> fields;
    bool any = false;
    bool first = true;
    bool header = false;
    for (const std::string_view line : WholeLines(head)) {
      if (Trim(line).empty() || line.front() == '#') continue;
      if (first && !format.header_line.empty()) {
        first = false;
        if (line.starts_with(format.header_line)) {
          header = true;
          continue;
        }
        if (!format.header_may_lack) return false;
      }
      SplitFields(line, layout.separator, &fields);
      if (layout.text_between && !ParseDecimal(fields.front(), 9)) continue;
      if (!format.fits(fields)) return false;
      any = true;
    }
    return any || header;
  };
  return made;
}

}  // namespace blktape
