#include "capture/source/live_source.h"

#include <unistd.h>

#include <algorithm>

#include "base/process.h"
#include "host/machine.h"

namespace blktape {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

// Above all ids that Linux gives to processes (PID_MAX_LIMIT, 1 << 22).
constexpr uint32_t kOwnIds = 1u << 30;

}  // namespace

uint32_t LiveSource::OwnId(uint32_t tid) {
  static const bool is_local = LocalPidNamespace().has_value();
  return is_local ? kOwnIds | tid : tid;
}

BufferPlan PlanBuffers(uint64_t memory_bytes, uint32_t cpus,
                       std::optional<uint64_t> allowed_bytes) {
  const uint64_t cpu_count = std::max<uint32_t>(cpus, 1);
  BufferPlan plan;
  const uint64_t total = std::min(16 * kMiB, memory_bytes / 64);
  plan.bytes_per_cpu = std::max(total / cpu_count, kMiB / 2);
  const uint64_t begin_bytes = plan.bytes_per_cpu * cpu_count;
  plan.limit_bytes = std::max(begin_bytes, std::min(16 * begin_bytes, memory_bytes / 32));
  if (allowed_bytes) plan.limit_bytes = std::min(plan.limit_bytes, *allowed_bytes / 8);
  return plan;
}

BufferPlan PlanBuffersHere() {
  return PlanBuffersHere(static_cast<uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
}

BufferPlan PlanBuffersHere(uint32_t rings) {
  const auto pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return PlanBuffers(pages * page_bytes, rings, ControlGroupMemoryBytes());
}

}  // namespace blktape
