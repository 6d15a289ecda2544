#include "format/frame_index.h"

#include "base/saturating.h"

namespace blktape {

void FrameIndexBuilder::Add(uint64_t offset_bytes, std::optional<int64_t> first_ns,
                            uint64_t first_record) {
  if (!first_ns) return;
  if (seen_++ % stride_ != 0) return;
  if (entries_.size() == kMaxEntries) {
    for (size_t i = 0; i < kMaxEntries / 2; ++i) entries_[i] = entries_[2 * i];
    entries_.resize(kMaxEntries / 2);
    stride_ *= 2;
  }
  entries_.push_back({offset_bytes, *first_ns, first_record});
}

void FrameIndexBuilder::Store(proto::Summary* summary) const {
  summary->clear_frames();
  for (const Entry& entry : entries_) {
    proto::FrameIndex* const frame = summary->add_frames();
    frame->set_offset_bytes(entry.offset_bytes);
    frame->set_first_ns(entry.first_ns);
    frame->set_first_record(entry.first_record);
  }
}

const proto::FrameIndex* FindFrame(const proto::Summary& summary, int64_t arrival_ns) {
  if (!summary.has_late_ns_max()) return nullptr;
  // What stands before a frame arrived at most that long after the frame's first record.
  const int64_t begin_ns = SaturatingSubtract(arrival_ns, summary.late_ns_max());
  const proto::FrameIndex* found = nullptr;
  for (const proto::FrameIndex& frame : summary.frames()) {
    if (found != nullptr && frame.first_ns() >= begin_ns) break;
    found = &frame;
  }
  return found;
}

}  // namespace blktape
