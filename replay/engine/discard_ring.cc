#include "replay/engine/discard_ring.h"

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "format/trace.pb.h"
#include "replay/engine/worker_cpus.h"

namespace blktape {
namespace {

// <linux/blkdev.h> of Linux 6.12: _IO(0x12, 0), with the range in addr and addr3.
constexpr uint32_t kBlockUringCmdDiscard = 0x1200;

}  // namespace

bool DiscardsMayBlock(const std::string& sys_folder) {
  constexpr char kLatency[] = "queue/wbt_lat_usec";
  Result<std::string> target_us = ReadAttribute(sys_folder + "/" + kLatency);
  // A partition has no queue of its own.
  if (!target_us.ok()) target_us = ReadAttribute(sys_folder + "/../" + kLatency);
  return !target_us.ok() || *target_us != "0";
}

bool DiscardsMayBlock(const Target& target) {
  const proto::Device& device = target.description();
  return DiscardsMayBlock("/sys/dev/block/" + std::to_string(device.major()) + ":" +
                          std::to_string(device.minor()));
}

void PrepareDiscard(io_uring_sqe* entry, int fd, uint64_t offset_bytes, uint64_t bytes,
                    bool by_worker) {
  io_uring_prep_rw(IORING_OP_URING_CMD, entry, fd, nullptr, 0, 0);
  entry->cmd_op = kBlockUringCmdDiscard;
  entry->addr = offset_bytes;
  entry->addr3 = bytes;
  if (by_worker) entry->flags |= IOSQE_ASYNC;
}

DiscardRule DiscardRule::Of(const std::vector<const Target*>& targets) {
  std::vector<bool> may_block;
  for (const Target* target : targets) {
    may_block.push_back(target->is_block_device() && DiscardsMayBlock(*target));
  }
  return DiscardRule(std::move(may_block));
}

bool DiscardRule::Refused(int32_t result) {
  --out_;
  const bool refused = result == -EOPNOTSUPP || result == -ENOTTY || result == -EINVAL;
  // EINVAL may concern this discard only.
  if (refused && result != -EINVAL) by_command_ = false;
  return refused;
}

std::unique_ptr<DiscardRing> DiscardRing::Open(uint32_t entries) {
  std::unique_ptr<DiscardRing> ring(new DiscardRing);
  ring->open_ = io_uring_queue_init(entries, &ring->ring_, IORING_SETUP_CLAMP) == 0;
  return ring->open_ ? std::move(ring) : nullptr;
}

DiscardRing::~DiscardRing() {
  if (open_) io_uring_queue_exit(&ring_);
}

void DiscardRing::Prepare(uint32_t slot, int fd, uint64_t offset_bytes, uint64_t bytes,
                          bool by_worker) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry == nullptr) {
    io_uring_submit(&ring_);
    entry = io_uring_get_sqe(&ring_);
  }
  BLKTAPE_CHECK(entry != nullptr);
  PrepareDiscard(entry, fd, offset_bytes, bytes, by_worker);
  io_uring_sqe_set_data64(entry, slot);
  ++in_flight_;
}

void DiscardRing::Attach() { PlaceKernelWorkers(&ring_); }

Status DiscardRing::Push() {
  while (io_uring_sq_ready(&ring_) > 0) {
    const int outcome = io_uring_submit(&ring_);
    const bool again = outcome >= 0 || outcome == -EINTR || outcome == -EAGAIN || outcome == -EBUSY;
    if (!again) return ErrnoStatus(-outcome, "io_uring: submission of a discard");
  }
  return OkStatus();
}

void DiscardRing::Collect(std::vector<Answer>* answers) {
  io_uring_cqe* completion = nullptr;
  while (io_uring_peek_cqe(&ring_, &completion) == 0) {
    answers->push_back({static_cast<uint32_t>(completion->user_data), completion->res});
    io_uring_cqe_seen(&ring_, completion);
    --in_flight_;
  }
}

}  // namespace blktape
