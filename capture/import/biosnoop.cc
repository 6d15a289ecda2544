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

// biosnoop of bcc and of its libbpf tools: under the header line "TIME(s) COMM PID DISK T SECTOR
// BYTES [QUE(ms)] LAT(ms)" a row an I/O, written when it completes. TIME is the completion's, LAT
// the time since it was issued, QUE the time in the queue before that. A name may hold blanks, so
// the columns are counted from the right.
class Biosnoop : public LineImporter {
 public:
  Status Verdict() const override {
    if (columns_ != 0) return OkStatus();
    return Status(StatusCode::kDataLoss, "no header line \"TIME(s) COMM PID DISK T SECTOR BYTES\"");
  }

 private:
  void Line(std::string_view line, RowSink* sink) override {
    SplitFields(line, ' ', &fields_);
    if (fields_.empty()) return;
    if (fields_[0] == "TIME(s)") {
      columns_ = fields_.size();
      queue_ = false;
      pattern_ = false;
      for (const std::string_view name : fields_) {
        queue_ |= name == "QUE(ms)";
        pattern_ |= name == "P" || name == "PATTERN";
      }
      if (pattern_) columns_ = 0;  // says nothing of what follows here
      return;
    }
    if (columns_ == 0) return;
    const char* wrong = Row(sink);
    if (wrong != nullptr) sink->Dropped(wrong);
  }

  const char* Row(RowSink* sink) {
    const size_t right = queue_ ? 7 : 6;  // PID DISK T SECTOR BYTES [QUE] LAT
    if (fields_.size() < right + 1) return "too few columns";
    const size_t at = fields_.size() - right;
    const auto end_ns = ParseDecimal(fields_[0], 9);
    const auto pid = ParseUnsigned(fields_[at]);
    const auto op = ParseOp(fields_[at + 2]);
    const auto sector = ParseDecimal(fields_[at + 3], 0);
    const auto bytes = ParseUnsigned(fields_[at + 4]);
    const auto latency_ns = ParseDecimal(fields_.back(), 6);
    if (!end_ns) return "a time that is no number";
    if (!pid || *pid > UINT32_MAX) return "a process id that is no number";
    if (!op) return "an operation of no known name";
    if (!sector || !bytes) return "an address or size that is no number";
    if (!latency_ns || *latency_ns < 0) return "a latency that is no number";
    IoRecord io;
    io.op = op->op;
    io.flags = op->flags;
    if (*sector >= 0) io.lba = Lba(static_cast<uint64_t>(*sector));
    io.bytes = *bytes;
    io.pid = static_cast<uint32_t>(*pid);
    io.complete_ns = end_ns;
    int64_t issue_ns = 0;
    if (__builtin_sub_overflow(*end_ns, *latency_ns, &issue_ns)) return "a time out of range";
    io.issue_ns = issue_ns;
    if (queue_) {
      const auto waited_ns = ParseDecimal(fields_[fields_.size() - 2], 6);
      int64_t queue_ns = 0;
      if (waited_ns && *waited_ns >= 0 &&
          !__builtin_sub_overflow(issue_ns, *waited_ns, &queue_ns)) {
        io.queue_ns = queue_ns;
      }
    }
    NormalizeFlushRecord(&io);
    io.device = sink->Device(fields_[at + 1]);
    // The words of a name, with the blanks between them.
    std::string_view comm;
    if (at > 1) {
      const char* begin = fields_[1].data();
      comm = std::string_view(
          begin, static_cast<size_t>(fields_[at - 1].data() + fields_[at - 1].size() - begin));
    }
    sink->Row(io, comm);
    return nullptr;
  }

  std::vector<std::string_view> fields_;
  size_t columns_ = 0;
  bool queue_ = false;
  bool pattern_ = false;
};

bool LooksLike(std::string_view head) {
  std::vector<std::string_view> fields;
  for (const std::string_view line : WholeLines(head)) {
    SplitFields(line, ' ', &fields);
    if (fields.size() >= 8 && fields[0] == "TIME(s)" && fields[1] == "COMM") return true;
  }
  return false;
}

}  // namespace

ImportFormat BiosnoopFormat() {
  return {.name = "biosnoop",
          .title = "biosnoop (bcc, libbpf-tools) text",
          .lacks =
              "most flags, the wall clock; bpftrace's biosnoop.bt prints no address and no "
              "size, and is refused",
          .looks_like = LooksLike,
          .make = [] { return std::make_unique<Biosnoop>(); }};
}

}  // namespace blktape
