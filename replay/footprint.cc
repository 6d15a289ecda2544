#include "replay/footprint.h"

#include <algorithm>

namespace blktape {

void DeviceFootprint::Add(Lba lba, uint64_t bytes) {
  // An address no device has must not wrap round to one that it has.
  const uint64_t begin = lba.sectors > UINT64_MAX / kSectorBytes ? UINT64_MAX : lba.bytes();
  if (end_bytes == 0) begin_bytes = begin;
  begin_bytes = std::min(begin_bytes, begin);
  end_bytes = std::max(end_bytes, begin + std::min(bytes, UINT64_MAX - begin));
  address_bits |= begin | bytes;
  longest_bytes = std::max(longest_bytes, bytes);
}

void Footprint::Add(const IoRecord& io) {
  ++records;
  ++records_by_op[static_cast<size_t>(io.op)];
  has_completions |= io.complete_ns.has_value();
  if (io.device >= devices.size()) devices.resize(io.device + 1);
  ++devices[io.device].records;
  if (io.lba && io.bytes > 0) devices[io.device].Add(*io.lba, io.bytes);
}

}  // namespace blktape
