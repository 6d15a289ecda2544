#pragma once

#include <sched.h>

struct io_uring;

namespace blktape {

// Where threads may run that work for the calling one: on the process's CPUs, as the main thread's
// mask has them, but not on the one to which the caller is pinned. There they would wait until it
// sleeps: it polls in real time. All of the process's if there is no other; empty if the kernel
// does not tell, as with more CPUs than a cpu_set_t has.
cpu_set_t WorkerCpus();

// Lets the kernel's workers for the calling thread (io-wq), which inherit its mask, run on
// WorkerCpus(). They are the thread's, whatever ring it uses: called once by the thread that will
// submit to `ring`, which must be enabled. Registers the ring's descriptor, too. Before Linux 5.18
// has no effect.
void PlaceKernelWorkers(io_uring* ring);

}  // namespace blktape
