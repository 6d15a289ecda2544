#pragma once

#include <liburing.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "replay/target/target.h"

namespace blktape {

// Whether the kernel may put a thread that discards on this block device to sleep. The kernel's
// writeback throttling (block/blk-wbt.c) limits the discards in flight, even for a submission that
// must not block; a single discard is always let through. `sys_folder`: "/sys/dev/block/8:1" of a
// disk or a partition. True unless the queue's attributes say that nothing is throttled: in a stack
// of devices the lowest one decides.
bool DiscardsMayBlock(const std::string& sys_folder);
bool DiscardsMayBlock(const Target& target);

// Fills `entry` with a discard of a block device: the io_uring command of Linux 6.12
// (BLOCK_URING_CMD_DISCARD). `by_worker`: a kernel worker submits it.
void PrepareDiscard(io_uring_sqe* entry, int fd, uint64_t offset_bytes, uint64_t bytes,
                    bool by_worker);

// Decides how an engine's discards of block devices go to the kernel. Used by one thread.
class DiscardRule {
 public:
  // `may_block`: DiscardsMayBlock() of each target; false for files.
  explicit DiscardRule(std::vector<bool> may_block) : may_block_(std::move(may_block)) {}
  static DiscardRule Of(const std::vector<const Target*>& targets);

  // True: by the io_uring command; false: by the ioctl.
  bool by_command() const { return by_command_; }
  // Whether a kernel worker must submit the next command for the target. A single command in flight
  // is never throttled.
  bool NeedsWorker(uint32_t target) const { return may_block_[target] && out_ > 0; }

  void Sent() { ++out_; }
  // Called with the result of each command. True: the kernel or the device may not support the
  // command; the caller tries the ioctl.
  bool Refused(int32_t result);

 private:
  std::vector<bool> may_block_;
  uint32_t out_ = 0;
  bool by_command_ = true;  // until the kernel answers that it does not know the command
};

// Discards of block devices for an engine whose own interface has no discard. Discards by ioctl
// would run one after the other, because the kernel holds a lock of the device during each. One
// thread prepares, pushes and collects.
class DiscardRing {
 public:
  // At most `entries` discards are in flight. Null: the kernel lacks or forbids io_uring.
  static std::unique_ptr<DiscardRing> Open(uint32_t entries);
  DiscardRing(const DiscardRing&) = delete;
  DiscardRing& operator=(const DiscardRing&) = delete;
  ~DiscardRing();

  // Called once by the thread that will use it, before anything else.
  void Attach();
  void Prepare(uint32_t slot, int fd, uint64_t offset_bytes, uint64_t bytes, bool by_worker);
  // Submits the prepared discards to the kernel.
  Status Push();
  struct Answer {
    uint32_t slot = 0;
    int32_t result = 0;
  };
  // Appends the completed discards to `answers`, without waiting.
  void Collect(std::vector<Answer>* answers);
  // Pushed and not collected.
  uint32_t in_flight() const { return in_flight_; }
  // Readable while there are completions to collect.
  int fd() const { return ring_.ring_fd; }

 private:
  DiscardRing() = default;

  io_uring ring_{};
  bool open_ = false;
  uint32_t in_flight_ = 0;
};

}  // namespace blktape
