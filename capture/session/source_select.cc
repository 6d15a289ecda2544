#include "capture/session/source_select.h"

#include <optional>
#include <utility>

#include "capture/blktrace/blktrace_source.h"
#include "capture/bpf/bpf_probe.h"
#include "capture/bpf/bpf_source.h"
#include "capture/tracefs/tracefs_source.h"

namespace blktape {
namespace {

// What costs least first.
const SourceKind kKinds[] = {
    {"bpf",
     [](const SourceRequest& request) -> std::unique_ptr<LiveSource> {
       BpfSourceOptions options;
       options.ring_bytes_per_cpu = request.buffer_bytes_per_cpu;
       return MakeBpfSource(request.devices, options);
     },
     &WhyBpfMayMissEvents},
    {"tracefs",
     [](const SourceRequest& request) -> std::unique_ptr<LiveSource> {
       TracefsOptions options;
       options.buffer_bytes_per_cpu = request.buffer_bytes_per_cpu;
       return std::make_unique<TracefsSource>(request.devices, options);
     }},
    {"blktrace",
     [](const SourceRequest& request) -> std::unique_ptr<LiveSource> {
       BlktraceOptions options;
       options.buffer_bytes_per_cpu = request.buffer_bytes_per_cpu;
       return std::make_unique<BlktraceSource>(request.devices, options);
     }},
};

}  // namespace

std::vector<std::string> LiveSourceNames() {
  std::vector<std::string> names;
  for (const SourceKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Result<StartedSource> StartLiveSource(const SourceRequest& request) {
  return StartLiveSource(request, kKinds);
}

Result<StartedSource> StartLiveSource(const SourceRequest& request,
                                      std::span<const SourceKind> kinds) {
  StartedSource started;
  std::unique_ptr<LiveSource> doubted;
  SinkBuffer doubted_told;
  Status first;
  for (const SourceKind& kind : kinds) {
    if (request.kind != "auto" && request.kind != kind.name) continue;
    std::unique_ptr<LiveSource> source = kind.make(request);
    SinkBuffer told;
    Status status = source->Start();
    // What this thread reads before a session names its threads is the recorder's, too.
    if (status.ok()) source->MarkThread();
    if (status.ok()) status = source->Poll(/*timeout_ms=*/0, &told).status();
    if (!status.ok()) {
      if (first.ok()) first = status;
      started.refused.push_back(status.message());
      continue;
    }
    if (request.kind == "auto" && kind.why_not != nullptr) {
      if (const std::optional<std::string> why_not = kind.why_not()) {
        started.refused.push_back(*why_not);
        doubted = std::move(source);
        doubted_told = std::move(told);
        continue;
      }
    }
    started.source = std::move(source);
    started.told = std::move(told);
    return started;
  }
  // Better than nothing: what it misses it counts.
  if (doubted != nullptr) {
    started.source = std::move(doubted);
    started.told = std::move(doubted_told);
    return started;
  }
  if (request.kind != "auto") {
    if (!first.ok()) return first;
    return Status(StatusCode::kInvalidArgument, "there is no source \"" + request.kind + "\"");
  }
  std::string message = "no way to record block I/O works on this machine";
  for (const std::string& refused : started.refused) message += "\n" + refused;
  return Status(first.code(), message);
}

}  // namespace blktape
