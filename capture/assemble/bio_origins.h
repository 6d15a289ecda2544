#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/source/block_event.h"
#include "host/disk.h"

namespace blktape {

// Follows bios from the layers above the recorded disks (LiveSource::SetLayers) down to these, by
// their events in order of time: Q of the bio in a layer, A to the device below, Q there. So a bio
// that a thread of the kernel submits to a disk has the thread that queued it above.
//
// device-mapper passes a write with PREFLUSH on in two steps: a flush, by the thread that queued
// the write, and when that is complete the write without PREFLUSH, by a thread of the kernel. Newer
// kernels pass it on as it is where the layer only moves it.
//
// The programs of the bpf source (block.bpf.c) do the same in the kernel. Memory: bounded; what was
// not passed on for long is forgotten, and then keeps the thread that submitted it. One thread.
class BioOrigins {
 public:
  // Those after the change have no more events of others.
  void SetLayers(const std::vector<Layer>& layers) { layers_ = layers; }
  bool IsLayer(uint32_t dev) const { return Find(dev) != nullptr; }

  // An event of a layer (only Q and X matter), or any A.
  void Above(const BlockEvent& event);
  void Remapped(const BlockEvent& event);
  // A bio is queued on a recorded disk: gives it the thread that queued it above, and to the second
  // step of a write with PREFLUSH that flag and its time, and marks the first step `of_write`.
  void Queued(BlockEvent* event);

 private:
  struct Place {
    uint32_t dev = 0;
    uint64_t sector = 0;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return (place.sector ^ uint64_t{place.dev} << 40) * 0x9e3779b97f4a7c15 >> 16;
    }
  };
  struct Origin {
    int64_t queue_ns = 0;  // in the topmost layer
    uint32_t pid = 0;
    bool passed_on = false;  // the bio came from above and is not queued here yet
    bool flushed = false;    // of a write with PREFLUSH: its flush has been queued on the disk
    ProcessComm comm{};
  };
  // Half of what is kept.
  static constexpr size_t kGeneration = 16'384;

  const Layer* Find(uint32_t dev) const;
  Origin* At(const Place& place);
  void Put(const Place& place, const Origin& origin);

  std::vector<Layer> layers_;
  std::unordered_map<Place, Origin, PlaceHash> origins_;
  std::unordered_map<Place, Origin, PlaceHash> older_;
  // Threads of which the first step of a write with PREFLUSH is to come, and that write.
  std::unordered_map<uint32_t, Place> preflushes_;
};

}  // namespace blktape
