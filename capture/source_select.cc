#include "capture/source_select.h"

#include <utility>

#include "capture/blktrace_source.h"
#include "capture/bpf/bpf_source.h"
#include "capture/tracefs_source.h"

namespace blktape {
namespace {

struct Kind {
  const char* name;
  std::unique_ptr<LiveSource> (*make)(const SourceRequest& request);
};

// As auto tries them. bpf costs least, but on a 6.18 kernel in a micro VM it was not told of one
// completion in some ten thousand, which tracefs saw: until that is understood, who wants it names
// it.
const Kind kKinds[] = {
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
    {"bpf",
     [](const SourceRequest& request) -> std::unique_ptr<LiveSource> {
       BpfSourceOptions options;
       if (request.buffer_bytes_per_cpu > 0) {
         options.ring_bytes_per_cpu = request.buffer_bytes_per_cpu;
       }
       return MakeBpfSource(request.devices, options);
     }},
};

}  // namespace

std::vector<std::string> LiveSourceNames() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Result<StartedSource> StartLiveSource(const SourceRequest& request) {
  StartedSource started;
  Status first;
  for (const Kind& kind : kKinds) {
    if (request.kind != "auto" && request.kind != kind.name) continue;
    std::unique_ptr<LiveSource> source = kind.make(request);
    const Status status = source->Start();
    if (status.ok()) {
      started.source = std::move(source);
      return started;
    }
    if (first.ok()) first = status;
    started.refused.push_back(status.message());
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
