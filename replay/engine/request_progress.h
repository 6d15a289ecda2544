#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/io_record.h"
#include "replay/engine/engine.h"

namespace blktape {

// One thing to ask of the kernel on behalf of a request.
struct EngineStep {
  Op op = Op::kRead;     // never with flags of its own: a PREFLUSH has become a kFlush before it
  bool durable = false;  // a write with FUA
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
  std::byte* buffer = nullptr;
};

// How far a request has come: which steps it needs, what is left after a short transfer, what is
// to be asked again. Pure.
//
// A write with PREFLUSH becomes a flush and then, when that is complete, the write: the kernel has
// no interface that asks a block device for both at once. What the drive gets is the same as what
// it gets of a file system's flagged write; the time from the flush to the write has our round
// trip in it. FUA is asked for by RWF_DSYNC, of which the kernel makes REQ_FUA in direct writes to
// a block device, and of that, where the drive lacks it, a write and a flush.
class RequestProgress {
 public:
  // Forgets the request before. Returns 0, or the errno with which `request` is refused unasked
  // (EOPNOTSUPP: zone append).
  uint32_t Start(const EngineRequest& request);

  const EngineRequest& request() const { return request_; }

  // What to ask now. Valid after Start until Book returns true.
  EngineStep Next() const;

  // Takes the kernel's answer to Next(), bytes or a negative errno, that came at `now_ns`. True:
  // the request is complete; false: Next() says what is still to be asked. EAGAIN and EINTR are
  // asked again for up to kRetryNs, then they are the request's error.
  bool Book(int64_t result, int64_t now_ns);

  void MarkPunted() { punted_ = true; }

  EngineCompletion Completion(int64_t now_ns) const;

  static constexpr int64_t kRetryNs = 30'000'000'000;
  // A single read or write asks for no more: the kernel would cut it at 2 GiB less a page anyway.
  static constexpr uint64_t kMaxStepBytes = 1ull << 30;

 private:
  EngineRequest request_;
  bool flush_first_ = false;
  bool punted_ = false;
  uint32_t error_ = 0;
  uint64_t done_bytes_ = 0;
  std::optional<int64_t> refused_since_ns_;
};

}  // namespace blktape
