#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace blktape {

// When the flushes of one block device may be submitted. A write with PREFLUSH is a flush and then
// a write here, and two parts of one request in a file system. The block layer (block/blk-flush.c)
// runs one flush at a time, all that ask meanwhile share the next one, and that begins only once no
// flagged request is at its data: so the flush after a FUA write serves those who asked since its
// PREFLUSH began, too. Of two separate requests the block layer cannot know that they belong
// together: a flush asked for meanwhile would begin between them, and the one after the write would
// have to wait for it. So this class holds such flushes back until the write is submitted, from
// when on the block layer defers them itself. Requests are known by their slots. Nothing is
// allocated after construction. Not thread-safe.
class FlushOrder {
 public:
  // `depth`: of so many requests at a time.
  explicit FlushOrder(uint32_t depth) {
    in_flight_.reserve(depth);
    held_.reserve(depth);
  }

  // What a step asks of the block layer.
  enum class Kind : uint8_t {
    kFlush,
    kPreflush,  // a flush whose write follows
    kData,      // a write after which nothing more happens
    kDurable,   // a write that the block layer follows with a flush
  };

  // The step is to be submitted, again if it was refused. False: not yet; TakeReady() will name the
  // slot.
  bool Submit(uint32_t slot, Kind kind) {
    Entry* const known = Find(slot);
    if (known != nullptr) {
      if (kind == Kind::kDurable) known->between = false;
      return true;
    }
    if (kind == Kind::kData) return true;
    if (kind != Kind::kDurable && Between()) {
      held_.push_back({slot, kind == Kind::kPreflush});
      return false;
    }
    in_flight_.push_back({slot, kind == Kind::kPreflush});
    return true;
  }

  // The request of the slot is complete.
  void Complete(uint32_t slot) {
    std::erase_if(in_flight_, [slot](const Entry& entry) { return entry.slot == slot; });
  }

  // One that was held and may be submitted now: it counts as submitted.
  std::optional<uint32_t> TakeReady() {
    if (held_.empty() || Between()) return std::nullopt;
    const Entry ready = held_.front();
    held_.erase(held_.begin());
    in_flight_.push_back(ready);
    return ready.slot;
  }

 private:
  struct Entry {
    uint32_t slot;
    bool between;  // its PREFLUSH has been submitted, but not its write (kData: not completed)
  };

  // Whether the flush of a PREFLUSH runs, or its write is about to follow. As long as an earlier
  // flush is in flight it has not begun: whoever asks now shares it.
  bool Between() const { return !in_flight_.empty() && in_flight_.front().between; }

  Entry* Find(uint32_t slot) {
    for (Entry& entry : in_flight_) {
      if (entry.slot == slot) return &entry;
    }
    return nullptr;
  }

  std::vector<Entry> in_flight_;  // oldest first
  std::vector<Entry> held_;       // likewise
};

}  // namespace blktape
