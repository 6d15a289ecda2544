#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"
#include "capture/source/ring_loss.h"
#include "capture/tracefs/ftrace_page_decoder.h"
#include "capture/tracefs/trace_instance.h"
#include "host/block_device.h"
#include "host/kernel_fs.h"

namespace blktape {

struct TracefsOptions {
  uint64_t buffer_bytes_per_cpu = 0;  // 0: PlanBuffersHere()
};

// Records by the block tracepoints of the kernel, through a tracing instance of its own: works
// without BTF, under lockdown=integrity, and beside any other tracer. One thread.
class TracefsSource : public LiveSource {
 public:
  TracefsSource(std::vector<Disk> devices, const TracefsOptions& options);

  std::string_view name() const override { return "tracefs"; }
  Status Start() override;
  Result<bool> Poll(int timeout_ms, CaptureSink* sink) override;
  Status Stop(CaptureSink* sink) override;
  std::vector<Disk> devices() const override { return devices_; }

  uint64_t buffer_bytes_per_cpu() const override { return buffer_bytes_per_cpu_; }
  Result<uint64_t> KernelLost() override;
  Result<bool> Grow(uint64_t limit_bytes) override;
  Status Add(const Disk& disk) override;
  void Remove(const Disk& disk) override;
  void MarkThread() override;

 private:
  // One CPU's ring.
  struct Ring {
    uint32_t cpu = 0;
    UniqueFd pages;
    UniqueFd stats;
    // The kernel has made no ring for this CPU, as it was never on: poll() calls that an error at
    // once, for ever.
    bool absent = false;
    int64_t read_to_ns = 0;
    std::unique_ptr<FtracePageDecoder> decoder;
    RingLossAccount loss;
  };
  class Translator;

  Status Configure();
  Status LoadFormats();
  Status OpenRings();
  // The kernel's filter: the disks and their partitions, by device number.
  Status SetFilter();
  // Every two seconds: partitions that appear, CPUs that come on.
  Status Refresh();
  // Reads at most `max_pages`; true if the ring had no more.
  Result<bool> ReadRing(Ring* ring, int max_pages, CaptureSink* sink);
  // At most `max_pages` of all rings together, always of the one that is furthest behind; true if
  // none had more.
  Result<bool> ReadRings(int max_pages, CaptureSink* sink);
  // Waits for news.
  Status Wait(int timeout_ms);
  // How full a ring ends that, in per cent.
  void SetWake(std::string_view percent);
  Result<RingStats> ReadStats(const Ring& ring) const;

  std::vector<Disk> devices_;
  uint64_t buffer_bytes_per_cpu_;
  BlockDevices sysfs_;
  std::optional<KernelFs> tracefs_;
  std::unique_ptr<TraceInstance> instance_;
  std::optional<FtraceFormats> formats_;
  std::vector<std::string> events_;  // enabled: "block_rq_issue" ...
  std::vector<Ring> rings_;
  std::vector<std::byte> page_;
  std::string filter_;
  // Partition to its disk: events of bios name the partition, with an address on the disk.
  std::unordered_map<uint32_t, uint32_t> disk_of_;
  int64_t next_refresh_ns_ = 0;
  UniqueFd wake_percent_;                            // closed where the kernel has no such thing
  UniqueFd marker_;                                  // open in a PID namespace
  std::unordered_map<uint32_t, uint32_t> own_pids_;  // there: the kernel's id to our own
  uint64_t events_read_ = 0;
  uint32_t quiet_turns_ = 0;
  uint64_t kernel_lost_ = 0;  // after Stop
};

// The filter of a tracepoint that has a field `dev`: "dev == 8388608 || (dev >= 8388609 && dev <=
// 8388612)". `devs` in any order. The kernel takes less than a page: where it would be more than
// `max_bytes`, numbers that lie near each other are one range, others in between included.
std::string DeviceFilter(std::vector<uint32_t> devs, size_t max_bytes = 4095);

}  // namespace blktape
