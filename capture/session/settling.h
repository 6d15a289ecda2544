#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace blktape {

// Knows when what a command wrote has reached the disk: hardly anything is left in the page cache,
// and no I/O has been recorded for a second. Pure, but for what it is fed. One thread.
class Settling {
 public:
  static constexpr uint64_t kDirtyLeftKiB = 64;

  // The command has ended at `now_ns`, after `ios` I/Os of the recording; to be waited for at most
  // `bound_ns`. `dirty_kib` tells what is left in the page cache.
  Settling(std::function<uint64_t()> dirty_kib, int64_t now_ns, int64_t bound_ns, uint64_t ios)
      : dirty_kib_(std::move(dirty_kib)),
        end_ns_(now_ns + bound_ns),
        last_io_ns_(now_ns),
        ios_(ios) {}

  // `ios`: of the recording so far. Absent: not yet. True: all is written and the disk is quiet.
  // False: the time is over.
  std::optional<bool> Done(int64_t now_ns, uint64_t ios);

 private:
  std::function<uint64_t()> dirty_kib_;
  int64_t end_ns_;
  int64_t last_io_ns_;
  uint64_t ios_;
};

}  // namespace blktape
