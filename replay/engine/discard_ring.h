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

// Whether whoever discards on this block device may be put to sleep by the kernel: its writeback
// throttling (block/blk-wbt.c) lets only some discards in at a time, but always one, even for a
// submission that must not block. `sys_folder`: "/sys/dev/block/8:1" of a disk or a partition. True
// unless the queue says that nothing is throttled: of a stack of devices the lowest decides.
bool DiscardsMayBlock(const std::string& sys_folder);
bool DiscardsMayBlock(const Target& target);

// Makes `entry` a discard of a block device: the command of Linux 6.12 (BLOCK_URING_CMD_DISCARD).
// `by_worker`: a kernel worker submits it.
void PrepareDiscard(io_uring_sqe* entry, int fd, uint64_t offset_bytes, uint64_t bytes,
                    bool by_worker);

// How an engine's discards of block devices go to the kernel. One thread asks and tells.
class DiscardRule {
 public:
  // By target, whether DiscardsMayBlock; false for files.
  explicit DiscardRule(std::vector<bool> may_block) : may_block_(std::move(may_block)) {}
  static DiscardRule Of(const std::vector<const Target*>& targets);

  // By the command, else by the ioctl.
  bool by_command() const { return by_command_; }
  // Whether a worker must submit the next command for the target: a single one is never throttled.
  bool NeedsWorker(uint32_t target) const { return may_block_[target] && out_ > 0; }

  void Sent() { ++out_; }
  // Of each command that was sent. True: kernel or device may not know it, the ioctl tells.
  bool Refused(int32_t result);

 private:
  std::vector<bool> may_block_;
  uint32_t out_ = 0;
  bool by_command_ = true;  // until the kernel says that it does not know it
};

// Discards of block devices for an engine whose own interface has none. By ioctl one would wait for
// the other: the kernel holds a lock of the device as long as each takes. One thread prepares,
// pushes and collects.
class DiscardRing {
 public:
  // For at most `entries` in flight. Null: the kernel lacks or forbids io_uring.
  static std::unique_ptr<DiscardRing> Open(uint32_t entries);
  DiscardRing(const DiscardRing&) = delete;
  DiscardRing& operator=(const DiscardRing&) = delete;
  ~DiscardRing();

  void Prepare(uint32_t slot, int fd, uint64_t offset_bytes, uint64_t bytes, bool by_worker);
  // Hands to the kernel what was prepared.
  Status Push();
  struct Answer {
    uint32_t slot = 0;
    int32_t result = 0;
  };
  // Appends what has completed, without waiting.
  void Collect(std::vector<Answer>* answers);
  // Pushed and not collected.
  uint32_t in_flight() const { return in_flight_; }
  // Readable while there is something to collect.
  int fd() const { return ring_.ring_fd; }

 private:
  DiscardRing() = default;

  io_uring ring_{};
  bool open_ = false;
  uint32_t in_flight_ = 0;
};

}  // namespace blktape
