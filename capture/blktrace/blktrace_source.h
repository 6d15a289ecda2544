#pragma once

#include <atomic>
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
#include "capture/blktrace/blktrace_decoder.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"
#include "capture/source/ring_loss.h"
#include "format/trace.pb.h"
#include "host/kernel_fs.h"

namespace blktape {

struct BlktraceOptions {
  uint64_t buffer_bytes_per_cpu = 0;  // 0: PlanBuffersHere()
  // The folder where a running recording stores its owner, so that tracing left in the kernel by a
  // crash can be distinguished from another recorder's.
  std::string state_folder = "/run/blktape";
};

// Records with the kernel's blktrace facility: one set of per-CPU relay files per disk, in debugfs.
// For machines without the other facilities; a kernel in lockdown refuses it. Only one recorder per
// disk. One thread.
class BlktraceSource : public LiveSource {
 public:
  BlktraceSource(std::vector<Disk> devices, const BlktraceOptions& options);
  ~BlktraceSource() override;

  std::string_view name() const override { return "blktrace"; }
  Status Start() override;
  Result<bool> Poll(int timeout_ms, CaptureSink* sink) override;
  Status Stop(CaptureSink* sink) override;
  std::vector<Disk> devices() const override { return devices_; }

  uint64_t buffer_bytes_per_cpu() const override { return buffer_bytes_per_cpu_; }
  Result<uint64_t> KernelLost() override;
  std::optional<proto::LossReason> Ended(const Disk& device) const override;
  void SetOwnPids(const std::vector<uint32_t>& pids) override;
  void MarkThread() override;
  // The relay's size is fixed while tracing runs.
  Result<bool> Grow(uint64_t /*limit_bytes*/) override { return false; }

 private:
  struct Relay {
    uint32_t cpu = 0;
    uint32_t stream = 0;
    UniqueFd file;
    std::unique_ptr<BlktraceDecoder> decoder;
  };
  struct TracedDisk {
    Disk device;
    UniqueFd file;
    bool set_up = false;
    std::string state_path;
    UniqueFd dropped;
    std::vector<Relay> relays;
    RingLossAccount loss;
    int64_t last_drop_check_ns = 0;
  };
  class Translator;
  class OwnNames;

  Status StartDisk(TracedDisk* disk, uint32_t index);
  // Returns the disk's folder name in debugfs/block.
  Result<std::string> SetUp(TracedDisk* disk);
  Status OpenRelays(TracedDisk* disk, uint32_t index, const std::string& folder);
  bool RemoveDead(TracedDisk* disk) const;
  // The kernel's tracing of the disk has ended, and not through us.
  void NoteEnd(TracedDisk* disk);
  void TearDown(TracedDisk* disk);
  // Reads a relay until it is empty or `max_bytes` were read; true if it is empty.
  Result<bool> ReadRelay(TracedDisk* disk, Relay* relay, uint64_t max_bytes, CaptureSink* sink);
  Status ReadAll(uint64_t max_bytes_each, CaptureSink* sink);
  Status ReadRelays(uint64_t max_bytes_each, bool* drained, CaptureSink* sink);
  uint64_t ReadDropped(const TracedDisk& disk) const;
  void ReportDropped(TracedDisk* disk, CaptureSink* sink);

  std::vector<Disk> devices_;
  uint64_t buffer_bytes_per_cpu_;
  std::string state_folder_;
  std::optional<KernelFs> debugfs_;
  std::vector<TracedDisk> disks_;
  std::vector<std::byte> buffer_;
  // In a PID namespace: each disk's file for messages, and what they told of our threads.
  std::vector<UniqueFd> messages_;
  std::atomic<int64_t> marked_ns_{0};                // when the last of our threads has left one
  std::unordered_map<uint32_t, uint32_t> own_pids_;  // the kernel's id to our own
  uint64_t kernel_lost_ = 0;                         // valid after Stop
  std::unordered_map<uint32_t, proto::LossReason> ended_;  // reason, by dev_t
};

}  // namespace blktape
