#pragma once

#include <cstdint>
#include <optional>

#include "format/trace.pb.h"

namespace blktape {

// A disk: a device with its own request queue, or a bio-based device.
struct Disk {
  uint32_t dev = 0;  // kernel dev_t: major << 20 | minor
  proto::Device description;
  // Processes bios without requests (zram, dm, md): there are no issue events. Absent: not known
  // (recordings of other tools do not say).
  std::optional<bool> bio_based;
  // The disk's sequence number since boot: distinguishes disks that had this device number one
  // after the other (from Linux 5.15). Absent: not known.
  std::optional<uint64_t> sequence;
  // The maximum number of ranges in one discard request (queue/max_discard_segments). Absent: not
  // known.
  std::optional<uint32_t> discard_ranges;
  // Size of a zone; 0: the disk has no zones, or this is not known.
  uint64_t zone_sectors = 0;
};

// A device that passes I/O on to disks below it: a volume of LVM, dm-crypt, md.
struct Layer {
  uint32_t dev = 0;       // kernel dev_t
  bool one_disk = false;  // all of it lies on one disk
  bool operator==(const Layer&) const = default;
};

}  // namespace blktape
