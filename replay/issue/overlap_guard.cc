#include "replay/issue/overlap_guard.h"

namespace blktape {
namespace {

bool ChangesData(Op op) { return op != Op::kRead; }

}  // namespace

OverlapGuard::OverlapGuard(uint32_t slots) : out_(slots) { used_.reserve(slots); }

uint32_t OverlapGuard::Bucket(uint32_t target, uint64_t region) {
  const uint64_t mixed = (region + target * 0x9e3779b97f4a7c15u) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(mixed >> 52);
}
static_assert(uint64_t{1} << (64 - 52) == 4096);

bool OverlapGuard::Conflicts(uint32_t target, Op op, uint64_t begin_bytes, uint64_t bytes,
                             uint64_t sequence) const {
  if (bytes == 0 || used_.empty()) return false;
  const bool changes = ChangesData(op);
  if (!changes && changing_ == 0) return false;
  const uint64_t end_bytes = begin_bytes + bytes;
  const uint64_t first = begin_bytes >> kRegionShift;
  const uint64_t last = (end_bytes - 1) >> kRegionShift;
  bool near = wide_ > 0 || last - first >= kMaxRegions;
  for (uint64_t region = first; !near && region <= last; ++region) {
    const Counts& counts = table_[Bucket(target, region)];
    near = (changes ? counts.any : counts.changing) > 0;
  }
  if (!near) return false;
  for (const uint32_t slot : used_) {
    const Out& out = out_[slot];
    if (out.begin_bytes < end_bytes && begin_bytes < out.end_bytes && (changes || out.changes) &&
        out.sequence < sequence && out.target == target) {
      return true;
    }
  }
  return false;
}

bool OverlapGuard::Hinders(uint32_t earlier, uint32_t later) const {
  const Out& a = out_[earlier];
  const Out& b = out_[later];
  return a.begin_bytes < b.end_bytes && b.begin_bytes < a.end_bytes && (a.changes || b.changes) &&
         a.sequence < b.sequence && a.target == b.target;
}

void OverlapGuard::Count(const Out& out, int by) {
  if (out.changes) changing_ += by;
  const uint64_t first = out.begin_bytes >> kRegionShift;
  const uint64_t last = (out.end_bytes - 1) >> kRegionShift;
  if (last - first >= kMaxRegions) {
    wide_ += by;
    return;
  }
  for (uint64_t region = first; region <= last; ++region) {
    Counts& counts = table_[Bucket(out.target, region)];
    counts.any += by;
    if (out.changes) counts.changing += by;
  }
}

void OverlapGuard::Add(uint32_t slot, uint32_t target, Op op, uint64_t begin_bytes, uint64_t bytes,
                       uint64_t sequence) {
  if (bytes == 0) return;
  Out& out = out_[slot];
  out = Out{.begin_bytes = begin_bytes,
            .end_bytes = begin_bytes + bytes,
            .sequence = sequence,
            .target = target,
            .place = static_cast<uint32_t>(used_.size()),
            .changes = ChangesData(op)};
  used_.push_back(slot);
  Count(out, 1);
}

void OverlapGuard::Remove(uint32_t slot) {
  Out& out = out_[slot];
  if (out.end_bytes == 0) return;
  Count(out, -1);
  used_[out.place] = used_.back();
  out_[used_.back()].place = out.place;
  used_.pop_back();
  out.end_bytes = 0;
}

}  // namespace blktape
