#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/io_record.h"

// The names that io_record.h gives, read back.
namespace blktape {

// The op that OpName() calls so; absent: none.
std::optional<Op> OpByName(std::string_view name);

// The bits that FlagNames() calls so; absent: one of the names is none.
std::optional<uint32_t> ParseFlagNames(std::string_view names);

}  // namespace blktape
