#include "replay/issue/frontier.h"

namespace blktape {

void Frontier::Take(uint32_t slot) {
  out_[slot] = {.number = ++taken_, .older = youngest_, .younger = kNone};
  (youngest_ == kNone ? oldest_ : out_[youngest_].younger) = slot;
  youngest_ = slot;
}

void Frontier::Done(uint32_t slot) {
  const Out& out = out_[slot];
  (out.older == kNone ? oldest_ : out_[out.older].younger) = out.younger;
  (out.younger == kNone ? youngest_ : out_[out.younger].older) = out.older;
}

}  // namespace blktape
