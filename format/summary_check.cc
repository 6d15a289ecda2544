#include "format/summary_check.h"

#include <vector>

#include "format/process_dictionary.h"

namespace blktape {
namespace {

// `sum` + `more`, unless that is more than `total`.
bool AddWithin(uint64_t more, uint64_t total, uint64_t* sum) {
  if (more > total - *sum) return false;
  *sum += more;
  return true;
}

const char* ExtentsContradiction(const proto::Header& header, const proto::Summary& summary) {
  std::vector<bool> seen(static_cast<size_t>(header.devices_size()));
  uint64_t records = 0;
  for (const proto::DeviceExtent& extent : summary.extents()) {
    if (extent.device() >= seen.size())
      return "an extent of a device that the header does not have";
    if (seen[extent.device()]) return "two extents of one device";
    seen[extent.device()] = true;
    if (extent.begin_bytes() > extent.end_bytes()) return "an extent that ends before it begins";
    if (!AddWithin(extent.records(), summary.records(), &records)) {
      return "extents of more records than the trace has";
    }
  }
  if (summary.extents_size() > 0 && records != summary.records()) {
    return "extents of fewer records than the trace has";
  }
  return nullptr;
}

const char* FramesContradiction(const proto::Summary& summary, std::optional<uint64_t> file_bytes) {
  const proto::FrameIndex* before = nullptr;
  for (const proto::FrameIndex& frame : summary.frames()) {
    if (file_bytes && frame.offset_bytes() >= *file_bytes) {
      return "an index of a frame beyond the end of the file";
    }
    if (frame.first_record() > summary.records()) {
      return "an index of a frame beyond the last record";
    }
    if (before != nullptr && (frame.offset_bytes() <= before->offset_bytes() ||
                              frame.first_record() < before->first_record())) {
      return "an index of frames that is not in order";
    }
    if (frame.contents().begin_lba() > frame.contents().end_lba() ||
        frame.contents().least_bytes() > frame.contents().most_bytes()) {
      return "an index of a frame whose contents end before they begin";
    }
    before = &frame;
  }
  return nullptr;
}

}  // namespace

const char* SummaryContradiction(const proto::Header& header, const proto::Summary& summary,
                                 std::optional<uint64_t> file_bytes) {
  if (const char* reason = ExtentsContradiction(header, summary)) return reason;
  if (const char* reason = FramesContradiction(summary, file_bytes)) return reason;
  uint64_t records = 0;
  for (const auto& [op, count] : summary.records_by_op()) {
    if (!AddWithin(count, summary.records(), &records)) {
      return "operations of more records than the trace has";
    }
  }
  if (summary.completed() > summary.records()) return "more completions than records";
  if (summary.has_first_ns() && summary.has_last_ns() && summary.first_ns() > summary.last_ns()) {
    return "a last arrival before the first";
  }
  if (summary.has_late_ns_max() && summary.late_ns_max() < 0) return "a disorder below zero";
  if (static_cast<uint64_t>(summary.process_names_size()) > ProcessDictionary::kMaxNames) {
    return "more names of processes than a trace may have";
  }
  return nullptr;
}

}  // namespace blktape
