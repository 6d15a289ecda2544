#pragma once

#include <optional>
#include <string>

#include "base/status.h"

namespace blktape {

// The content of a device or file as libblkid recognises it: "an ext4 file system (label data)", "a
// gpt partition table", "an LVM2_member", ...; several are joined by " and ". Absent if nothing is
// recognised. Opens its own descriptor and writes nothing. Messages use `name`, or `path` if `name`
// is empty.
Result<std::optional<std::string>> FindSignature(const std::string& path,
                                                 const std::string& name = "");

}  // namespace blktape
