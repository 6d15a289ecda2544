#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/io_record.h"

namespace blktape {

// The key of an open bio or request: the part of an event that identifies it.
struct IoKey {
  uint64_t sector = 0;
  uint32_t device = 0;
  Op op = Op::kRead;

  bool operator==(const IoKey&) const = default;
};

// A pool of open bios or requests. They are found by key (several may share a key, in the order
// inserted) and by age (oldest first). Inserting, re-keying and erasing take constant time and do
// not allocate once the pool is large enough. Indices stay valid until erased. Not thread-safe.
template <typename T>
class KeyedPool {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  KeyedPool() : heads_(kFirstBuckets, kNone), tails_(kFirstBuckets, kNone) {}

  uint32_t Insert(const IoKey& key, T value) {
    if (size_ >= heads_.size()) Rehash(heads_.size() * 2);
    uint32_t index = free_;
    if (index == kNone) {
      index = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      free_ = slots_[index].next;
    }
    Slot& slot = slots_[index];
    slot.key = key;
    slot.value = std::move(value);
    slot.older = youngest_;
    slot.younger = kNone;
    (youngest_ == kNone ? oldest_ : slots_[youngest_].younger) = index;
    youngest_ = index;
    Link(index);
    ++size_;
    return index;
  }

  void Erase(uint32_t index) {
    Unlink(index);
    Slot& slot = slots_[index];
    (slot.older == kNone ? oldest_ : slots_[slot.older].younger) = slot.younger;
    (slot.younger == kNone ? youngest_ : slots_[slot.younger].older) = slot.older;
    slot.value = T();
    slot.next = free_;
    free_ = index;
    --size_;
  }

  // Changes the key and keeps the age.
  void Rekey(uint32_t index, const IoKey& key) {
    Unlink(index);
    slots_[index].key = key;
    Link(index);
  }

  T& at(uint32_t index) { return slots_[index].value; }
  const T& at(uint32_t index) const { return slots_[index].value; }
  const IoKey& key(uint32_t index) const { return slots_[index].key; }

  // Iterates over the items with this key in the order inserted; kNone after the last.
  uint32_t First(const IoKey& key) const { return Same(heads_[Bucket(key)], key); }
  uint32_t Next(uint32_t index) const { return Same(slots_[index].next, slots_[index].key); }

  // Iterates over all items in the order inserted; kNone after the last.
  uint32_t Oldest() const { return oldest_; }
  uint32_t Younger(uint32_t index) const { return slots_[index].younger; }

  size_t size() const { return size_; }

 private:
  static constexpr size_t kFirstBuckets = 256;

  struct Slot {
    IoKey key;
    T value{};
    uint32_t next = kNone;  // next in the bucket or in the list of free slots
    uint32_t previous = kNone;
    uint32_t older = kNone;
    uint32_t younger = kNone;
  };

  size_t Bucket(const IoKey& key) const {
    uint64_t hash =
        key.sector ^ (uint64_t{key.device} << 40) ^ (uint64_t{static_cast<uint8_t>(key.op)} << 56);
    hash *= 0x9e3779b97f4a7c15;  // Fibonacci hashing: the upper bits are well mixed
    return (hash >> 32) & (heads_.size() - 1);
  }

  uint32_t Same(uint32_t index, const IoKey& key) const {
    while (index != kNone && !(slots_[index].key == key)) index = slots_[index].next;
    return index;
  }

  void Link(uint32_t index) {
    const size_t bucket = Bucket(slots_[index].key);
    slots_[index].next = kNone;
    slots_[index].previous = tails_[bucket];
    (tails_[bucket] == kNone ? heads_[bucket] : slots_[tails_[bucket]].next) = index;
    tails_[bucket] = index;
  }

  void Unlink(uint32_t index) {
    const Slot& slot = slots_[index];
    const size_t bucket = Bucket(slot.key);
    (slot.previous == kNone ? heads_[bucket] : slots_[slot.previous].next) = slot.next;
    (slot.next == kNone ? tails_[bucket] : slots_[slot.next].previous) = slot.previous;
  }

  void Rehash(size_t buckets) {
    BLKTAPE_CHECK(buckets < kNone);
    heads_.assign(buckets, kNone);
    tails_.assign(buckets, kNone);
    // By age, which is the order inserted within a key.
    for (uint32_t i = oldest_; i != kNone; i = slots_[i].younger) Link(i);
  }

  std::vector<Slot> slots_;
  std::vector<uint32_t> heads_;
  std::vector<uint32_t> tails_;
  uint32_t free_ = kNone;
  uint32_t oldest_ = kNone;
  uint32_t youngest_ = kNone;
  size_t size_ = 0;
};

}  // namespace blktape
