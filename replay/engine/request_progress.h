#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/io_record.h"
#include "replay/engine/engine.h"

namespace blktape {

// One kernel operation on behalf of a request.
struct EngineStep {
  Op op = Op::kRead;     // without flags: a PREFLUSH has become a kFlush step before this one
  bool durable = false;  // a write with FUA
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
  std::byte* buffer = nullptr;
};

// The progress of a request: which steps it needs, what is left after a short transfer, what to
// retry. Pure.
//
// A write with PREFLUSH becomes a flush and, when the flush is complete, the write: the kernel has
// no interface that does both on a block device at once. The drive gets the same commands as for a
// flagged write of a file system, but the time between flush and write includes a round trip
// through user space, in which FlushOrder keeps other flushes back. FUA is requested with
// RWF_DSYNC. In direct writes to a block device the kernel turns it into REQ_FUA or, if the drive
// lacks FUA, into a write and a flush. What device-mapper has passed on (kFlagMapped) needs two
// flushes first there, as it did when it was recorded.
class RequestProgress {
 public:
  // Starts a new request and forgets the previous one. Returns 0, or the errno with which `request`
  // is refused without asking the kernel (EOPNOTSUPP: zone append). `has_fua`: the target is no
  // block device without FUA.
  uint32_t Start(const EngineRequest& request, bool has_fua = true);

  const EngineRequest& request() const { return request_; }

  // The step to submit now. Valid after Start until Book returns true.
  EngineStep Next() const;

  // Books the result of the step Next(), a number of bytes or a negative errno, at time `now_ns`.
  // True: the request is complete. False: Next() is the next step to submit. EAGAIN and EINTR are
  // retried for up to kRetryNs, then they become the request's error.
  bool Book(int64_t result, int64_t now_ns);

  void MarkPunted() { punted_ = true; }
  void MarkHeldBack(int64_t ns) { held_back_ns_ = ns; }

  EngineCompletion Completion(int64_t now_ns) const;

  static constexpr int64_t kRetryNs = 30'000'000'000;
  // The maximum size of one read or write step: the kernel limits them to 2 GiB less one page
  // anyway.
  static constexpr uint64_t kMaxStepBytes = 1ull << 30;

 private:
  EngineRequest request_;
  int flushes_first_ = 0;
  bool punted_ = false;
  int64_t held_back_ns_ = 0;
  uint32_t error_ = 0;
  uint64_t done_bytes_ = 0;
  std::optional<int64_t> refused_since_ns_;
};

}  // namespace blktape
