#pragma once

#include <cstdint>
#include <optional>

#include "format/trace.pb.h"

namespace blktape {

// A disk: what has a request queue of its own, or takes bios as one.
struct Disk {
  uint32_t dev = 0;  // kernel dev_t: major << 20 | minor
  proto::Device description;
  // Takes bios as they are and has no requests (zram, dm, md): no issue event ever comes. Absent:
  // not known (recordings of other tools do not say).
  std::optional<bool> bio_based;
  // Which of the disks that have had this number since boot (Linux 5.15 on). Absent: not known.
  std::optional<uint64_t> sequence;
  // How many ranges one discard request may gather (queue/max_discard_segments). Absent: not known.
  std::optional<uint32_t> discard_ranges;
  // Size of a zone; 0: the disk has none, or it is not known.
  uint64_t zone_sectors = 0;
};

}  // namespace blktape
