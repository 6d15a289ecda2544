#pragma once

#include <string>

#include "base/status.h"
#include "format/trace.pb.h"
#include "host/system_view.h"

namespace blktape {

// Describes a disk from sysfs: name, numbers, size, model, firmware, transport and the settings of
// its queue. `folder` is the resolved folder of the whole disk ("/sys/devices/.../block/sda"; not a
// symbolic link, because the transport is read from this path). Fields that the kernel does not
// report are absent. The serial number is left out, because recordings must not contain it.
// kNotFound if there is no such disk.
Result<proto::Device> DescribeDisk(const std::string& folder,
                                   const SystemView& system = MachineView());

}  // namespace blktape
