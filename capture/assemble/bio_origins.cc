#include "capture/assemble/bio_origins.h"

#include <algorithm>

#include "base/units.h"

namespace blktape {
namespace {

// The first step follows at once, but for what may delay the thread.
constexpr int64_t kFlushFollowsNs = 10 * kNanosPerMilli;

}  // namespace

const Layer* BioOrigins::Find(uint32_t dev) const {
  const auto found = std::ranges::find(layers_, dev, &Layer::dev);
  return found != layers_.end() ? &*found : nullptr;
}

BioOrigins::Origin* BioOrigins::At(const Place& place) {
  for (auto* generation : {&origins_, &older_}) {
    const auto found = generation->find(place);
    if (found != generation->end()) return &found->second;
  }
  return nullptr;
}

void BioOrigins::Put(const Place& place, const Origin& origin) {
  if (origins_.size() >= kGeneration) {
    older_ = std::move(origins_);
    origins_.clear();
    preflushes_.clear();
  }
  origins_[place] = origin;
}

void BioOrigins::Above(const BlockEvent& event) {
  const Layer* const layer = Find(event.device);
  if (layer == nullptr) return;
  Origin origin = {.queue_ns = event.time_ns, .pid = event.pid, .comm = event.comm};
  if (event.action == BlockAction::kSplit) {
    Put({event.device, event.split_lba.sectors}, origin);
    return;
  }
  // A flush has no place, and is passed on by who asked for it.
  if (event.action != BlockAction::kQueue || event.bytes == 0) return;
  const Place place = {event.device, event.lba.sectors};
  Origin* const known = At(place);
  if (known != nullptr && known->passed_on) {
    known->passed_on = false;
  } else {
    Put(place, origin);
  }
  preflushes_.erase(event.pid);
  if ((event.flags & kFlagPreflush) != 0 && layer->one_disk) preflushes_[event.pid] = place;
}

void BioOrigins::Remapped(const BlockEvent& event) {
  const Origin* const known = At({event.from_device, event.from_lba.sectors});
  if (known == nullptr || event.bytes == 0) return;
  Origin origin = *known;
  origin.passed_on = true;
  Put({event.device, event.lba.sectors}, origin);
}

void BioOrigins::Queued(BlockEvent* event) {
  if (layers_.empty()) return;
  if (event->op == Op::kFlush) {
    const auto write = preflushes_.find(event->pid);
    if (write == preflushes_.end()) return;
    Origin* const origin = At(write->second);
    preflushes_.erase(write);
    if (origin == nullptr || origin->pid != event->pid ||
        event->time_ns - origin->queue_ns > kFlushFollowsNs) {
      return;
    }
    origin->flushed = true;
    event->of_write = true;
    return;
  }
  // Some layers pass it on as it is.
  if ((event->flags & kFlagPreflush) != 0) preflushes_.erase(event->pid);
  Origin* const origin = At({event->device, event->lba.sectors});
  if (origin == nullptr || !origin->passed_on) return;
  origin->passed_on = false;
  event->pid = origin->pid;
  event->comm = origin->comm;
  if (!origin->flushed) return;
  event->flags |= kFlagPreflush | kFlagMapped;
  event->time_ns = origin->queue_ns;
}

}  // namespace blktape
