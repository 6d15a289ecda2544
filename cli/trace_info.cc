#include "cli/trace_info.h"

#include <algorithm>
#include <filesystem>

#include "base/saturating.h"
#include "format/partial_file.h"

namespace blktape {
namespace {

constexpr size_t kMaxMarks = 1000;

class Collector : public TraceObserver {
 public:
  explicit Collector(TraceInfo* info) : info_(info) {}
  void OnLoss(const proto::Loss& loss) override {
    info_->losses.OnLoss(loss);
    info_->damaged |= IsHarmlessDamage(loss);
  }
  void OnAnchor(const proto::ClockAnchor& anchor) override { info_->last_anchor = anchor; }
  void OnMark(const proto::Mark& mark) override {
    if (info_->marks.size() < kMaxMarks) info_->marks.push_back(mark);
  }

 private:
  TraceInfo* info_;
};

void Count(const IoRecord& io, TraceInfo* info) {
  ++info->records;
  ++info->records_by_op[static_cast<int>(io.op)];
  uint64_t& bytes = info->bytes_by_op[static_cast<int>(io.op)];
  bytes = SaturatingAdd(bytes, io.bytes);
  const std::optional<int64_t> arrival_ns = io.arrival_ns();
  if (!arrival_ns) return;
  info->first_ns = std::min(info->first_ns.value_or(*arrival_ns), *arrival_ns);
  info->last_ns = std::max(info->last_ns.value_or(*arrival_ns), *arrival_ns);
}

}  // namespace

std::optional<int64_t> TraceInfo::duration_ns() const {
  int64_t duration_ns = 0;
  if (!first_ns || __builtin_sub_overflow(*last_ns, *first_ns, &duration_ns)) return std::nullopt;
  return duration_ns;
}

std::optional<int64_t> TraceInfo::begin_wall_ns() const {
  if (!header.has_start() || header.start().wall_ns() == 0) return std::nullopt;
  return header.start().wall_ns();
}

std::optional<int64_t> TraceInfo::end_wall_ns() const {
  const proto::ClockAnchor* end = nullptr;
  if (last_anchor && last_anchor->wall_ns() != 0) end = &*last_anchor;
  if (summary && summary->has_end() && summary->end().wall_ns() != 0) end = &summary->end();
  if (end == nullptr) return std::nullopt;
  // The last I/O may come long after it: an import may find one anchor only, at the beginning.
  const int64_t after_ns =
      SaturatingSubtract(last_ns.value_or(end->monotonic_ns()), end->monotonic_ns());
  return SaturatingAdd(end->wall_ns(), std::max<int64_t>(after_ns, 0));
}

Result<std::unique_ptr<TraceInfo>> ReadTraceInfo(const std::string& path) {
  auto info = std::make_unique<TraceInfo>();
  Collector collector(info.get());
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path, &collector));
  info->name = std::string(reader->name());
  info->header = reader->header();
  RETURN_IF_ERROR(ForEachRecord(reader.get(), [&](const IoRecord& io) { Count(io, info.get()); }));
  info->summary = reader->summary();
  info->lost_events = reader->lost_events();
  if (path != "-") {
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(path, error);
    if (!error) info->file_bytes = bytes;
    info->being_written = !info->summary && IsBeingWritten(path);
  }
  return info;
}

}  // namespace blktape
