#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "format/io_record.h"

namespace blktape {

// One operation for a target. `buffer` holds at least `bytes` for reads and writes, aligned to
// 4096, owned by the caller until the completion with the same `tag` is reaped.
struct EngineRequest {
  uint64_t tag = 0;     // comes back with the completion; unique among those in flight
  uint32_t target = 0;  // index of the target the engine was opened on
  Op op = Op::kRead;
  uint32_t flags = 0;  // kFlagFua, kFlagPreflush, kFlagSync matter to engines
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
  std::byte* buffer = nullptr;
};

struct EngineCompletion {
  uint64_t tag = 0;
  uint64_t bytes_done = 0;  // short transfers were continued by the engine; less than asked only at
                            // the end of a target
  uint32_t error = 0;       // positive errno
  int64_t complete_ns = 0;  // the engine's clock when it was reaped
  bool punted = false;      // handed to a kernel worker instead of being issued inline
  bool woken = false;  // the thread slept in Reap() until the kernel woke it for this or another
};

// Puts requests on targets. One thread uses it. Every accepted request completes exactly once.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string_view name() const = 0;  // "io_uring", "libaio", "simulated", "null"
  // How requests travel, for the result: "registered files and buffers, inline".
  virtual std::string mode() const = 0;

  // At most this many may be in flight.
  virtual uint32_t depth() const = 0;

  // Hands over the first n of `requests` and returns n; less than all only if depth() is reached.
  // Retries what the kernel took only in part or refused for the moment (EAGAIN). Fails only if the
  // engine itself is broken: what is wrong with one request comes as its completion's error.
  virtual Result<size_t> Submit(std::span<const EngineRequest> requests) = 0;

  // Moves completions into `out` and returns how many; waits until one is there or the clock shows
  // `deadline_ns` (a deadline in the past: does not wait). Returns at once when nothing is in
  // flight and the deadline has passed.
  virtual Result<size_t> Reap(std::span<EngineCompletion> out, int64_t deadline_ns) = 0;

  virtual uint32_t in_flight() const = 0;

  // With nothing in flight: goes the way that a submission goes, with a request of no bytes that
  // no driver sees. A thread that slept has lost the caches and address translations of that way;
  // who polls for a due time gets them back before the first request has to pay for it.
  virtual Status Rehearse() { return OkStatus(); }

  // Gives back what it holds of the kernel's, after what is in flight has completed. The last call
  // of the thread that used it: of some of it the kernel lets no other thread dispose. Destruction
  // does what was not done then, as far as another thread can.
  virtual void Close() {}
};

}  // namespace blktape
