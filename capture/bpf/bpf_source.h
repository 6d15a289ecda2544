#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"

namespace blktape {

struct BpfSourceOptions {
  // Rounded up to a power of two of at least a page. 0: half of PlanBuffersHere() for the maximum
  // number of CPUs, because a finished request is one record here and three events in other
  // sources.
  uint64_t ring_bytes_per_cpu = 0;
  bool process_names = true;
};

// Records finished requests of `devices` with BPF programs on the kernel's block tracepoints
// (kernels with BTF, from 5.16; works under lockdown=integrity). Only Start() needs CAP_BPF and
// CAP_PERFMON, or root. Delivers OnFinished in order of completion per CPU; each CPU is a stream.
// Start() fails with kUnavailable if the kernel lacks BTF or refuses the programs, and with
// kPermissionDenied without the rights.
std::unique_ptr<LiveSource> MakeBpfSource(std::vector<Disk> devices,
                                          const BpfSourceOptions& options = {});

}  // namespace blktape
