#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "base/ring_queue.h"
#include "base/status.h"
#include "format/io_record.h"

namespace blktape {

// Puts the records of a trace in the order in which they arrived, where at most kCapacity others
// lie between a record and its place; one that is further off leaves as soon as it can. Records
// that arrived at one time, or of which that is not known, stay in the order in which they came; so
// do those of a replay's result, whose order is that of its plan. What is not a record stays behind
// what arrived before it came. Memory: kCapacity records, as many again where most are out of
// order, and kMessageBytes; beyond these the first leaves, as beyond kCapacity. Not thread-safe.
class ArrivalHold {
 public:
  static constexpr size_t kCapacity = (size_t{1} << 15) - 1;
  static constexpr size_t kMessageBytes = size_t{8} << 20;

  using Write = std::function<Status(const IoRecord&)>;
  using Message = std::function<Status()>;

  // `write` takes the records that leave.
  explicit ArrivalHold(Write write) : write_(std::move(write)) {}

  // What leaves is written, or called, within these calls; the first failure is returned.
  Status Push(const IoRecord& record) {
    const int64_t arrival_ns =
        record.ordinal ? watermark_ns_ : record.arrival_ns().value_or(watermark_ns_);
    const bool late = arrival_ns < watermark_ns_;
    watermark_ns_ = std::max(watermark_ns_, arrival_ns);
    Held held{
        .arrival_ns = arrival_ns, .number = next_++, .record = record, .message = {}, .bytes = 0};
    if (late) {
      late_.push(std::move(held));
    } else {
      in_order_.push_back(std::move(held));
    }
    return LeaveUntilItFits();
  }
  // `bytes` is the memory of what `message` holds.
  Status Push(Message message, size_t bytes) {
    message_bytes_ += bytes;
    in_order_.push_back({.arrival_ns = watermark_ns_,
                         .number = next_++,
                         .record = {},
                         .message = std::move(message),
                         .bytes = bytes});
    return LeaveUntilItFits();
  }
  // All that is left.
  Status Finish() {
    while (size() > 0) RETURN_IF_ERROR(LeaveFirst());
    return OkStatus();
  }

 private:
  struct Held {
    int64_t arrival_ns = 0;
    uint64_t number = 0;  // in the order of coming
    IoRecord record;
    Message message;   // instead of a record
    size_t bytes = 0;  // of the message
    // A heap's first is its largest: later is less.
    bool operator<(const Held& other) const {
      return std::pair(arrival_ns, number) > std::pair(other.arrival_ns, other.number);
    }
  };

  size_t size() const { return in_order_.size() + late_.size(); }

  Status Leave(const Held& held) { return held.message ? held.message() : write_(held.record); }

  Status LeaveUntilItFits() {
    while (size() > kCapacity || message_bytes_ > kMessageBytes) RETURN_IF_ERROR(LeaveFirst());
    return OkStatus();
  }

  Status LeaveFirst() {
    if (in_order_.empty() || (!late_.empty() && in_order_.front() < late_.top())) {
      const Held first = late_.top();
      late_.pop();
      return Leave(first);
    }
    message_bytes_ -= in_order_.front().bytes;
    const Status status = Leave(in_order_.front());
    in_order_.pop_front();
    return status;
  }

  const Write write_;
  RingQueue<Held> in_order_;
  std::priority_queue<Held> late_;
  int64_t watermark_ns_ = std::numeric_limits<int64_t>::min();
  uint64_t next_ = 0;
  size_t message_bytes_ = 0;  // messages are only in in_order_
};

}  // namespace blktape
