#include "format/io_names.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace blktape {

std::optional<Op> OpByName(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i) {
    if (name == OpName(static_cast<Op>(i))) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::optional<uint32_t> ParseFlagNames(std::string_view names) {
  uint32_t flags = 0;
  while (!names.empty()) {
    const size_t end = std::min(names.find('+'), names.size());
    const std::string_view word = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    uint32_t bits = 0;
    for (uint32_t bit = 1; bit != 0 && bits == 0; bit <<= 1) {
      if (word == FlagNames(bit)) bits = bit;
    }
    if (bits == 0 && word.starts_with("0x")) {
      const auto [stop, error] =
          std::from_chars(word.data() + 2, word.data() + word.size(), bits, 16);
      if (error != std::errc() || stop != word.data() + word.size()) return std::nullopt;
    }
    if (bits == 0) return std::nullopt;
    flags |= bits;
  }
  return flags;
}

}  // namespace blktape
