#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace blktape {

// The kernel's lockdown level: "none", "integrity", "confidentiality"; empty if unknown.
std::string LockdownLevel();

// Adds advice to a failure: missing rights, lockdown, a container, a kernel without the facility.
// `facility` is "tracefs" or "blktrace".
Status ExplainSourceFailure(const Status& status, std::string_view facility);

}  // namespace blktape
