#include "replay/plan/footprint.h"

#include <algorithm>

#include "base/saturating.h"

namespace blktape {

void DeviceFootprint::Add(Lba lba, uint64_t bytes) {
  const uint64_t begin = lba.bytes();
  if (end_bytes == 0) begin_bytes = begin;
  begin_bytes = std::min(begin_bytes, begin);
  end_bytes = std::max(end_bytes, SaturatingAdd(begin, bytes));
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
