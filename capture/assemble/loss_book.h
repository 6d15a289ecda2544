#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "format/trace.pb.h"

namespace blktape {

// Combines single losses into one message per second and kind, so that many of them do not make the
// trace large. Not thread-safe.
class LossBook {
 public:
  using Report = std::function<void(const proto::Loss&)>;
  explicit LossBook(Report report) : report_(std::move(report)) {}

  // Counts one loss of `reason` on `device` at `ns`.
  void Count(proto::LossReason reason, uint32_t device, int64_t ns, const char* detail);
  // Reports the messages that began more than a second before `now_ns`.
  void Advance(int64_t now_ns);
  // Reports all messages.
  void Flush();

 private:
  Report report_;
  std::vector<proto::Loss> open_;  // one per reason and device; there are few
};

}  // namespace blktape
