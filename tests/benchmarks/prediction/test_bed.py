"""What the machine must not do otherwise to work done live than to its replay."""

import contextlib
import functools
import mmap
import os
import subprocess
import sys
import threading

WRITEBACK_NICE = "/sys/devices/virtual/workqueue/writeback/nice"
WORKERS_CPUS = "/sys/devices/virtual/workqueue/cpumask"
PRIORITY = 40  # above a replay's, below that of a FUSE file's program
LOOK_S = 0.1   # they come and go
# A guest's free memory goes back to its host in blocks of this order or larger; Linux has none above 10.
REPORTED_ORDER = "/sys/module/page_reporting/parameters/page_reporting_order"
NO_ORDER = "11"
LEFT_FREE = 2 << 30
TOUCH = "import mmap, sys; mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)"


def _ordinary_workers():
    """Those that any CPU may run and that have the ordinary priority: a loop device's are among them."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/comm" % name, encoding="utf-8", errors="replace") as file:
                worker = file.read().startswith("kworker/u")
            if worker and os.getpriority(os.PRIO_PROCESS, int(name)) == 0:
                yield int(name)


def _give(policy, priority):
    for worker in _ordinary_workers():
        with contextlib.suppress(ProcessLookupError):
            if os.sched_getscheduler(worker) != policy:
                os.sched_setscheduler(worker, policy, os.sched_param(priority))


def _keep_first(ended):
    while not ended.wait(LOOK_S):
        _give(os.SCHED_FIFO, PRIORITY)


def _set(path, value):
    with open(path, "r+", encoding="ascii") as file:
        before = file.read().strip()
        file.write(value)
    return before


def _available_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["MemAvailable"].split()[0]) << 10


@contextlib.contextmanager
def kept_memory():
    """While this lasts, memory of a guest is its own. What is free goes back to the host otherwise, and the first to
    touch it again waits for that: live that is a disk that lends its processor to copy into the page cache, in a replay
    nobody."""
    with contextlib.ExitStack() as undo:
        if os.path.exists(REPORTED_ORDER):
            try:
                undo.callback(_set, REPORTED_ORDER, _set(REPORTED_ORDER, NO_ORDER))
            except OSError as error:
                print("note: free memory goes back to the host:", error, file=sys.stderr)
        # All that is free, once.
        subprocess.run([sys.executable, "-c", TOUCH, str(max(mmap.PAGESIZE, _available_bytes() - LEFT_FREE))], check=True)
        yield


@functools.cache
def _disks_cpu():
    """That which served the most interrupts of devices, of equals the first: a replay's issuing thread takes the other end
    of that order (replay/issue/realtime.h). What the replay polls on would be no processor for a disk."""
    cpus = sorted(cpu for cpu in os.sched_getaffinity(0) if cpu < 32)  # a mask's first word
    with open("/proc/interrupts", encoding="ascii") as file:
        columns = [int(name[3:]) for name in next(file).split()]
        rows = [line.split()[1:1 + len(columns)] for line in file if line.split(":")[0].strip().isdigit()]
    served = {cpu: sum(int(row[columns.index(cpu)]) for row in rows) for cpu in cpus}
    return max(cpus, key=served.get)


def beside_disks(words):
    """The command, on the CPUs that disks_first() leaves it."""
    cpus = os.sched_getaffinity(0) - {_disks_cpu()} or {_disks_cpu()}
    return ["taskset", "--cpu-list", ",".join(map(str, cpus)), *words]


def on_disks_cpu(words):
    """The command, as part of a disk: on the one CPU that it has beside work as well as beside a replay, which leaves no
    other one idle while it polls."""
    return ["taskset", "--cpu-list", str(_disks_cpu()), *words]


@contextlib.contextmanager
def disks_first():
    """While this lasts, what a loop device has to do goes before all that programs compute, and has a CPU of its own
    beside that of programs begun by beside_disks(): a drive does not wait for the machine's processor. Writeback, which
    the same workers would do, is left to others: it belongs to the work."""
    ended = threading.Event()
    keeper = threading.Thread(target=_keep_first, args=(ended,))
    with contextlib.ExitStack() as undo:
        undo.callback(_set, WORKERS_CPUS, _set(WORKERS_CPUS, "%x" % (1 << _disks_cpu())))
        undo.callback(_set, WRITEBACK_NICE, _set(WRITEBACK_NICE, "1"))
        keeper.start()
        undo.callback(_give, os.SCHED_OTHER, 0)
        undo.callback(keeper.join)
        undo.callback(ended.set)
        yield
