#include "replay/engine/drive_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace blktape {
namespace {

// Rounded down. 128 bits: a discard may cover terabytes.
int64_t TransferNs(uint64_t bytes, uint64_t bytes_per_second) {
  const unsigned __int128 scaled = static_cast<unsigned __int128>(bytes) * kNanosPerSecond;
  return static_cast<int64_t>(scaled / bytes_per_second);
}

}  // namespace

DriveSimulator::DriveSimulator(const DriveModel& model)
    : model_(model), channel_free_ns_(model.channels, 0) {
  BLKTAPE_CHECK(model.channels > 0);
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
  const int64_t transfer_ns = TransferNs(bytes, model_.write_bandwidth);
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
