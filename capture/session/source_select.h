#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"
#include "capture/source/sink_buffer.h"

namespace blktape {

struct SourceRequest {
  std::string kind = "auto";  // auto or one of LiveSourceNames()
  std::vector<Disk> devices;
  uint64_t buffer_bytes_per_cpu = 0;  // 0: sized to the machine
};

struct StartedSource {
  std::unique_ptr<LiveSource> source;
  SinkBuffer told;  // what it told when it was first asked
  // Why those that come before it do not work here, a line or more each; "auto" only.
  std::vector<std::string> refused;
};

// "bpf", "tracefs", ... in the order auto tries them.
std::vector<std::string> LiveSourceNames();

// Starts the source asked for, or the first that works on this machine: that starts and can be
// asked once. Where none does, the message says of each why, and what to do.
Result<StartedSource> StartLiveSource(const SourceRequest& request);

// A way to record, as auto tries them.
struct SourceKind {
  const char* name;
  std::unique_ptr<LiveSource> (*make)(const SourceRequest& request);
  // Why auto prefers another although this one has started; may be null.
  std::optional<std::string> (*why_not)() = nullptr;
};
// The same with other kinds: for tests.
Result<StartedSource> StartLiveSource(const SourceRequest& request,
                                      std::span<const SourceKind> kinds);

}  // namespace blktape
