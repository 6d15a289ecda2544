#include "capture/assemble/loss_book.h"

#include <algorithm>

#include "base/units.h"

namespace blktape {

void LossBook::Count(proto::LossReason reason, uint32_t device, int64_t ns, const char* detail) {
  for (proto::Loss& loss : open_) {
    if (loss.reason() != reason || loss.device() != device) continue;
    loss.set_count(loss.count() + 1);
    loss.set_from_ns(std::min<int64_t>(loss.from_ns(), ns));
    loss.set_to_ns(std::max<int64_t>(loss.to_ns(), ns));
    return;
  }
  proto::Loss& loss = open_.emplace_back();
  loss.set_reason(reason);
  loss.set_device(device);
  loss.set_count(1);
  loss.set_from_ns(ns);
  loss.set_to_ns(ns);
  loss.set_detail(detail);
}

void LossBook::Advance(int64_t now_ns) {
  std::erase_if(open_, [&](const proto::Loss& loss) {
    if (now_ns - loss.from_ns() <= kNanosPerSecond) return false;
    report_(loss);
    return true;
  });
}

void LossBook::Flush() {
  for (const proto::Loss& loss : open_) report_(loss);
  open_.clear();
}

}  // namespace blktape
