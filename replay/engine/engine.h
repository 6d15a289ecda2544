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
  uint64_t tag = 0;     // returned with the completion; unique among the requests in flight
  uint32_t target = 0;  // index of the target the engine was opened on
  Op op = Op::kRead;
  uint32_t flags = 0;  // engines use kFlagFua, kFlagPreflush and kFlagSync
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
  std::byte* buffer = nullptr;
};

struct EngineCompletion {
  uint64_t tag = 0;
  uint64_t bytes_done = 0;  // the engine continues short transfers, so fewer than requested only at
                            // the end of a target
  uint32_t error = 0;       // positive errno
  int64_t complete_ns = 0;  // the engine's clock when the request was reaped
  int64_t held_back_ns = 0;  // by the engine: it issued the request so long after its submission
  bool punted = false;       // handed to a kernel worker instead of being issued inline
  bool woken = false;  // the thread slept in Reap() until the kernel woke it for this completion or
                       // another
};

// Submits requests to targets. Used by one thread. Every accepted request completes exactly once.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string_view name() const = 0;  // "io_uring", "libaio", "simulated", "null"
  // How requests reach the kernel, for the result: "registered files and buffers, inline".
  virtual std::string mode() const = 0;

  // The maximum number of requests in flight.
  virtual uint32_t depth() const = 0;

  // Submits the first n of `requests` and returns n, which is less than all only if depth() is
  // reached. Retries what the kernel accepted only in part or refused temporarily (EAGAIN). Fails
  // only if the engine itself is broken: an error of a single request is reported in its
  // completion.
  virtual Result<size_t> Submit(std::span<const EngineRequest> requests) = 0;

  // Moves completions into `out` and returns how many. Waits until there is at least one or the
  // clock reaches `deadline_ns`; a deadline in the past means not to wait. Returns at once if
  // nothing is in flight and the deadline has passed.
  virtual Result<size_t> Reap(std::span<EngineCompletion> out, int64_t deadline_ns) = 0;

  virtual uint32_t in_flight() const = 0;

  // Called with nothing in flight: submits a zero-length request that no driver sees. A thread that
  // slept finds the submission path no longer in the CPU's caches and address translations; a
  // thread that polls for a due time reloads them this way, so that the first request is not
  // delayed.
  virtual Status Rehearse() { return OkStatus(); }

  // Waits for the requests in flight and releases the engine's kernel resources. The last call of
  // the thread that used the engine: only that thread can release some of them. The destructor
  // releases what is left, as far as another thread can.
  virtual void Close() {}
};

}  // namespace blktape
