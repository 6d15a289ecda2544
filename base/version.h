#pragma once

namespace blktape {

// The version that `blktape --version` prints and every trace header contains.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace blktape
