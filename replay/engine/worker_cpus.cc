#include "replay/engine/worker_cpus.h"

#include <liburing.h>
#include <unistd.h>

namespace blktape {

cpu_set_t WorkerCpus() {
  cpu_set_t all;
  cpu_set_t own;
  CPU_ZERO(&all);
  CPU_ZERO(&own);
  if (sched_getaffinity(getpid(), sizeof all, &all) != 0 ||
      sched_getaffinity(0, sizeof own, &own) != 0 || CPU_COUNT(&own) != 1) {
    return all;
  }
  cpu_set_t others = all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &own)) CPU_CLR(cpu, &others);
  }
  return CPU_COUNT(&others) > 0 ? others : all;
}

// The registration of the descriptor, which also saves looking it up at each io_uring_enter, makes
// the thread known to the ring (io_ringfd_register in io_uring/tctx.c); without that the kernel has
// no workers of the thread to place.
void PlaceKernelWorkers(io_uring* ring) {
  (void)io_uring_register_ring_fd(ring);
  const cpu_set_t cpus = WorkerCpus();
  if (CPU_COUNT(&cpus) > 0) (void)io_uring_register_iowq_aff(ring, sizeof cpus, &cpus);
}

}  // namespace blktape
