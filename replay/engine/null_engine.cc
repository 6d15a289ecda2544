#include "replay/engine/null_engine.h"

#include <algorithm>
#include <vector>

namespace blktape {
namespace {

class NullEngine : public Engine {
 public:
  explicit NullEngine(const EngineOptions& options)
      : depth_(options.depth), clock_(options.clock), done_(options.depth) {}

  std::string_view name() const override { return "null"; }
  std::string mode() const override { return "completes at once, touches nothing"; }
  uint32_t depth() const override { return depth_; }
  uint32_t in_flight() const override { return in_flight_; }

  Result<size_t> Submit(std::span<const EngineRequest> requests) override {
    const size_t count = std::min<size_t>(requests.size(), depth_ - in_flight_);
    for (size_t i = 0; i < count; ++i) {
      Slot& slot = done_[(first_ + in_flight_) % depth_];
      slot = {requests[i].tag, requests[i].op == Op::kFlush ? 0 : requests[i].bytes};
      ++in_flight_;
    }
    return count;
  }

  Result<size_t> Reap(std::span<EngineCompletion> out, int64_t deadline_ns) override {
    const int64_t now_ns = clock_->NowNs();
    const size_t count = std::min<size_t>(out.size(), in_flight_);
    for (size_t i = 0; i < count; ++i) {
      out[i] = {.tag = done_[first_].tag, .bytes_done = done_[first_].bytes, .complete_ns = now_ns};
      first_ = (first_ + 1) % depth_;
    }
    in_flight_ -= static_cast<uint32_t>(count);
    if (count == 0 && now_ns < deadline_ns) clock_->SleepUntilNs(deadline_ns);
    return count;
  }

 private:
  struct Slot {
    uint64_t tag = 0;
    uint64_t bytes = 0;
  };
  const uint32_t depth_;
  Clock* const clock_;
  std::vector<Slot> done_;  // a ring
  uint32_t first_ = 0;
  uint32_t in_flight_ = 0;
};

}  // namespace

std::unique_ptr<Engine> MakeNullEngine(const EngineOptions& options) {
  return std::make_unique<NullEngine>(options);
}

}  // namespace blktape
