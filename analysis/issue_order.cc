#include "analysis/issue_order.h"

#include <algorithm>
#include <limits>
#include <span>

#include "analysis/in_flight.h"
#include "analysis/profile_counts.h"
#include "base/saturating.h"
#include "base/units.h"

namespace blktape {
namespace {

using Fields = RecordColumns;

// Sums rather than branches: nobody can foretell them.
size_t IdleClassOf(int64_t gap_ns) {
  size_t index = 0;
  int64_t from_ns = kNanosPerMicro;
  for (int i = 1; i < Profile::kIdleClasses; ++i, from_ns *= 10) index += gap_ns >= from_ns;
  return index;
}

Profile::Depth DepthOf(InFlight* in_flight, int64_t observed_ns, int64_t busy_ns) {
  Profile::Depth depth{.max = in_flight->max(), .limited = in_flight->limited()};
  depth.classes = in_flight->FinishClasses();
  const double time_ns = static_cast<double>(in_flight->time_ns());
  if (observed_ns > 0) depth.mean = time_ns / static_cast<double>(observed_ns);
  if (busy_ns > 0) depth.mean_busy = time_ns / static_cast<double>(busy_ns);
  return depth;
}

}  // namespace

void IssueOrder::AddAddresses(std::span<const ProfiledIo> left) {
  uint64_t any = 0, of_device = 0, of_direction = 0, reads = 0;
  for (const ProfiledIo& io : left) {
    if (!io.data) continue;
    const size_t at = std::min<size_t>(io.device, ProfileCounts::kMaxDevices);
    if (at >= devices_.size()) devices_.resize(at + 1);
    Device& device = devices_[at];
    Place& same_op = io.write ? device.write : device.read;
    // Sums rather than branches: nobody can foretell them.
    const bool sequential = device.any.known & (device.any.end_bytes == io.offset_bytes);
    of_device += sequential;
    reads += sequential & !io.write;
    any += sequential & (last_device_ == io.device);
    of_direction += same_op.known & (same_op.end_bytes == io.offset_bytes);
    const uint64_t end_bytes = SaturatingAdd(io.offset_bytes, io.bytes);
    // Nothing begins where an absurd address ends.
    same_op = device.any = {end_bytes, end_bytes != UINT64_MAX};
    last_device_ = io.device;
  }
  sequential_any_ += any;
  sequential_device_ += of_device;
  sequential_direction_ += of_direction;
  sequential_reads_ += reads;
}

void IssueOrder::AddBusy(std::span<const ProfiledIo> left, ProfileBatch* batch) {
  for (const ProfiledIo& io : left) {
    if (!io.completed) continue;
    const int64_t run_start_ns = all_busy_.run_start_ns();
    const int64_t run_end_ns = all_busy_.last_ns();
    const int64_t gap_ns = all_busy_.Add(io.start_ns, io.end_ns);
    if (io.data) data_busy_.Add(io.start_ns, io.end_ns);
    if (gap_ns <= 0) continue;
    if (list_all_) batch->busy.emplace_back(run_start_ns, run_end_ns);
    Profile::IdleClass& idle = idle_[IdleClassOf(gap_ns)];
    ++idle.count;
    idle.total_ns += gap_ns;
  }
}

void IssueOrder::AddLeft(std::span<const ProfiledIo> left, ProfileBatch* batch) {
  if (list_all_) batch->issued.insert(batch->issued.end(), left.begin(), left.end());
  if (list_addresses_) {
    for (const ProfiledIo& io : left) {
      if (io.data) batch->addresses.push_back({io.offset_bytes, io.bytes, io.device, io.write});
    }
  }
  AddAddresses(left);
  AddBusy(left, batch);
  for (const ProfiledIo& io : left) {
    if (io.completed) depth_.Add(io.start_ns, io.end_ns, io.data);
  }
}

void IssueOrder::Add(ProfileBatch* batch) {
  // So many that they stay in the nearest cache from one figure to the next.
  constexpr size_t kRows = 512;
  const RecordColumns& columns = *batch->columns;
  batch->issued.clear();
  batch->busy.clear();
  batch->addresses.clear();
  if (list_all_) batch->issued.reserve(columns.count + kRows);
  if (list_addresses_) batch->addresses.reserve(columns.count + kRows);
  if (!result_ && columns.count > 0) result_ = columns.Has(0, Fields::kOrdinal);
  int64_t watermark_ns = watermark_ns_;
  for (size_t begin = 0; begin < columns.count; begin += kRows) {
    const size_t end = std::min(columns.count, begin + kRows);
    for (size_t i = begin; i < end; ++i) {
      const uint16_t has = columns.present[i];
      const bool queued = (has & Fields::kQueue) != 0;
      const bool issued = (has & Fields::kIssue) != 0;
      if (queued || issued) {
        watermark_ns = std::max(watermark_ns, queued ? columns.queue_ns[i] : columns.issue_ns[i]);
      }
      // A bio-based device has no issue: there the queue time stands for it.
      const int64_t start_ns =
          issued ? columns.issue_ns[i] : (queued ? columns.queue_ns[i] : watermark_ns);
      const bool addressed = (has & Fields::kLba) != 0;
      const bool completed = (queued || issued) && (has & Fields::kComplete) != 0 &&
                             columns.complete_ns[i] >= start_ns;
      in_order_.Push({.start_ns = start_ns,
                      .end_ns = completed ? columns.complete_ns[i] : start_ns,
                      .offset_bytes = addressed ? Lba(columns.lba_sectors[i]).bytes() : 0,
                      .bytes = columns.bytes[i],
                      .device = columns.device[i],
                      .completed = completed,
                      .data = addressed && (batch->kinds[i] & ProfileBatch::kData) != 0,
                      .write = columns.op[i] == static_cast<uint8_t>(Op::kWrite)},
                     *result_ ? std::numeric_limits<int64_t>::min() : watermark_ns);
    }
    const std::vector<ProfiledIo>& items = in_order_.Order();
    AddLeft(std::span(items).first(in_order_.Leaving()), batch);
    in_order_.Drop();
  }
  watermark_ns_ = watermark_ns;
}

void IssueOrder::End(ProfileBatch* last) {
  AddLeft(in_order_.OrderAll(), last);
  if (list_all_ && !all_busy_.empty()) {
    last->busy.emplace_back(all_busy_.run_start_ns(), all_busy_.last_ns());
  }
}

void IssueOrder::MoveInto(Profile* profile) {
  profile->sequential_any = sequential_any_;
  profile->sequential_device = sequential_device_;
  profile->sequential_direction = sequential_direction_;
  profile->sequential_reads = sequential_reads_;
  profile->idle = idle_;
  profile->busy_ns = all_busy_.measure_ns();
  profile->busy_cut = all_busy_.out_of_order();
  profile->idle_ns = std::max<int64_t>(0, profile->observed_ns - profile->busy_ns);
  profile->depth = DepthOf(&depth_.FinishData(), profile->observed_ns, data_busy_.measure_ns());
  profile->depth_all = DepthOf(&depth_.FinishAll(), profile->observed_ns, profile->busy_ns);
}

}  // namespace blktape
