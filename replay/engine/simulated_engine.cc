#include "replay/engine/simulated_engine.h"

#include <algorithm>
#include <queue>
#include <vector>

namespace blktape {
namespace {

class SimulatedEngine : public Engine {
 public:
  explicit SimulatedEngine(const EngineOptions& options)
      : depth_(options.depth),
        clock_(options.clock),
        script_(options.script),
        drive_(options.drive) {}

  std::string_view name() const override { return "simulated"; }
  std::string mode() const override {
    return script_ ? "scripted service times" : "reference drive model";
  }
  uint32_t depth() const override { return depth_; }
  uint32_t in_flight() const override { return static_cast<uint32_t>(pending_.size()); }

  Result<size_t> Submit(std::span<const EngineRequest> requests) override {
    const size_t count = std::min<size_t>(requests.size(), depth_ - pending_.size());
    const int64_t now_ns = clock_->NowNs();
    for (const EngineRequest& request : requests.first(count)) {
      Pending pending{.sequence = next_sequence_++, .completion = {.tag = request.tag}};
      EngineCompletion& completion = pending.completion;
      if (script_) {
        const EngineOptions::ScriptedService service = script_(request);
        completion.complete_ns = now_ns + service.service_ns;
        completion.error = service.error;
      } else {
        completion.complete_ns =
            drive_.Accept(request.op, request.flags, request.bytes, now_ns, request.offset_bytes);
      }
      if (completion.error == 0 && request.op != Op::kFlush) completion.bytes_done = request.bytes;
      pending_.push(pending);
    }
    return count;
  }

  Result<size_t> Reap(std::span<EngineCompletion> out, int64_t deadline_ns) override {
    if (out.empty()) return size_t{0};
    const int64_t next_ns = pending_.empty()
                                ? deadline_ns
                                : std::min(deadline_ns, pending_.top().completion.complete_ns);
    const bool sleeps = clock_->NowNs() < next_ns;
    if (sleeps) clock_->SleepUntilNs(next_ns);
    const int64_t now_ns = clock_->NowNs();
    size_t count = 0;
    while (count < out.size() && !pending_.empty() &&
           pending_.top().completion.complete_ns <= now_ns) {
      out[count] = pending_.top().completion;
      out[count++].woken = sleeps;
      pending_.pop();
    }
    return count;
  }

 private:
  struct Pending {
    uint64_t sequence = 0;
    EngineCompletion completion;
    // The queue's top completes first; among equal times, the request submitted first.
    bool operator<(const Pending& other) const {
      if (completion.complete_ns != other.completion.complete_ns) {
        return completion.complete_ns > other.completion.complete_ns;
      }
      return sequence > other.sequence;
    }
  };
  const uint32_t depth_;
  Clock* const clock_;
  const std::function<EngineOptions::ScriptedService(const EngineRequest&)> script_;
  DriveSimulator drive_;
  std::priority_queue<Pending> pending_;
  uint64_t next_sequence_ = 0;
};

}  // namespace

std::unique_ptr<Engine> MakeSimulatedEngine(const EngineOptions& options) {
  return std::make_unique<SimulatedEngine>(options);
}

}  // namespace blktape
