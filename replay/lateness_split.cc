#include "replay/lateness_split.h"

#include <algorithm>

namespace blktape {

LatenessSplit::Parts LatenessSplit::Add(int64_t due_ns, int64_t freed_ns, int64_t issue_ns,
                                        int64_t complete_ns) {
  int64_t prompt_ns = std::max(due_ns, std::min(freed_ns, issue_ns));
  if (slots_.size() == depth_) {
    prompt_ns = std::max(prompt_ns, slots_.top());
    slots_.pop();
  }
  const int64_t late_ns = std::max<int64_t>(0, issue_ns - due_ns);
  const int64_t lateness_ns = std::clamp<int64_t>(issue_ns - prompt_ns, 0, late_ns);
  slots_.push(complete_ns - (lateness_ns > kReactionNs ? lateness_ns : 0));
  return {.lateness_ns = lateness_ns, .backlog_ns = late_ns - lateness_ns};
}

}  // namespace blktape
