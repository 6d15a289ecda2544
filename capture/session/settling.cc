#include "capture/session/settling.h"

#include "base/units.h"

namespace blktape {
namespace {

constexpr int64_t kQuietNs = kNanosPerSecond;

}  // namespace

std::optional<bool> Settling::Done(int64_t now_ns, uint64_t ios) {
  if (ios != ios_) last_io_ns_ = now_ns;
  ios_ = ios;
  if (now_ns - last_io_ns_ >= kQuietNs && dirty_kib_() <= kDirtyLeftKiB) return true;
  if (now_ns >= end_ns_) return false;
  return std::nullopt;
}

}  // namespace blktape
