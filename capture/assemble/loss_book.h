#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/trace.pb.h"

namespace blktape {

// Gathers losses that come one event at a time into one message a second and kind, so that a flood
// of them does not swell the trace. Not thread-safe.
class LossBook {
 public:
  using Report = std::function<void(const proto::Loss&)>;
  explicit LossBook(Report report) : report_(std::move(report)) {}

  // One more of `reason` on `device` at `ns`.
  void Count(proto::LossReason reason, uint32_t device, int64_t ns, const char* detail);
  // Reports what began more than a second before `now_ns`.
  void Advance(int64_t now_ns);
  // Reports all.
  void Flush();

 private:
  Report report_;
  std::vector<proto::Loss> open_;  // one per reason and device: few
};

}  // namespace blktape
