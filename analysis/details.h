#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/address_heat_map.h"
#include "analysis/block_history.h"
#include "analysis/hours_of_day.h"
#include "analysis/latency_histogram.h"
#include "analysis/latency_sketch.h"
#include "analysis/reuse_distance.h"
#include "analysis/timeline.h"
#include "analysis/working_set.h"
#include "base/units.h"
#include "format/io_record.h"

namespace blktape {

// What a profile holds beside its totals where somebody asked for it: docs/metrics.md, "Details".
struct Details {
  struct LatencyParts {
    LatencySketch q2d, d2c, q2c;
  };
  // From the end of a data request to the beginning of the next on the same device. [0] of both is
  // no distance; [k] counts 2^(k-1) < bytes <= 2^k.
  struct Seeks {
    static constexpr size_t kClasses = 65;
    uint64_t count = 0;
    uint64_t sequential = 0;  // no distance
    std::array<uint64_t, kClasses> forward{}, backward{};
    double mean_bytes = 0;  // of all, forward and backward alike
  };
  struct Burst {
    int64_t window_ns = 0;
    uint64_t peak_ios = 0;
    double mean_ios = 0;  // ios * window / observed
  };
  struct SizeRow {
    uint64_t to_bytes =
        0;  // above half of it, up to it; the first from 1 B, the last has no bound (0)
    LatencyParts reads, writes;
  };
  struct NamedRow {
    std::string name;
    LatencyParts all;
  };
  struct DeviceMap {
    std::string device;
    AddressHeatMap map;
  };

  Timeline timeline;
  std::vector<DeviceMap> addresses;  // of the devices that were met first, at most kMostDevices
  Seeks q2q, d2d;                    // in order of arrival, of issue
  LatencyHistogram inter_arrival;
  std::array<Burst, 3> bursts;
  std::vector<SizeRow> by_size;      // data requests; rows without any are left out
  std::vector<NamedRow> by_flag;     // data requests that carry it, "none": no flag at all
  std::vector<NamedRow> by_process;  // data requests; most first
  uint64_t process_not_split = 0;    // data requests of processes beyond kMostProcesses
  // Data requests that begin where one of the last kStreams runs of their device ended.
  static constexpr size_t kStreams = 32;
  uint64_t continues_stream = 0;
  BlockHistory blocks;
  WorkingSet working_set;
  ReuseDistance reuse_distance;
  HoursOfDay hours;

  static constexpr size_t kMostDevices = 8;
  static constexpr size_t kMostProcesses = 1'024;
};

// Fed by ProfileBuilder. Memory: at most some 16 MiB. Not thread-safe.
class DetailsBuilder {
 public:
  // What is known before: how long it will be, and where requests of each device end.
  struct Expected {
    int64_t length_ns = 0;
    std::vector<uint64_t> end_bytes;  // by device
  };
  explicit DetailsBuilder(Expected expected);

  // In the order of the records; times that are not plausible are absent. `local_ns`: when it
  // arrived by the clock on the wall.
  void AddHour(const IoRecord& io, std::optional<int64_t> local_ns) {
    details_.hours.Add(local_ns, io.op, io.bytes);
  }
  void AddRecord(const IoRecord& io, std::optional<int64_t> arrival_ns,
                 std::optional<int64_t> queue_ns, std::optional<int64_t> issue_ns,
                 std::optional<int64_t> complete_ns);
  // In order of issue: a data request with an address.
  void AddIssuedData(int64_t start_ns, uint32_t device, uint64_t offset_bytes, uint64_t bytes,
                     bool write);
  // In order of issue: a data request that completed.
  void AddInFlight(int64_t start_ns, int64_t end_ns);
  void AddBusy(int64_t start_ns, int64_t end_ns);

  template <typename DeviceName, typename ProcessName>
  Details Finish(int64_t observed_ns, uint64_t ios, DeviceName&& device_name,
                 ProcessName&& process_name) {
    for (auto& [id, row] : processes_) row.name = process_name(id);
    for (auto& [index, device] : devices_) device.name = device_name(index);
    return FinishNamed(observed_ns, ios);
  }

 private:
  struct Last {  // where the data request before ended
    bool known = false;
    uint64_t end_bytes = 0;
  };
  struct Device {
    std::string name;
    std::optional<AddressMapBuilder> map;
    Last arrived, issued;
    std::array<uint64_t, Details::kStreams> stream_ends{};  // most recent first
    size_t streams = 0;
  };
  struct Window {
    int64_t length_ns = 0;
    int64_t number = 0;
    uint64_t ios = 0;
    uint64_t peak_ios = 0;
  };
  static constexpr size_t kSizeRows = 12;
  static constexpr size_t kFlagRows = 6;

  Device& DeviceOf(uint32_t index);
  static void AddSeek(Last* last, uint64_t offset_bytes, uint64_t bytes, Details::Seeks* seeks);
  Details FinishNamed(int64_t observed_ns, uint64_t ios);

  Expected expected_;
  Details details_;
  TimelineBuilder timeline_;
  BlockHistoryBuilder blocks_;
  WorkingSetBuilder working_set_;
  ReuseDistanceBuilder reuse_distance_;
  std::optional<int64_t> first_ns_;
  int64_t last_arrival_ns_ = 0;
  std::unordered_map<uint32_t, Device> devices_;
  size_t maps_ = 0;
  std::array<Window, 3> windows_;
  std::array<Details::SizeRow, kSizeRows> by_size_;
  std::array<Details::LatencyParts, kFlagRows> by_flag_;
  struct Process {
    std::string name;
    Details::LatencyParts all;
  };
  std::unordered_map<uint32_t, Process> processes_;
  std::unique_ptr<Details::LatencyParts> no_process_;
};

}  // namespace blktape
