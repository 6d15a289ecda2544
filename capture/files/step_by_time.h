#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/ring_queue.h"

namespace blktape {

// How several files are read together, in step by time: each decodes a little ahead, and what comes
// earliest is delivered first.

// Bytes that are read of a file at once.
inline constexpr size_t kStepChunkBytes = 65536;
// Items kept ahead of each file, so that an item's successors tell whether its time is a stray one.
inline constexpr size_t kStepAhead = 64;
// Items that are delivered between two watermarks.
inline constexpr int kStepItems = 4096;
// The place of what no item with a time follows.
inline constexpr int64_t kNoPlace = std::numeric_limits<int64_t>::max();

// Sets `place_ns` of each item of one file: no later than the time of any that follow it. `time_of`
// tells an item's time, or nothing where it has none.
template <typename Item, typename TimeOf>
void SetPlaces(const TimeOf& time_of, RingQueue<Item>* items) {
  int64_t earliest_ns = kNoPlace;
  for (size_t i = items->size(); i-- > 0;) {
    Item& item = (*items)[i];
    const std::optional<int64_t> time_ns = time_of(item);
    if (time_ns) earliest_ns = std::min(earliest_ns, *time_ns);
    item.place_ns = earliest_ns;
  }
}

// The file of which the next item comes first; null when none has any. Of files that have one at
// the same moment the first.
template <typename Input>
Input* Earliest(const std::vector<std::unique_ptr<Input>>& inputs) {
  Input* earliest = nullptr;
  for (const std::unique_ptr<Input>& input : inputs) {
    if (input->empty()) continue;
    if (earliest == nullptr || input->place_ns() < earliest->place_ns()) earliest = input.get();
  }
  return earliest;
}

// Share of so many bytes in all that has been read of the files, 0 to 1.
template <typename Input>
double ShareRead(const std::vector<std::unique_ptr<Input>>& inputs, uint64_t bytes_total) {
  uint64_t done = 0;
  for (const std::unique_ptr<Input>& input : inputs) done += input->read_bytes();
  return bytes_total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(bytes_total);
}

}  // namespace blktape
