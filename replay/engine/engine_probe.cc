#include "replay/engine/engine_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/units.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_factory.h"
#include "replay/engine/engine_options.h"

namespace blktape {
namespace {

constexpr uint32_t kDepth = 32;
constexpr uint64_t kReadBytes = 4096;
constexpr int kRounds = 3;  // each with both engines in turns
constexpr size_t kReadsAtOne = 100;
constexpr size_t kReadsAtDepth = 1000;
constexpr int64_t kPhaseNs = 60 * kNanosPerMilli;
constexpr double kTie = 1.3;

struct Samples {
  std::vector<int64_t> latencies_ns;
  std::vector<double> rates;
};

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

EngineFigures FiguresOf(const Samples& samples) {
  return {.latency_ns = static_cast<int64_t>(
              MedianOf({samples.latencies_ns.begin(), samples.latencies_ns.end()})),
          .reads_per_second = MedianOf(samples.rates)};
}

// Reads with one engine at random places of one target.
class Prober {
 public:
  Prober(const Target& target, std::span<std::byte> buffer, uint64_t seed)
      : buffer_(buffer), random_(seed), blocks_(target.size_bytes() / kReadBytes) {}

  Status AtOne(Engine* engine, Samples* samples) {
    const int64_t end_ns = clock_->NowNs() + kPhaseNs;
    for (size_t i = 0; i < kReadsAtOne; ++i) {
      const int64_t submit_ns = clock_->NowNs();
      if (submit_ns > end_ns) break;
      RETURN_IF_ERROR(Submit(engine, 1));
      EngineCompletion completion;
      RETURN_IF_ERROR(engine->Reap({&completion, 1}, INT64_MAX).status());
      samples->latencies_ns.push_back(completion.complete_ns - submit_ns);
    }
    return OkStatus();
  }

  Status AtDepth(Engine* engine, Samples* samples) {
    const int64_t start_ns = clock_->NowNs();
    std::array<EngineCompletion, kDepth> completions;
    size_t submitted = 0;
    size_t completed = 0;
    while (completed < kReadsAtDepth) {
      // Looked at once a round: with nothing in flight, none submitted would be waited for forever.
      const bool over = clock_->NowNs() > start_ns + kPhaseNs;
      if (over && engine->in_flight() == 0) break;
      const size_t room = kDepth - engine->in_flight();
      const size_t count = over ? 0 : std::min(room, kReadsAtDepth - submitted);
      RETURN_IF_ERROR(Submit(engine, count));
      submitted += count;
      const Result<size_t> got = engine->Reap(completions, INT64_MAX);
      RETURN_IF_ERROR(got.status());
      completed += *got;
    }
    const double seconds =
        static_cast<double>(clock_->NowNs() - start_ns) / static_cast<double>(kNanosPerSecond);
    if (seconds > 0) samples->rates.push_back(static_cast<double>(completed) / seconds);
    return OkStatus();
  }

 private:
  Status Submit(Engine* engine, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      requests_[i] = {.tag = i,
                      .op = Op::kRead,
                      .offset_bytes = random_() % blocks_ * kReadBytes,
                      .bytes = kReadBytes,
                      .buffer = buffer_.data() + i * kReadBytes};
    }
    return engine->Submit({requests_.data(), count}).status();
  }

  const std::span<std::byte> buffer_;
  std::mt19937_64 random_;
  const uint64_t blocks_;
  Clock* const clock_ = Clock::Monotonic();
  std::array<EngineRequest, kDepth> requests_;
};

Result<std::unique_ptr<Engine>> Open(const char* name, const Target* target,
                                     std::span<std::byte> arena) {
  EngineOptions options;
  options.targets = {target};
  options.depth = kDepth;
  options.arena = arena;
  return OpenEngine(name, options);
}

std::string Rate(double per_second) { return FormatCount(static_cast<uint64_t>(per_second)); }

}  // namespace

EngineChoice ChooseByFigures(const EngineFigures& io_uring, const EngineFigures& libaio) {
  const auto cost = [](const EngineFigures& figures) {
    return static_cast<double>(figures.latency_ns) / std::max(figures.reads_per_second, 1.0);
  };
  const bool uring = cost(io_uring) <= cost(libaio) * kTie;
  const EngineFigures& better = uring ? io_uring : libaio;
  const EngineFigures& other = uring ? libaio : io_uring;
  return {.engine = uring ? "io_uring" : "libaio",
          .reason =
              fmt::format("4 KiB reads take {} at queue depth 1 ({} by {}), {} a second at {} ({})",
                          FormatDurationNs(better.latency_ns), FormatDurationNs(other.latency_ns),
                          uring ? "libaio" : "io_uring", Rate(better.reads_per_second), kDepth,
                          Rate(other.reads_per_second))};
}

Result<EngineChoice> ChooseEngine(const std::vector<const Target*>& targets) {
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kReadBytes, kDepth * kReadBytes)), &std::free);
  if (memory == nullptr) return Status(StatusCode::kResourceExhausted, "engine probe: no memory");
  const std::span<std::byte> arena(memory.get(), kDepth * kReadBytes);
  Samples by_uring;
  Samples by_libaio;
  for (const Target* target : targets) {
    Result<std::unique_ptr<Engine>> uring = Open("io_uring", target, arena);
    Result<std::unique_ptr<Engine>> libaio = Open("libaio", target, arena);
    if (!uring.ok() && !libaio.ok()) return uring.status();
    if (!libaio.ok()) return EngineChoice{"io_uring", "libaio cannot be used here"};
    if (!uring.ok()) {
      const std::string& message = uring.status().message();
      return EngineChoice{"libaio", message.substr(0, message.find('\n'))};
    }
    if (!target->direct()) {
      return EngineChoice{
          "io_uring", target->path() + ": page cache, where libaio would block the issuing thread"};
    }
    if (target->size_bytes() < kReadBytes) continue;
    Prober prober(*target, arena, target->size_bytes());
    for (int round = 0; round < kRounds; ++round) {
      RETURN_IF_ERROR(prober.AtOne(uring->get(), &by_uring));
      RETURN_IF_ERROR(prober.AtOne(libaio->get(), &by_libaio));
      RETURN_IF_ERROR(prober.AtDepth(uring->get(), &by_uring));
      RETURN_IF_ERROR(prober.AtDepth(libaio->get(), &by_libaio));
    }
  }
  if (by_uring.latencies_ns.empty() || by_libaio.latencies_ns.empty()) {
    return EngineChoice{"io_uring", "nothing to probe"};
  }
  return ChooseByFigures(FiguresOf(by_uring), FiguresOf(by_libaio));
}

}  // namespace blktape
