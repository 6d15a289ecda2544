#include "replay/outcome/lateness_split.h"

#include <algorithm>

namespace blktape {

LatenessSplit::Parts LatenessSplit::Add(int64_t due_ns, int64_t freed_ns, int64_t issue_ns,
                                        int64_t complete_ns) {
  const int64_t eligible_ns = std::max(due_ns, std::min(freed_ns, issue_ns));
  int64_t prompt_ns = eligible_ns;  // when the host that never stops issues it
  int64_t real_ns = eligible_ns;    // when it could really be issued
  if (slots_.size() == depth_) {
    prompt_ns = std::max(prompt_ns, slots_.top().prompt_ns);
    real_ns = std::max(real_ns, slots_.top().real_ns);
    slots_.pop();
  }
  const int64_t late_ns = std::max<int64_t>(0, issue_ns - due_ns);
  const int64_t lateness_ns = std::clamp<int64_t>(issue_ns - prompt_ns, 0, late_ns);

  // Where the drive had other work all the while, it lost nothing by the delay, nor do those
  // behind.
  const bool drive_was_busy = busy_from_ns_ <= prompt_ns && busy_to_ns_ >= issue_ns;
  const int64_t inherited_ns = std::clamp<int64_t>(real_ns - prompt_ns, 0, lateness_ns);
  const int64_t own_ns = lateness_ns - inherited_ns;
  const int64_t carried_ns =
      drive_was_busy ? 0 : inherited_ns + (own_ns > kReactionNs ? own_ns : 0);
  slots_.push({complete_ns - carried_ns, complete_ns});
  if (issue_ns > busy_to_ns_) busy_from_ns_ = issue_ns;
  busy_to_ns_ = std::max(busy_to_ns_, complete_ns);
  return {.lateness_ns = lateness_ns, .backlog_ns = late_ns - lateness_ns};
}

}  // namespace blktape
