#pragma once

namespace blktape {

// The version `blktape --version` prints and every trace header carries.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace blktape
