#pragma once

#include <string>

#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

// What sysfs tells of a disk: name, numbers, size, model, firmware, transport and the settings of
// its queue. `folder` is the resolved folder of the whole disk ("/sys/devices/.../block/sda", no
// symbolic link, since the transport is read from it). What the kernel does not tell is absent; the
// serial number is left out, since recordings must not hold it. kNotFound if there is no such disk.
Result<proto::Device> DescribeDisk(const std::string& folder);

}  // namespace blktape
