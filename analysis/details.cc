#include "analysis/details.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/saturating.h"

namespace blktape {
namespace {

constexpr uint64_t kFirstSizeBytes = 1024;
constexpr std::array<std::pair<uint32_t, const char*>, 5> kFlags = {
    {{kFlagSync, "sync"},
     {kFlagFua, "fua"},
     {kFlagPreflush, "preflush"},
     {kFlagMeta, "meta"},
     {kFlagReadahead, "readahead"}}};
constexpr uint32_t kNamedFlags = kFlagSync | kFlagFua | kFlagPreflush | kFlagMeta | kFlagReadahead;
// Devices beyond that share the state of the last: a file may name any number.
constexpr uint32_t kMostDeviceStates = 4'096;

// 0 up to 1 KiB, 1 up to 2 KiB ... 10 up to 1 MiB, 11 above.
size_t SizeRowOf(uint64_t bytes) {
  if (bytes <= kFirstSizeBytes) return 0;
  return static_cast<size_t>(std::min<uint64_t>(std::bit_width((bytes - 1) / kFirstSizeBytes), 11));
}

}  // namespace

DetailsBuilder::DetailsBuilder(Expected expected)
    : expected_(std::move(expected)), timeline_(expected_.length_ns) {
  windows_[0].length_ns = kNanosPerMilli;
  windows_[1].length_ns = kNanosPerSecond;
  windows_[2].length_ns = 60 * kNanosPerSecond;
  for (size_t i = 0; i < kSizeRows; ++i) {
    by_size_[i].to_bytes = i + 1 < kSizeRows ? kFirstSizeBytes << i : 0;
  }
}

DetailsBuilder::Device& DetailsBuilder::DeviceOf(uint32_t index) {
  Device& device = devices_[std::min(index, kMostDeviceStates)];
  if (!device.map && maps_ < Details::kMostDevices && index < kMostDeviceStates) {
    device.map.emplace(expected_.length_ns,
                       index < expected_.end_bytes.size() ? expected_.end_bytes[index] : 0);
    ++maps_;
  }
  return device;
}

void DetailsBuilder::AddSeek(Last* last, uint64_t offset_bytes, uint64_t bytes,
                             Details::Seeks* seeks) {
  if (last->known) {
    ++seeks->count;
    if (offset_bytes == last->end_bytes) {
      ++seeks->sequential;
    } else {
      const bool forward = offset_bytes > last->end_bytes;
      const uint64_t distance =
          forward ? offset_bytes - last->end_bytes : last->end_bytes - offset_bytes;
      ++(forward ? seeks->forward
                 : seeks->backward)[static_cast<size_t>(std::bit_width(distance - 1))];
      seeks->mean_bytes += static_cast<double>(distance);  // the sum, until the end
    }
  }
  *last = {true, SaturatingAdd(offset_bytes, bytes)};
}

void DetailsBuilder::AddRecord(const IoRecord& io, std::optional<int64_t> arrival_ns,
                               std::optional<int64_t> queue_ns, std::optional<int64_t> issue_ns,
                               std::optional<int64_t> complete_ns) {
  const bool data = (io.op == Op::kRead || io.op == Op::kWrite) && io.bytes > 0;
  const auto between = [](std::optional<int64_t> from_ns, std::optional<int64_t> to_ns) {
    return from_ns && to_ns && *to_ns >= *from_ns ? std::optional(*to_ns - *from_ns) : std::nullopt;
  };
  const std::optional<int64_t> d2c_ns = between(issue_ns, complete_ns);
  if (arrival_ns) {
    if (!first_ns_) {
      first_ns_ = last_arrival_ns_ = *arrival_ns;
    } else if (*arrival_ns >= last_arrival_ns_) {
      details_.inter_arrival.Add(*arrival_ns - last_arrival_ns_);
      last_arrival_ns_ = *arrival_ns;
    }
    const int64_t at_ns = *arrival_ns - *first_ns_;
    timeline_.AddArrival(at_ns, io, d2c_ns);
    for (Window& window : windows_) {
      const int64_t number = at_ns / window.length_ns;
      if (number > window.number) {
        window.number = number;
        window.ios = 0;
      }
      window.peak_ios = std::max(window.peak_ios, ++window.ios);
    }
  }
  if (!data) return;
  Device& device = DeviceOf(io.device);
  if (io.lba) {
    AddSeek(&device.arrived, io.lba->bytes(), io.bytes, &details_.q2q);
    if (device.map && arrival_ns) {
      device.map->Add(*arrival_ns - *first_ns_, io.lba->bytes(), io.op == Op::kWrite);
    }
  }
  const std::optional<int64_t> q2d_ns = between(queue_ns, issue_ns);
  const std::optional<int64_t> q2c_ns = between(queue_ns, complete_ns);
  const auto add = [&](Details::LatencyParts* parts) {
    if (q2d_ns) parts->q2d.Add(*q2d_ns);
    if (d2c_ns) parts->d2c.Add(*d2c_ns);
    if (q2c_ns) parts->q2c.Add(*q2c_ns);
  };
  Details::SizeRow& size = by_size_[SizeRowOf(io.bytes)];
  add(io.op == Op::kRead ? &size.reads : &size.writes);
  if ((io.flags & kNamedFlags) == 0) {
    add(&by_flag_.back());
  } else {
    for (size_t i = 0; i < kFlags.size(); ++i) {
      if ((io.flags & kFlags[i].first) != 0) add(&by_flag_[i]);
    }
  }
  if (!io.process) {
    if (no_process_ == nullptr) no_process_ = std::make_unique<Details::LatencyParts>();
    add(no_process_.get());
    return;
  }
  auto found = processes_.find(*io.process);
  if (found == processes_.end()) {
    if (processes_.size() >= Details::kMostProcesses) {
      ++details_.process_not_split;
      return;
    }
    found = processes_.try_emplace(*io.process).first;
  }
  add(&found->second.all);
}

void DetailsBuilder::AddIssuedData(int64_t start_ns, uint32_t device_index, uint64_t offset_bytes,
                                   uint64_t bytes, bool write) {
  Device& device = DeviceOf(device_index);
  AddSeek(&device.issued, offset_bytes, bytes, &details_.d2d);
  // The run that it continues moves to the front; else a new one pushes out the oldest.
  auto* const begin = device.stream_ends.data();
  auto* at = std::find(begin, begin + device.streams, offset_bytes);
  if (at != begin + device.streams) {
    ++details_.continues_stream;
  } else if (device.streams < Details::kStreams) {
    ++device.streams;
  } else {
    --at;
  }
  std::copy_backward(begin, at, at + 1);
  *begin = SaturatingAdd(offset_bytes, bytes);
  blocks_.Add(start_ns, device_index, offset_bytes, bytes, write);
  working_set_.Add(start_ns, device_index, offset_bytes, bytes);
  reuse_distance_.Add(device_index, offset_bytes, bytes);
}

void DetailsBuilder::AddInFlight(int64_t start_ns, int64_t end_ns) {
  if (first_ns_) timeline_.AddInFlight(start_ns - *first_ns_, end_ns - *first_ns_);
}

void DetailsBuilder::AddBusy(int64_t start_ns, int64_t end_ns) {
  if (first_ns_) timeline_.AddBusy(start_ns - *first_ns_, end_ns - *first_ns_);
}

Details DetailsBuilder::FinishNamed(int64_t observed_ns, uint64_t ios) {
  Details& details = details_;
  details.timeline = timeline_.Finish(observed_ns);
  std::vector<std::pair<uint32_t, Device*>> mapped;
  for (auto& [index, device] : devices_) {
    if (device.map) mapped.emplace_back(index, &device);
  }
  std::sort(mapped.begin(), mapped.end());
  for (const auto& [index, device] : mapped) {
    details.addresses.push_back({device->name, device->map->Finish(observed_ns)});
  }
  for (Details::Seeks* seeks : {&details.q2q, &details.d2d}) {
    if (seeks->count > 0) seeks->mean_bytes /= static_cast<double>(seeks->count);
  }
  for (size_t i = 0; i < windows_.size(); ++i) {
    Details::Burst& burst = details.bursts[i];
    burst.window_ns = windows_[i].length_ns;
    burst.peak_ios = windows_[i].peak_ios;
    if (observed_ns > 0) {
      burst.mean_ios = static_cast<double>(ios) * static_cast<double>(burst.window_ns) /
                       static_cast<double>(observed_ns);
    }
  }
  const auto any = [](const Details::LatencyParts& parts) {
    return parts.q2d.count() + parts.d2c.count() + parts.q2c.count() > 0;
  };
  for (Details::SizeRow& row : by_size_) {
    if (any(row.reads) || any(row.writes)) details.by_size.push_back(row);
  }
  for (size_t i = 0; i < by_flag_.size(); ++i) {
    if (any(by_flag_[i])) {
      details.by_flag.push_back({i < kFlags.size() ? kFlags[i].second : "none", by_flag_[i]});
    }
  }
  for (auto& [id, process] : processes_) details.by_process.push_back({process.name, process.all});
  if (no_process_ != nullptr) details.by_process.push_back({"", *no_process_});
  std::sort(details.by_process.begin(), details.by_process.end(), [](const auto& a, const auto& b) {
    if (a.all.d2c.count() != b.all.d2c.count()) return a.all.d2c.count() > b.all.d2c.count();
    return a.name < b.name;
  });
  details.blocks = blocks_.Finish();
  details.working_set = working_set_.Finish();
  details.reuse_distance = reuse_distance_.Finish();
  return std::move(details_);
}

}  // namespace blktape
