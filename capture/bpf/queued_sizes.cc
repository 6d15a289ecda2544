#include "capture/bpf/queued_sizes.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/units.h"
#include "format/io_record.h"

namespace blktape {

Status QueuedSizes::Open(int common_fd, int rare_fd, size_t cpus) {
  RETURN_IF_ERROR(counts_.Map(common_fd, cpus, PROT_READ | PROT_WRITE));
  told_.assign(cpus, Counts{});
  queued_.assign(BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS, 0);
  rare_fd_ = rare_fd;
  told_rare_.clear();
  return OkStatus();
}

void QueuedSizes::Close() {
  counts_.Unmap();
  told_.clear();
  rare_fd_ = -1;
}

void QueuedSizes::Report(CaptureSink* sink) {
  constexpr size_t kCounts = BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS;
  constexpr size_t kPart = BLKTAPE_SIZE_PART;
  std::array<bool, BLKTAPE_SIZE_PARTS> any{};
  for (size_t cpu = 0; cpu < told_.size(); ++cpu) {
    Counts& now = counts_.writable(cpu);
    for (size_t part = 0; part < any.size(); ++part) {
      std::atomic_ref touched(now.touched[part]);
      if (touched.load(std::memory_order_relaxed) == 0) continue;
      // Cleared before the counts are read: a program that counts afterwards sets it again.
      touched.store(0, std::memory_order_seq_cst);
      any[part] = true;
      for (size_t i = part * kPart; i < std::min(kCounts, (part + 1) * kPart); ++i) {
        const uint64_t count = now.count[i];
        queued_[i] += count - std::exchange(told_[cpu].count[i], count);
      }
    }
  }
  for (size_t part = 0; part < any.size(); ++part) {
    if (!any[part]) continue;
    for (size_t i = part * kPart; i < std::min(kCounts, (part + 1) * kPart); ++i) {
      const uint64_t count = std::exchange(queued_[i], 0);
      if (count == 0) continue;
      sink->OnQueuedSizes(static_cast<Op>(i / BLKTAPE_SIZE_SLOTS),
                          i % BLKTAPE_SIZE_SLOTS * kSectorBytes, count);
    }
  }
  ReportRare(sink);
}

void QueuedSizes::ReportRare(CaptureSink* sink) {
  blktape_size_key key{};
  blktape_size_key* previous = nullptr;
  blktape_size_key next{};
  while (bpf_map_get_next_key(rare_fd_, previous, &next) == 0) {
    uint64_t now = 0;
    if (bpf_map_lookup_elem(rare_fd_, &next, &now) == 0) {
      uint64_t& before = told_rare_[{next.op, next.bytes}];
      if (now > before) sink->OnQueuedSizes(static_cast<Op>(next.op), next.bytes, now - before);
      before = now;
    }
    key = next;
    previous = &key;
  }
}

}  // namespace blktape
