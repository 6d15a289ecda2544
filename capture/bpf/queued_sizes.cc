#include "capture/bpf/queued_sizes.h"

#include <bpf/bpf.h>

#include "base/units.h"
#include "format/io_record.h"

namespace blktape {

Status QueuedSizes::Open(int common_fd, int rare_fd, size_t cpus) {
  RETURN_IF_ERROR(counts_.Map(common_fd, cpus));
  told_.assign(cpus, Counts{});
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
  for (uint32_t op = 0; op < BLKTAPE_SIZE_OPS; ++op) {
    for (uint32_t sectors = 0; sectors < BLKTAPE_SIZE_SLOTS; ++sectors) {
      uint64_t count = 0;
      for (size_t cpu = 0; cpu < told_.size(); ++cpu) {
        const uint64_t now = counts_[cpu].count[op][sectors];
        uint64_t& before = told_[cpu].count[op][sectors];
        count += now - before;
        before = now;
      }
      if (count > 0) sink->OnQueuedSizes(static_cast<Op>(op), sectors * kSectorBytes, count);
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
