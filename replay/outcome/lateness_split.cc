#include "replay/outcome/lateness_split.h"

#include <algorithm>

namespace blktape {
namespace {

constexpr size_t kRemembered = size_t{1} << 15;

}  // namespace

LatenessSplit::LatenessSplit(const std::vector<uint32_t>& depths) : ended_(kRemembered) {
  for (const uint32_t depth : depths) lanes_.emplace_back().depth = depth;
}

void LatenessSplit::Free::Await(const Free& other) {
  prompt_ns = std::max(prompt_ns, other.prompt_ns);
  real_ns = std::max(real_ns, other.real_ns);
}

// When the I/O that `waiting` depended on was complete.
LatenessSplit::Free LatenessSplit::EndOf(const IssuedIo& waiting) const {
  const int64_t real_ns = std::min(waiting.freed_ns, waiting.issue_ns);
  const Ended& ended = ended_[waiting.freed_by % kRemembered];
  const bool known = waiting.freed_by != kNoSequence && ended.sequence == waiting.freed_by;
  return {.prompt_ns = known ? std::min(ended.free.prompt_ns, real_ns) : real_ns,
          .real_ns = real_ns};
}

LatenessSplit::Parts LatenessSplit::Add(const IssuedIo& io) {
  Lane& lane = lanes_[io.lane];
  // When the I/O could be issued.
  Free free{.prompt_ns = io.due_ns, .real_ns = io.due_ns};
  free.Await(EndOf(io));
  if (lane.depth > 0 && lane.slots.size() == lane.depth) {
    free.Await(lane.slots.top());
    lane.slots.pop();
  }
  const int64_t late_ns = std::max<int64_t>(0, io.issue_ns - io.due_ns);
  const int64_t lateness_ns = std::clamp<int64_t>(io.issue_ns - free.prompt_ns, 0, late_ns);

  const Parts parts{.lateness_ns = lateness_ns, .backlog_ns = late_ns - lateness_ns};
  if (lane.depth == 0) return parts;
  // If the drive had other work during the whole delay, it lost no time, and neither did the I/Os
  // behind this one in its queue. But an I/O that depends on this one did.
  const bool drive_was_busy = lane.busy_from_ns <= free.prompt_ns && lane.busy_to_ns >= io.issue_ns;
  const int64_t inherited_ns = std::clamp<int64_t>(free.real_ns - free.prompt_ns, 0, lateness_ns);
  const int64_t own_ns = lateness_ns - inherited_ns;
  const int64_t carried_ns = inherited_ns + (own_ns > kReactionNs ? own_ns : 0);
  const int64_t seen_ns = std::max(io.seen_ns, io.complete_ns);
  lane.slots.push({io.complete_ns - (drive_was_busy ? 0 : carried_ns), seen_ns});
  ended_[io.sequence % kRemembered] = {.sequence = io.sequence,
                                       .free = {io.complete_ns - carried_ns, seen_ns}};
  if (io.issue_ns > lane.busy_to_ns) lane.busy_from_ns = io.issue_ns;
  lane.busy_to_ns = std::max(lane.busy_to_ns, io.complete_ns);
  return parts;
}

}  // namespace blktape
