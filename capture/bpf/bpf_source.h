#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"

namespace blktape {

struct BpfSourceOptions {
  // Rounded up to a power of two of at least a page. 0: half of what PlanBuffersHere() has for as
  // many rings as there may be CPUs, since a finished request is one record where other sources
  // have three events.
  uint64_t ring_bytes_per_cpu = 0;
  bool process_names = true;
};

// Records finished requests of `devices` by BPF programs on the kernel's block tracepoints (kernels
// with BTF, from 5.16 on; works under lockdown=integrity). Needs CAP_BPF and CAP_PERFMON, or root,
// for Start() alone. Delivers OnFinished in order of completion per CPU; a stream is a CPU. Start()
// fails with kUnavailable where the kernel lacks BTF or refuses the programs, kPermissionDenied
// without the rights.
std::unique_ptr<LiveSource> MakeBpfSource(std::vector<Disk> devices,
                                          const BpfSourceOptions& options = {});

}  // namespace blktape
