#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "capture/source/block_event.h"

// What the two texts of block events have in common: blkparse's, and the kernel's own as perf and
// trace-cmd print it.
namespace blktape {

// "8,16" or "(8,16)" as a dev_t.
std::optional<uint32_t> ParseDevNumbers(std::string_view text);

// Sets op, flags and whether it is a passthrough command, by the letters. `bytes` is set already.
// False: no such letters.
bool SetOpByLetters(std::string_view rwbs, BlockEvent* event);

// What stands in the last brackets of the line, "" where there are none; `line` loses it.
std::string_view TakeBrackets(std::string_view* line);

// Sets the name, as far as it fits; "(null)" is none.
void SetComm(std::string_view name, BlockEvent* event);

// Of "SECTOR + N ..." sets address and bytes; of "SECTOR ..." the address alone; of nothing,
// nothing. False: something else stands there. `rest` is left at what follows.
bool TakeExtent(std::string_view* rest, BlockEvent* event);

// The next word of `rest`, which loses it.
std::string_view TakeWord(std::string_view* rest);

}  // namespace blktape
