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
#include "format/trace.pb.h"
#include "host/block_device.h"
#include "host/kernel_fs.h"

namespace blktape {

struct TracefsOptions {
  uint64_t buffer_bytes_per_cpu = 0;  // 0: PlanBuffersHere()
};

// Records the kernel's block tracepoints through a private tracing instance. Works without BTF,
// under lockdown=integrity, and beside other tracers. One thread.
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
  void SetLayers(const std::vector<Layer>& layers) override;
  void SetOwnPids(const std::vector<uint32_t>& pids) override;
  void MarkThread() override;

 private:
  // One CPU's ring.
  struct Ring {
    uint32_t cpu = 0;
    UniqueFd pages;
    UniqueFd stats;
    // The kernel has no ring for this CPU, because the CPU was never online. poll() would always
    // return at once with an error for it.
    bool absent = false;
    int64_t read_to_ns = 0;
    std::unique_ptr<FtracePageDecoder> decoder;
    RingLossAccount loss;
  };
  class Translator;

  Status Configure();
  Status LoadFormats();
  Status OpenRings();
  // Sets the kernel's event filters to the device numbers of the disks and their partitions, and of
  // what lies on them.
  Status SetFilter();
  // Called every two seconds: looks for new partitions and CPUs that came online.
  Status Refresh();
  // Reads at most `max_pages`; true if the ring is then empty.
  Result<bool> ReadRing(Ring* ring, int max_pages, CaptureSink* sink);
  // Reads at most `max_pages` of all rings together, always from the ring that is furthest behind;
  // true if all are then empty.
  Result<bool> ReadRings(int max_pages, CaptureSink* sink);
  // Waits for new events.
  Status Wait(int timeout_ms);
  // Sets how full a ring must be to end that wait, in percent.
  void SetWake(std::string_view percent);
  Result<RingStats> ReadStats(const Ring& ring) const;
  // Reports what was not recorded while the rings grew.
  void ReportGrowth(CaptureSink* sink);

  std::vector<Disk> devices_;
  uint64_t buffer_bytes_per_cpu_;
  BlockDevices sysfs_;
  std::optional<KernelFs> tracefs_;
  std::unique_ptr<TraceInstance> instance_;
  std::optional<FtraceFormats> formats_;
  std::vector<std::string> events_;  // enabled events: "block_rq_issue" ...
  std::vector<Ring> rings_;
  std::vector<std::byte> page_;
  std::pair<std::string, std::string> filters_;  // of disks alone, and with what lies on them
  std::vector<Layer> layers_;
  // Maps a partition to its disk: bio events contain the partition's number but an address on the
  // disk.
  std::unordered_map<uint32_t, uint32_t> disk_of_;
  int64_t next_refresh_ns_ = 0;
  UniqueFd wake_percent_;                            // closed if the kernel lacks this file
  UniqueFd marker_;                                  // open in a PID namespace
  std::unordered_map<uint32_t, uint32_t> own_pids_;  // if not empty: maps the kernel's id to our
                                                     // own
  uint64_t events_read_ = 0;
  uint32_t quiet_turns_ = 0;
  uint64_t kernel_lost_ = 0;         // valid after Stop
  std::vector<proto::Loss> growth_;  // not reported yet
};

// The filter for a tracepoint with a field `dev`: "dev == 8388608 || (dev >= 8388609 && dev <=
// 8388612)". `devs` may be in any order. The kernel accepts less than a page, so if the filter
// would be longer than `max_bytes`, numbers near each other become one range, which includes the
// numbers in between.
std::string DeviceFilter(std::vector<uint32_t> devs, size_t max_bytes = 4095);

}  // namespace blktape
