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
};

}  // namespace blktape
