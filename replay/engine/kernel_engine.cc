#include "replay/engine/kernel_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace blktape {
namespace {

// A deadline may be centuries ahead; one wait is limited to less.
constexpr int64_t kLongestWaitNs = 3600 * kNanosPerSecond;
constexpr int64_t kDrainNs = 10 * kNanosPerSecond;

}  // namespace

KernelEngine::KernelEngine(const EngineOptions& options)
    : targets_(options.targets),
      depth_(options.depth),
      clock_(options.clock),
      slots_(options.depth),
      flushes_keep_their_place_(options.flushes_keep_their_place),
      flush_there_ns_(options.targets.size(), INT64_MIN) {
  flush_orders_.reserve(targets_.size());
  for (size_t i = 0; i < targets_.size(); ++i) flush_orders_.emplace_back(depth_);
  free_.reserve(depth_);
  for (uint32_t slot = depth_; slot > 0; --slot) free_.push_back(slot - 1);
  ready_.reserve(depth_);
  for_pool_.reserve(depth_);
}

const Target& KernelEngine::TargetOf(const EngineRequest& request) const {
  BLKTAPE_CHECK(request.target < targets_.size());
  return *targets_[request.target];
}

Status KernelEngine::AttachOnce() {
  if (attached_) return OkStatus();
  attached_ = true;
  return Attach();
}

void KernelEngine::HandToPool(uint32_t slot, const EngineStep& step) {
  if (pool_ == nullptr) {
    Result<std::unique_ptr<SyncPool>> pool = SyncPool::Open();
    if (!pool.ok()) return Finish(slot, -EMFILE);
    pool_ = *std::move(pool);
  }
  slots_[slot].MarkPunted();
  for_pool_.push_back({slot, step});
}

// What was prepared first goes first: the block layer has a write before the pool flushes.
Status KernelEngine::PushAll() {
  // One that makes room by collecting completions may get here again, and pushes what they lead to.
  if (pushing_) return OkStatus();
  pushing_ = true;
  const Status pushed = Push();
  pushing_ = false;
  RETURN_IF_ERROR(pushed);
  for (const Handed& handed : for_pool_) {
    const Target& to = target(handed.slot);
    pool_->Submit(handed.slot, to.fd(), to.is_block_device(), handed.step);
  }
  for_pool_.clear();
  return OkStatus();
}

// Null if the request has no flush, or none of a block device.
FlushOrder* KernelEngine::FlushOrderOf(uint32_t slot) {
  const EngineRequest& request = slots_[slot].request();
  const bool flushes =
      request.op == Op::kFlush ||
      (request.op == Op::kWrite && (request.flags & (kFlagPreflush | kFlagFua)) != 0);
  return flushes && target(slot).is_block_device() ? &flush_orders_[request.target] : nullptr;
}

// For tens of microseconds, in which a thread that sleeps would not come back in time.
void KernelEngine::IssueInPlace(uint32_t slot, const EngineStep& step) {
  Clock* const clock = Clock::Monotonic();
  int64_t& there_ns = flush_there_ns_[slots_[slot].request().target];
  if (step.op != Op::kFlush) {
    if (there_ns != INT64_MIN) {
      const int64_t begin_ns = clock->NowNs();
      int64_t now_ns = begin_ns;
      while (now_ns < there_ns) now_ns = clock->NowNs();
      held_back_ns_ += now_ns - begin_ns;
      there_ns = INT64_MIN;
    }
    return Issue(slot, step);
  }
  Issue(slot, step);
  const Target& to = target(slot);
  // To a drive without a volatile cache the kernel sends no flush.
  const bool sent = to.is_block_device() && to.description().write_cache() != "write through";
  if (!flushes_keep_their_place_ || !sent) return;
  // If it fails, so does the next one, which is looked at. What a completion leads to is pushed
  // once all are booked.
  if (submitting_) (void)PushAll();
  there_ns = clock->NowNs() + kFlushTakesNs;
}

void KernelEngine::IssueReady(FlushOrder* order) {
  while (const std::optional<uint32_t> held = order->TakeReady()) {
    IssueInPlace(*held, slots_[*held].Next());
  }
}

void KernelEngine::IssueNext(uint32_t slot) {
  const EngineStep step = slots_[slot].Next();
  FlushOrder* const order = FlushOrderOf(slot);
  if (order == nullptr) return IssueInPlace(slot, step);
  using Kind = FlushOrder::Kind;
  const EngineRequest& request = slots_[slot].request();
  Kind kind = Kind::kData;
  if (step.op == Op::kFlush) {
    // What device-mapper has passed on was two requests there, too.
    const bool one =
        request.op == Op::kWrite && request.bytes > 0 && (request.flags & kFlagMapped) == 0;
    kind = one ? Kind::kPreflush : Kind::kFlush;
  } else if (step.durable && !target(slot).abilities().fua) {
    kind = Kind::kDurable;
  }
  if (order->Submit(slot, kind)) IssueInPlace(slot, step);
  IssueReady(order);
}

void KernelEngine::Release(uint32_t slot) {
  free_.push_back(slot);
  FlushOrder* const order = FlushOrderOf(slot);
  if (order == nullptr) return;
  order->Complete(slot);
  IssueReady(order);
}

void KernelEngine::Finish(uint32_t slot, int64_t result) {
  RequestProgress& progress = slots_[slot];
  if (!progress.Book(result, now_ns_)) return IssueNext(slot);
  ready_.push_back(progress.Completion(now_ns_));
  Release(slot);
}

Result<size_t> KernelEngine::Submit(std::span<const EngineRequest> requests) {
  RETURN_IF_ERROR(AttachOnce());
  const size_t count = std::min<size_t>(requests.size(), depth_ - in_flight_);
  held_back_ns_ = 0;
  submitting_ = true;
  for (const EngineRequest& request : requests.first(count)) {
    BLKTAPE_CHECK(!free_.empty());
    const uint32_t slot = free_.back();
    free_.pop_back();
    ++in_flight_;
    const Target& to = TargetOf(request);
    if (slots_[slot].Start(request, !to.is_block_device() || to.abilities().fua) != 0) {
      ready_.push_back(slots_[slot].Completion(clock_->NowNs()));
      free_.push_back(slot);
      continue;
    }
    IssueNext(slot);
    slots_[slot].MarkHeldBack(held_back_ns_);
  }
  submitting_ = false;
  RETURN_IF_ERROR(PushAll());
  return count;
}

// Books everything that has completed and submits the continuations of short transfers.
Status KernelEngine::Gather() {
  RETURN_IF_ERROR(Collect());
  if (pool_ != nullptr && pool_->outstanding() > 0) {
    pool_outcomes_.clear();
    pool_->Collect(&pool_outcomes_);
    if (!pool_outcomes_.empty()) StampNow();
    for (const SyncPool::Outcome& outcome : pool_outcomes_) Finish(outcome.slot, outcome.result);
  }
  return PushAll();
}

size_t KernelEngine::TakeReady(std::span<EngineCompletion> out) {
  const size_t count = std::min(out.size(), ready_.size() - ready_begin_);
  std::copy_n(ready_.begin() + static_cast<ptrdiff_t>(ready_begin_), count, out.begin());
  ready_begin_ += count;
  if (ready_begin_ == ready_.size() || ready_begin_ >= depth_) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(ready_begin_));
    ready_begin_ = 0;
  }
  in_flight_ -= static_cast<uint32_t>(count);
  return count;
}

Result<size_t> KernelEngine::Reap(std::span<EngineCompletion> out, int64_t deadline_ns) {
  RETURN_IF_ERROR(AttachOnce());
  if (out.empty()) return size_t{0};
  bool slept = false;
  while (true) {
    RETURN_IF_ERROR(Gather());
    if (const size_t count = TakeReady(out); count > 0) {
      if (slept) {
        for (EngineCompletion& completion : out.first(count)) completion.woken = true;
      }
      return count;
    }
    StampNow();
    if (now_ns_ >= deadline_ns) return size_t{0};
    if (in_flight_ == 0) {
      clock_->SleepUntilNs(deadline_ns);
      return size_t{0};
    }
    if (polls()) continue;
    const bool pool_busy = pool_ != nullptr && pool_->outstanding() > 0;
    RETURN_IF_ERROR(Wait(std::min(deadline_ns - now_ns_, kLongestWaitNs), pool_busy));
    slept = true;
  }
}

Status KernelEngine::Rehearse() {
  RETURN_IF_ERROR(AttachOnce());
  if (in_flight_ > 0 || targets_.empty()) return OkStatus();
  RETURN_IF_ERROR(IssueEmptyRead(rehearsed_));
  rehearsed_ = (rehearsed_ + 1) % static_cast<uint32_t>(targets_.size());
  return Collect();
}

void KernelEngine::DrainForClose() {
  std::vector<EngineCompletion> ignored(depth_);
  const int64_t deadline_ns = Clock::Monotonic()->NowNs() + kDrainNs;
  while (in_flight_ > 0 && Clock::Monotonic()->NowNs() < deadline_ns) {
    if (!Reap(ignored, clock_->NowNs() + kNanosPerMilli).ok()) return;
  }
}

}  // namespace blktape
