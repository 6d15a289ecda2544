#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace blktape {

// What a device or file is recognised to hold by libblkid: "an ext4 file system (label data)",
// "a gpt partition table", "an LVM2_member", ...; several joined by " and ". Absent if nothing is
// recognised. Reads through a descriptor of its own, writes nothing. Messages call it `name`, or
// `path` where that is empty.
Result<std::optional<std::string>> FindSignature(const std::string& path,
                                                 const std::string& name = "");

}  // namespace blktape
