#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/io_record.h"

// Parses the names that io_record.h gives.
namespace blktape {

// The op with this OpName(); absent if there is none.
std::optional<Op> OpByName(std::string_view name);

// The bits with these FlagNames(); absent if one of the names is unknown.
std::optional<uint32_t> ParseFlagNames(std::string_view names);

}  // namespace blktape
