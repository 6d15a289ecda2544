#include "replay/engine/drive_model.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/units.h"

namespace blktape {
namespace {

// Rounded down. 128 bits: a discard may cover terabytes.
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

int64_t DriveSimulator::Accept(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns) {
  Collect(submit_ns);
  const int64_t complete_ns = Serve(op, flags, bytes, submit_ns);
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
