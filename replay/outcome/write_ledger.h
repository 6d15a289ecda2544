#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// For every 512-byte sector of the targets of one replay: what was written there last. Four bytes a
// sector in a nameless sparse file, so that memory does not grow with what is written: 1/128 of it
// lies on the disk of `folder`. Not thread-safe.
class WriteLedger {
 public:
  // Values that are no write's number.
  static constexpr uint32_t kNeverWritten = 0;
  static constexpr uint32_t kZeroes = UINT32_MAX - 1;
  static constexpr uint32_t kUnknown = UINT32_MAX;  // discarded, or a write failed here
  // The number of the write at this place of a plan: 1 .. UINT32_MAX - 2, and again.
  static uint32_t NumberOf(uint64_t sequence) {
    return static_cast<uint32_t>(sequence % (UINT32_MAX - 2)) + 1;
  }

  static Result<WriteLedger> Create(const std::string& folder, uint32_t targets);

  Status Set(uint32_t target, uint64_t first_sector, uint64_t sectors, uint32_t value);
  Status Get(uint32_t target, uint64_t first_sector, std::span<uint32_t> values) const;

  // The stretch of sectors, beginning at `from` or later, outside of which nothing was ever
  // written; absent: nothing more.
  struct Stretch {
    uint64_t first_sector = 0;
    uint64_t end_sector = 0;
  };
  Result<std::optional<Stretch>> NextWritten(uint32_t target, uint64_t from) const;

 private:
  std::vector<UniqueFd> files_;  // one a target
};

}  // namespace blktape
