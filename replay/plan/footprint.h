#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "replay/plan/record_stream.h"

namespace blktape {

// What of one recorded device is touched.
struct DeviceFootprint {
  uint64_t records = 0;
  uint64_t begin_bytes = 0;
  uint64_t end_bytes = 0;  // 0: no address at all
  // The OR of all starts and sizes in bytes: its lowest set bit is what all are multiples of.
  uint64_t address_bits = 0;
  uint64_t longest_bytes = 0;  // of one request; from a summary alone a bound: the whole extent

  void Add(Lba lba, uint64_t bytes);
  // Whether every request is whole blocks of this size (a power of two).
  bool AlignedTo(uint32_t block_bytes) const { return address_bits % block_bytes == 0; }
};

// What a plan has to be able to do, known before the first write.
struct Footprint {
  std::vector<DeviceFootprint> devices;  // as in the header
  std::array<uint64_t, kOpCount> records_by_op{};
  uint64_t records = 0;
  bool has_completions = false;  // some record says when it completed

  void Add(const IoRecord& io);
};

// One pass over `stream`. Records for which `counts` is false are left out. kCancelled when `stop`
// becomes true.
template <typename Counts>
Result<Footprint> MeasureFootprint(RecordStream* stream, const std::atomic<bool>& stop,
                                   const Counts& counts) {
  Footprint footprint;
  footprint.devices.resize(stream->header().devices_size());
  RETURN_IF_ERROR(ForEachRecord(stream, stop, [&](const IoRecord& io, uint64_t) {
    if (counts(io)) footprint.Add(io);
  }));
  return footprint;
}

}  // namespace blktape
