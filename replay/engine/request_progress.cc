#include "replay/engine/request_progress.h"

#include <algorithm>
#include <cerrno>

namespace blktape {
namespace {

bool IsTransfer(Op op) { return op == Op::kRead || op == Op::kWrite; }

}  // namespace

uint32_t RequestProgress::Start(const EngineRequest& request, bool has_fua) {
  request_ = request;
  punted_ = false;
  held_back_ns_ = 0;
  error_ = 0;
  done_bytes_ = 0;
  refused_since_ns_.reset();
  flushes_first_ = request.op == Op::kWrite ? FlushesFirst(request.flags, has_fua) : 0;
  if (request.op == Op::kZoneAppend) error_ = EOPNOTSUPP;
  return error_;
}

EngineStep RequestProgress::Next() const {
  if (flushes_first_ > 0 || request_.op == Op::kFlush) return {.op = Op::kFlush};
  EngineStep step{.op = request_.op,
                  .durable = request_.op == Op::kWrite && (request_.flags & kFlagFua) != 0,
                  .offset_bytes = request_.offset_bytes + done_bytes_,
                  .bytes = request_.bytes - done_bytes_};
  if (IsTransfer(step.op)) {
    step.bytes = std::min(step.bytes, kMaxStepBytes);
    step.buffer = request_.buffer + done_bytes_;
  }
  return step;
}

bool RequestProgress::Book(int64_t result, int64_t now_ns) {
  if (result == -EAGAIN || result == -EINTR) {
    if (!refused_since_ns_) refused_since_ns_ = now_ns;
    if (now_ns - *refused_since_ns_ < kRetryNs) return false;
  }
  if (result < 0) {
    error_ = static_cast<uint32_t>(-result);
    return true;
  }
  refused_since_ns_.reset();
  if (flushes_first_ > 0) {
    --flushes_first_;
    return flushes_first_ == 0 && request_.bytes == 0;
  }
  if (!IsTransfer(request_.op)) {
    if (request_.op != Op::kFlush) done_bytes_ = request_.bytes;
    return true;
  }
  done_bytes_ += static_cast<uint64_t>(result);
  // Zero bytes were transferred: the end of the target.
  return result == 0 || done_bytes_ >= request_.bytes;
}

EngineCompletion RequestProgress::Completion(int64_t now_ns) const {
  return {.tag = request_.tag,
          .bytes_done = done_bytes_,
          .error = error_,
          .complete_ns = now_ns,
          .held_back_ns = held_back_ns_,
          .punted = punted_};
}

}  // namespace blktape
