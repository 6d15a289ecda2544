#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace blktape {

// How often something happened to a program's threads, and how often it would have by chance, in
// kShare-ths. Of many times the earlier ones count half. Pure, not thread-safe.
struct ByChance {
  static constexpr int64_t kShare = 1024;
  static constexpr int64_t kMany = 128 * kShare;
  // So many standard deviations are no chance.
  static constexpr int64_t kDeviations = 4;

  int64_t happened = 0;
  int64_t by_chance = 0;

  // `part` of `of`, more than 0: for how long it could have.
  void Count(bool happens, int64_t part, int64_t of) {
    by_chance += part * kShare / of;
    if (happens) happened += kShare;
    if (std::max(by_chance, happened) < kMany) return;
    by_chance /= 2;
    happened /= 2;
  }
  // Whether they are too far apart where `expected` (in kShare-ths) have that variance.
  bool IsNoChance(int64_t expected) const {
    const int64_t apart = happened - by_chance;
    return apart * apart >= kDeviations * kDeviations * kShare * expected;
  }
};

// Programs are known in a table of this size: of two with one place only the later one.
inline constexpr uint32_t kKnownPrograms = 4096;
constexpr size_t PlaceOfProgram(uint64_t program) {
  return (program + (program >> 32) * (kKnownPrograms / 8)) % kKnownPrograms;
}

}  // namespace blktape
