#include "format/frame_index.h"

#include <algorithm>

#include "base/saturating.h"
#include "base/units.h"

namespace blktape {
namespace {

constexpr int64_t kUsualNs = int64_t{1} << 60;

bool IsUsual(const std::optional<int64_t>& time_ns) {
  return !time_ns || (*time_ns >= -kUsualNs && *time_ns <= kUsualNs);
}

uint64_t BitOf(uint32_t id) { return uint64_t{1} << id % 64; }

// Whether the frames of entry `index` are to be skipped.
bool IsSkipped(const proto::Summary& summary, int index, const FrameChoice& choice) {
  const proto::FrameIndex& frame = summary.frames(index);
  if (!frame.has_contents() || frame.contents().others()) return false;
  // An operation of a newer version counts as a loss.
  if (frame.contents().ops() >> kOpCount != 0) return false;
  if (choice.before_ns != std::numeric_limits<int64_t>::max()) {
    if (!summary.has_late_ns_max() || !summary.has_last_ns()) return false;
    // No record here arrived later than that.
    const int64_t last_ns =
        index + 1 < summary.frames_size()
            ? SaturatingAdd(summary.frames(index + 1).first_ns(), summary.late_ns_max())
            : summary.last_ns();
    if (last_ns >= choice.before_ns) return false;
  }
  return !choice.wanted(frame.contents());
}

}  // namespace

void ProcessBits::Unite(const ProcessBits& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

std::string ProcessBits::Bytes() const {
  std::string bytes;
  for (const uint64_t word : words_) {
    for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>(word >> shift));
  }
  bytes.resize(bytes.find_last_not_of('\0') + 1);
  return bytes;
}

bool ProcessBits::Meets(std::string_view bytes) const {
  for (size_t i = 0; i < bytes.size() && i < kBits / 8; ++i) {
    if ((static_cast<uint8_t>(bytes[i]) & words_[i / 8] >> i % 8 * 8) != 0) return true;
  }
  return false;
}

void FrameContents::Add(const IoRecord& record) {
  const uint32_t op = 1u << static_cast<uint32_t>(record.op);
  ops_ |= op;
  devices_ |= BitOf(record.device);
  if (record.process) {
    processes_.Add(*record.process);
  } else {
    without_process_ = true;
  }
  if (record.lba) {
    const uint64_t sectors =
        record.bytes / kSectorBytes + (record.bytes % kSectorBytes != 0 ? 1 : 0);
    begin_lba_ = std::min(begin_lba_, record.lba->sectors);
    end_lba_ =
        std::max(end_lba_, SaturatingAdd(record.lba->sectors, std::max<uint64_t>(sectors, 1)));
  } else {
    ops_without_address_ |= op;
  }
  least_bytes_ = std::min(least_bytes_, record.bytes);
  most_bytes_ = std::max(most_bytes_, record.bytes);
  if (!IsUsual(record.queue_ns) || !IsUsual(record.issue_ns) || !IsUsual(record.complete_ns)) {
    others_ = true;
  }
}

void FrameContents::Unite(const FrameContents& other) {
  ops_ |= other.ops_;
  ops_without_address_ |= other.ops_without_address_;
  devices_ |= other.devices_;
  processes_.Unite(other.processes_);
  begin_lba_ = std::min(begin_lba_, other.begin_lba_);
  end_lba_ = std::max(end_lba_, other.end_lba_);
  least_bytes_ = std::min(least_bytes_, other.least_bytes_);
  most_bytes_ = std::max(most_bytes_, other.most_bytes_);
  without_process_ |= other.without_process_;
  queued_sizes_ |= other.queued_sizes_;
  anchors_ |= other.anchors_;
  others_ |= other.others_;
}

void FrameContents::Store(proto::FrameContents* contents) const {
  contents->set_ops(ops_);
  contents->set_devices(devices_);
  contents->set_processes(processes_.Bytes());
  contents->set_without_process(without_process_);
  contents->set_ops_without_address(ops_without_address_);
  contents->set_begin_lba(end_lba_ == 0 ? 0 : begin_lba_);
  contents->set_end_lba(end_lba_);
  contents->set_least_bytes(ops_ == 0 ? 0 : least_bytes_);
  contents->set_most_bytes(most_bytes_);
  contents->set_queued_sizes(queued_sizes_);
  contents->set_anchors(anchors_);
  contents->set_others(others_);
}

void FrameIndexBuilder::Add(uint64_t offset_bytes, std::optional<int64_t> first_ns,
                            uint64_t first_record, const FrameContents& contents) {
  if (!first_ns || seen_++ % stride_ != 0) {
    if (!entries_.empty()) entries_.back().contents.Unite(contents);
    return;
  }
  if (entries_.size() == kMaxEntries) {
    for (size_t i = 0; i < kMaxEntries / 2; ++i) {
      entries_[i] = entries_[2 * i];
      entries_[i].contents.Unite(entries_[2 * i + 1].contents);
    }
    entries_.resize(kMaxEntries / 2);
    stride_ *= 2;
  }
  entries_.push_back({offset_bytes, *first_ns, first_record, contents});
}

void FrameIndexBuilder::Store(proto::Summary* summary) const {
  summary->clear_frames();
  for (const Entry& entry : entries_) {
    proto::FrameIndex* const frame = summary->add_frames();
    frame->set_offset_bytes(entry.offset_bytes);
    frame->set_first_ns(entry.first_ns);
    frame->set_first_record(entry.first_record);
    entry.contents.Store(frame->mutable_contents());
  }
}

const proto::FrameIndex* FindFrame(const proto::Summary& summary, int64_t arrival_ns) {
  if (!summary.has_late_ns_max()) return nullptr;
  // Records before a frame arrived at most this long after the frame's first record.
  const int64_t begin_ns = SaturatingSubtract(arrival_ns, summary.late_ns_max());
  const proto::FrameIndex* found = nullptr;
  for (const proto::FrameIndex& frame : summary.frames()) {
    if (found != nullptr && frame.first_ns() >= begin_ns) break;
    found = &frame;
  }
  return found;
}

std::optional<FrameSkip> FindSkip(const proto::Summary& summary, uint64_t summary_bytes,
                                  const FrameChoice& choice, uint64_t offset_bytes) {
  const auto& frames = summary.frames();
  const auto at = std::lower_bound(frames.begin(), frames.end(), offset_bytes,
                                   [](const proto::FrameIndex& frame, uint64_t offset) {
                                     return frame.offset_bytes() < offset;
                                   });
  if (at == frames.end() || at->offset_bytes() != offset_bytes) return std::nullopt;
  std::optional<FrameSkip> skip;
  for (int i = static_cast<int>(at - frames.begin()); i < frames.size(); ++i) {
    if (!IsSkipped(summary, i, choice)) break;
    const bool last = i + 1 == frames.size();
    const uint64_t to_bytes = last ? summary_bytes : frames[i + 1].offset_bytes();
    if (to_bytes > summary_bytes || to_bytes <= frames[i].offset_bytes()) break;
    skip = {offset_bytes, to_bytes, last ? summary.records() : frames[i + 1].first_record()};
  }
  return skip;
}

}  // namespace blktape
