#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "replay/issue/issuer_options.h"
#include "replay/issue/slot_table.h"
#include "replay/plan/plan.h"

namespace blktape {

// When the I/O at the front of the plan is due, for each rule that issues in the plan's order; in
// ns on the replay's clock. Every step of the plan goes through Require() once, then, if it is an
// I/O, DueNs() until it is taken (nullopt: not before a completion), and Took(). Completed() is
// told of every completion. Nothing is allocated after construction. Not thread-safe.

// kTimed: when the trace says.
class TimedRule {
 public:
  TimedRule(const IssuerOptions& /*options*/, const SlotTable& /*slots*/) {}
  void Start(int64_t start_ns) { start_ns_ = start_ns; }
  void Require(const PlannedIo& /*step*/) {}
  std::optional<int64_t> DueNs(const PlannedIo& io) const { return start_ns_ + io.offset_ns; }
  void Took(const PlannedIo& /*io*/) {}
  void Completed(uint32_t /*gate*/, int64_t /*seen_ns*/) {}

 private:
  int64_t start_ns_ = 0;
};

// kMaxOrder: when all that the steps up to it name are complete, and its think time is over.
class MaxOrderRule {
 public:
  MaxOrderRule(const IssuerOptions& /*options*/, const SlotTable& /*slots*/)
      : gates_(kMaxGateSlots) {}
  void Start(int64_t start_ns) { open_ns_ = start_ns; }
  void Require(const PlannedIo& step) {
    for (int i = 0; i < step.required_count; ++i) {
      Gate& gate = gates_[step.required[i]];
      if (gate.state == State::kDone) {
        open_ns_ = std::max(open_ns_, gate.seen_ns);
      } else {
        gate.state = State::kRequired;
        ++required_out_;
      }
    }
  }
  std::optional<int64_t> DueNs(const PlannedIo& io) const {
    if (required_out_ > 0) return std::nullopt;
    return open_ns_ + io.offset_ns;
  }
  void Took(const PlannedIo& io) {
    if (io.gate_slot != kNoGateSlot) gates_[io.gate_slot].state = State::kOut;
  }
  void Completed(uint32_t gate_slot, int64_t seen_ns) {
    if (gate_slot == kNoGateSlot) return;
    Gate& gate = gates_[gate_slot];
    gate.seen_ns = seen_ns;
    if (gate.state == State::kRequired) {
      --required_out_;
      open_ns_ = std::max(open_ns_, seen_ns);
    }
    gate.state = State::kDone;
  }

 private:
  enum class State : uint8_t { kOut, kRequired, kDone };
  struct Gate {
    int64_t seen_ns = 0;
    State state = State::kDone;
  };
  std::vector<Gate> gates_;
  uint64_t required_out_ = 0;  // named I/Os not complete yet
  int64_t open_ns_ = 0;        // when the last of the named ones completed
};

// kQueueDepth: when the slot became free that has been so for the longest time; with think time,
// when all are, and it is over.
class QueueDepthRule {
 public:
  QueueDepthRule(const IssuerOptions& options, const SlotTable& slots)
      : slots_(slots), freed_ns_(options.depth) {}
  void Start(int64_t start_ns) {
    start_ns_ = start_ns;
    std::ranges::fill(freed_ns_, start_ns);
    count_ = freed_ns_.size();
  }
  void Require(const PlannedIo& /*step*/) {}
  std::optional<int64_t> DueNs(const PlannedIo& io) const {
    if (count_ == 0 || (io.wait_idle && count_ < freed_ns_.size())) return std::nullopt;
    if (!io.wait_idle) return freed_ns_[head_];
    return std::max(start_ns_, slots_.latest().ns) + io.offset_ns;
  }
  void Took(const PlannedIo& /*io*/) {
    head_ = (head_ + 1) % freed_ns_.size();
    --count_;
  }
  void Completed(uint32_t /*gate*/, int64_t seen_ns) {
    freed_ns_[(head_ + count_++) % freed_ns_.size()] = seen_ns;
  }

 private:
  const SlotTable& slots_;
  int64_t start_ns_ = 0;
  std::vector<int64_t> freed_ns_;  // of each free slot, the oldest at head_
  size_t head_ = 0;
  size_t count_ = 0;
};

}  // namespace blktape
