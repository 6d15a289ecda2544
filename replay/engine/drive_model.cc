#include "replay/engine/drive_model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/units.h"

namespace blktape {
namespace {

// Rounded down. In 128 bits, because a discard may cover terabytes.
int64_t TransferNs(uint64_t bytes, uint64_t bytes_per_second) {
  const unsigned __int128 scaled = static_cast<unsigned __int128>(bytes) * kNanosPerSecond;
  return static_cast<int64_t>(scaled / bytes_per_second);
}

struct NamedModel {
  std::string_view name;
  DriveModel model;
};

const std::vector<NamedModel>& NamedModels() {
  static const std::vector<NamedModel> models = {
      {"reference", {}},
      {"nvme-2026",
       {.channels = 16,
        .read_base_ns = 45'000,
        .write_base_ns = 12'000,
        .fua_ns = 120'000,
        .flush_base_ns = 250'000,
        .clean_flush_ns = 10'000,
        .read_bandwidth = 6'000'000'000,
        .write_bandwidth = 4'000'000'000,
        .flush_bandwidth = 4'000'000'000,
        .buffer_bytes = 4ull << 30,
        .full_write_bandwidth = 250'000'000,
        .collect_bandwidth = 100'000'000,
        .collect_after_ns = 500 * kNanosPerMilli}},
      {"sata-2011",
       {.channels = 4,
        .read_base_ns = 140'000,
        .write_base_ns = 70'000,
        .fua_ns = 2'500'000,
        .flush_base_ns = 3'000'000,
        .clean_flush_ns = 50'000,
        .read_bandwidth = 260'000'000,
        .write_bandwidth = 200'000'000,
        .flush_bandwidth = 200'000'000,
        .cache_bytes = 32ull << 20}},
      {"emmc-2018",
       {.channels = 2,
        .read_base_ns = 180'000,
        .write_base_ns = 250'000,
        .fua_ns = 900'000,
        .flush_base_ns = 1'200'000,
        .clean_flush_ns = 100'000,
        .read_bandwidth = 280'000'000,
        .write_bandwidth = 120'000'000,
        .flush_bandwidth = 150'000'000,
        .cache_bytes = 1ull << 20}},
      {"hdd-2013",
       {.write_base_ns = 100'000,
        .flush_base_ns = 500'000,
        .clean_flush_ns = 100'000,
        .read_bandwidth = 156'000'000,
        .write_bandwidth = 300'000'000,
        .write_zeroes_bandwidth = 156'000'000,
        .secure_erase_bandwidth = 156'000'000,
        .cache_bytes = 64'000'000,
        .rotation_ns = 8'333'333,
        .seek_least_ns = 1'000'000,
        .seek_full_ns = 15'000'000,
        .span_bytes = 2'000'000'000'000}},
  };
  return models;
}

}  // namespace

Result<DriveModel> DriveModelNamed(std::string_view name) {
  std::string names;
  for (const NamedModel& one : NamedModels()) {
    if (one.name == name) return one.model;
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  return Status(StatusCode::kInvalidArgument,
                "there is no simulated drive \"" + std::string(name) + "\"; there are: " + names);
}

std::vector<std::string> DriveModelNames() {
  std::vector<std::string> names;
  for (const NamedModel& one : NamedModels()) names.emplace_back(one.name);
  return names;
}

DriveSimulator::DriveSimulator(const DriveModel& model)
    : model_(model), channel_free_ns_(model.channels, 0) {
  BLKTAPE_CHECK(model.channels > 0 && model.full_write_bandwidth > 0);
}

void DriveSimulator::Collect(int64_t submit_ns) {
  if (buffered_bytes_ == 0) return;
  const int64_t idle_ns = submit_ns - busy_until_ns_ - model_.collect_after_ns;
  if (idle_ns <= 0) return;
  const unsigned __int128 collected =
      static_cast<unsigned __int128>(idle_ns) * model_.collect_bandwidth / kNanosPerSecond;
  buffered_bytes_ -= static_cast<uint64_t>(std::min<unsigned __int128>(collected, buffered_bytes_));
}

int64_t DriveSimulator::WriteTransferNs(uint64_t bytes) {
  if (model_.buffer_bytes == 0) return TransferNs(bytes, model_.write_bandwidth);
  const uint64_t fits = std::min(bytes, model_.buffer_bytes - buffered_bytes_);
  buffered_bytes_ += fits;
  return TransferNs(fits, model_.write_bandwidth) +
         TransferNs(bytes - fits, model_.full_write_bandwidth);
}

int64_t DriveSimulator::HoldChannel(int64_t submit_ns, int64_t hold_ns) {
  int64_t& free_ns = *std::min_element(channel_free_ns_.begin(), channel_free_ns_.end());
  free_ns = std::max(free_ns, submit_ns) + hold_ns;
  return free_ns;
}

int64_t DriveSimulator::Flush(int64_t submit_ns) {
  const int64_t start_ns = std::max({submit_ns, flush_free_ns_, writes_complete_ns_});
  const uint64_t dirty_bytes = std::min(dirty_bytes_, model_.cache_bytes);
  dirty_bytes_ = 0;
  flush_free_ns_ =
      start_ns + (dirty_bytes == 0
                      ? model_.clean_flush_ns
                      : model_.flush_base_ns + TransferNs(dirty_bytes, model_.flush_bandwidth));
  return flush_free_ns_;
}

int64_t DriveSimulator::Write(uint32_t flags, uint64_t bytes, int64_t submit_ns) {
  const int64_t transfer_ns = WriteTransferNs(bytes);
  const int64_t fua_ns = (flags & kFlagFua) != 0 ? model_.fua_ns : 0;
  int64_t complete_ns = 0;
  if ((flags & kFlagPreflush) != 0) {
    complete_ns = Flush(submit_ns) + model_.write_base_ns + transfer_ns + fua_ns;
  } else {
    const int64_t channel_ns = HoldChannel(submit_ns, model_.write_base_ns);
    write_link_free_ns_ = std::max(write_link_free_ns_, channel_ns) + transfer_ns;
    complete_ns = write_link_free_ns_ + fua_ns;
  }
  if (fua_ns == 0) dirty_bytes_ += bytes;
  writes_complete_ns_ = std::max(writes_complete_ns_, complete_ns);
  return complete_ns;
}

int64_t DriveSimulator::SeekNs(uint64_t from_bytes, uint64_t to_bytes) const {
  const uint64_t distance = from_bytes < to_bytes ? to_bytes - from_bytes : from_bytes - to_bytes;
  if (distance == 0) return 0;
  const double share =
      std::min(1.0, static_cast<double>(distance) / static_cast<double>(model_.span_bytes));
  return model_.seek_least_ns +
         static_cast<int64_t>(static_cast<double>(model_.seek_full_ns - model_.seek_least_ns) *
                              std::sqrt(share));
}

int64_t DriveSimulator::MoveArm(uint64_t bytes, int64_t submit_ns, uint64_t offset_bytes,
                                bool may_read_ahead) {
  int64_t at_ns = std::max(submit_ns, arm_free_ns_);
  if (offset_bytes != arm_bytes_ || !may_read_ahead) {
    at_ns += SeekNs(arm_bytes_, offset_bytes);
    // The place of a byte on its track, as time since the track's beginning passed the head.
    const auto track_bytes =
        static_cast<uint64_t>(static_cast<unsigned __int128>(model_.read_bandwidth) *
                              static_cast<uint64_t>(model_.rotation_ns) / kNanosPerSecond);
    const int64_t place_ns = TransferNs(offset_bytes % track_bytes, model_.read_bandwidth);
    const int64_t turned_ns = at_ns % model_.rotation_ns;
    at_ns += (place_ns - turned_ns + model_.rotation_ns) % model_.rotation_ns;
  }
  arm_free_ns_ = at_ns + TransferNs(bytes, model_.read_bandwidth);
  arm_bytes_ = offset_bytes + bytes;
  return arm_free_ns_;
}

void DriveSimulator::PayOwed(int64_t idle_ns) {
  const int64_t paid_ns = std::clamp<int64_t>(idle_ns, 0, owed_ns_);
  if (paid_ns == 0) return;
  // The bytes that are in the cache go with the time that they take.
  dirty_bytes_ -=
      static_cast<uint64_t>(static_cast<double>(dirty_bytes_) * static_cast<double>(paid_ns) /
                            static_cast<double>(owed_ns_));
  owed_ns_ -= paid_ns;
  if (owed_ns_ == 0) dirty_bytes_ = 0;
}

int64_t DriveSimulator::Cache(uint64_t bytes, int64_t submit_ns, uint64_t offset_bytes) {
  int64_t start_ns = std::max(submit_ns, write_link_free_ns_);
  if (dirty_bytes_ > 0 && dirty_bytes_ + bytes > model_.cache_bytes) {
    const uint64_t lacks = std::min(dirty_bytes_, dirty_bytes_ + bytes - model_.cache_bytes);
    const auto wait_ns =
        static_cast<int64_t>(std::ceil(static_cast<double>(owed_ns_) * static_cast<double>(lacks) /
                                       static_cast<double>(dirty_bytes_)));
    arm_free_ns_ = std::max(arm_free_ns_, start_ns) + wait_ns;
    start_ns = arm_free_ns_;
    PayOwed(wait_ns);
  }
  write_link_free_ns_ = start_ns + model_.write_base_ns + TransferNs(bytes, model_.write_bandwidth);
  if (offset_bytes != cached_end_bytes_) {
    owed_ns_ += SeekNs(cached_end_bytes_, offset_bytes) + model_.rotation_ns / 4;
  }
  owed_ns_ += TransferNs(bytes, model_.read_bandwidth);
  dirty_bytes_ += bytes;
  cached_end_bytes_ = offset_bytes + bytes;
  return write_link_free_ns_;
}

int64_t DriveSimulator::ServeDisk(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns,
                                  uint64_t offset_bytes) {
  PayOwed(submit_ns - busy_until_ns_);
  const auto flush = [&] {
    const bool owes = owed_ns_ > 0;
    arm_free_ns_ = std::max({arm_free_ns_, submit_ns, write_link_free_ns_}) +
                   (owes ? owed_ns_ + model_.flush_base_ns : model_.clean_flush_ns);
    if (owes) arm_bytes_ = cached_end_bytes_;
    owed_ns_ = 0;
    dirty_bytes_ = 0;
    return arm_free_ns_;
  };
  switch (op) {
    case Op::kRead:
      return MoveArm(bytes, submit_ns, offset_bytes, /*may_read_ahead=*/true);
    case Op::kWrite:
    case Op::kZoneAppend:
      if ((flags & kFlagPreflush) != 0) flush();
      if ((flags & kFlagFua) != 0) {
        return MoveArm(bytes, submit_ns, offset_bytes, /*may_read_ahead=*/false);
      }
      return Cache(bytes, std::max(submit_ns, (flags & kFlagPreflush) != 0 ? arm_free_ns_ : 0),
                   offset_bytes);
    case Op::kFlush:
      return flush();
    case Op::kWriteZeroes:
    case Op::kSecureErase:
      return MoveArm(bytes, submit_ns, offset_bytes, /*may_read_ahead=*/false);
    default:  // nothing that turns is told by these
      return std::max(submit_ns, arm_free_ns_) + model_.discard_base_ns;
  }
}

int64_t DriveSimulator::Accept(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns,
                               uint64_t offset_bytes) {
  int64_t complete_ns = 0;
  if (model_.rotation_ns > 0) {
    complete_ns = ServeDisk(op, flags, bytes, submit_ns, offset_bytes);
  } else {
    Collect(submit_ns);
    complete_ns = Serve(op, flags, bytes, submit_ns);
  }
  busy_until_ns_ = std::max(busy_until_ns_, complete_ns);
  return complete_ns;
}

int64_t DriveSimulator::Serve(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns) {
  switch (op) {
    case Op::kRead: {
      const int64_t channel_ns = HoldChannel(submit_ns, model_.read_base_ns);
      read_link_free_ns_ =
          std::max(read_link_free_ns_, channel_ns) + TransferNs(bytes, model_.read_bandwidth);
      return read_link_free_ns_;
    }
    case Op::kWrite:
    case Op::kZoneAppend:
      return Write(flags, bytes, submit_ns);
    case Op::kFlush:
      return Flush(submit_ns);
    case Op::kWriteZeroes: {
      const int64_t complete_ns =
          HoldChannel(submit_ns, model_.write_zeroes_base_ns +
                                     TransferNs(bytes, model_.write_zeroes_bandwidth));
      writes_complete_ns_ = std::max(writes_complete_ns_, complete_ns);
      return complete_ns;
    }
    case Op::kSecureErase:
      return HoldChannel(submit_ns, model_.secure_erase_base_ns +
                                        TransferNs(bytes, model_.secure_erase_bandwidth));
    case Op::kDiscard:
      return HoldChannel(submit_ns,
                         model_.discard_base_ns + TransferNs(bytes, model_.discard_bandwidth));
    default:  // zone management
      return HoldChannel(submit_ns, model_.discard_base_ns);
  }
}

}  // namespace blktape
