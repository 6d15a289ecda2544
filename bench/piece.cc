#include "bench/piece.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "analysis/profile.h"
#include "base/units.h"
#include "replay/plan/trace_stream.h"

namespace blktape {
namespace {

std::string Seconds(int64_t ns) {
  return fmt::format("{:g} s", static_cast<double>(ns) / static_cast<double>(kNanosPerSecond));
}

// Calls `take(record, ordinal, left_out)` for each record of the piece.
template <typename Take>
Status ForEachOf(const TracePiece& piece, const std::atomic<bool>& stop, Take&& take) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> stream, OpenPiece(piece));
  ASSIGN_OR_RETURN(const std::optional<uint32_t> device, DeviceOf(piece, stream->header()));
  return ForEachRecord(stream.get(), stop, [&](const IoRecord& record, uint64_t ordinal) {
    take(record, ordinal, device && record.device != *device);
  });
}

}  // namespace

std::string TracePiece::Name() const {
  std::string name = device;
  if (!from_ns && !to_ns) return name;
  if (!name.empty()) name += ", ";
  name += "from " + Seconds(from_ns.value_or(0));
  if (to_ns) name += " to " + Seconds(*to_ns);
  return name;
}

void SetPiece(const TracePiece& piece, const std::string& target_path, ReplayOptions* replay) {
  replay->trace_path = piece.trace_path;
  replay->from_ns = piece.from_ns;
  replay->to_ns = piece.to_ns;
  if (!piece.device.empty()) {
    replay->mappings.push_back({.device = piece.device, .target_path = target_path});
    replay->mappings.push_back({.device = "", .target_path = "none"});
  } else if (!target_path.empty()) {
    replay->mappings.push_back({.device = "", .target_path = target_path});
  }
}

Result<std::optional<uint32_t>> DeviceOf(const TracePiece& piece, const proto::Header& header) {
  if (piece.device.empty()) return std::optional<uint32_t>();
  ASSIGN_OR_RETURN(const uint32_t device, FindDevice(header, piece.device));
  return std::optional<uint32_t>(device);
}

Result<std::unique_ptr<RecordStream>> OpenPiece(const TracePiece& piece) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<TraceStream> stream,
      TraceStream::Open(piece.trace_path, {.from_ns = piece.from_ns, .to_ns = piece.to_ns}));
  return std::unique_ptr<RecordStream>(std::move(stream));
}

Result<Segmentation> CutPiece(const TracePiece& piece, const std::atomic<bool>& stop) {
  ForegroundCounter counter;
  RETURN_IF_ERROR(
      ForEachOf(piece, stop, [&counter](const IoRecord& record, uint64_t, bool left_out) {
        if (!left_out) counter.Add(record);
      }));
  if (counter.if_all() == 0) {
    const std::string name = piece.Name();
    return Status(StatusCode::kFailedPrecondition,
                  piece.trace_path + (name.empty() ? "" : " (" + name + ")") +
                      ": holds no read, write or flush, so there is nothing to score");
  }
  SegmentCutter cutter(counter);
  RETURN_IF_ERROR(
      ForEachOf(piece, stop, [&cutter](const IoRecord& record, uint64_t ordinal, bool left_out) {
        cutter.Add(record, ordinal, left_out);
      }));
  return cutter.Finish();
}

}  // namespace blktape
