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

// Remembers the last write to every 512-byte sector of the targets of one replay. Takes four bytes
// per sector in an unnamed sparse file in `folder`, 1/128 of the size of what is written, so that
// memory does not grow. Not thread-safe.
class WriteLedger {
 public:
  // Special values, which are never the number of a write.
  static constexpr uint32_t kNeverWritten = 0;
  static constexpr uint32_t kZeroes = UINT32_MAX - 1;
  static constexpr uint32_t kUnknown = UINT32_MAX;  // discarded, or a write failed here
  // The number of the write at this place of a plan: 1 .. UINT32_MAX - 2, then from 1 again.
  static uint32_t NumberOf(uint64_t sequence) {
    return static_cast<uint32_t>(sequence % (UINT32_MAX - 2)) + 1;
  }

  static Result<WriteLedger> Create(const std::string& folder, uint32_t targets);

  Status Set(uint32_t target, uint64_t first_sector, uint64_t sectors, uint32_t value);
  Status Get(uint32_t target, uint64_t first_sector, std::span<uint32_t> values) const;

  // The next range of sectors, starting at `from` or later, that may contain written ones; nothing
  // was written between `from` and its start. Absent: nothing was written at or after `from`.
  struct Stretch {
    uint64_t first_sector = 0;
    uint64_t end_sector = 0;
  };
  Result<std::optional<Stretch>> NextWritten(uint32_t target, uint64_t from) const;

 private:
  std::vector<UniqueFd> files_;  // one per target
};

}  // namespace blktape
