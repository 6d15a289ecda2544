#pragma once

#include <cstdio>
#include <string_view>

namespace blktape {

// Writes text for people to `to`. Names and details in it may come from a trace or a disk that
// nobody trusts: what would steer a terminal becomes '?', line breaks stay.
void Print(FILE* to, std::string_view text);

}  // namespace blktape
