"""The kernel's workers, which do the I/O of loop devices beside the work that waits for it."""

import contextlib
import os
import threading

WRITEBACK_NICE = "/sys/devices/virtual/workqueue/writeback/nice"
PRIORITY = 40  # above a replay's, below that of a FUSE file's program
LOOK_S = 0.1   # they come and go


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


def _set_writeback_nice(value):
    with open(WRITEBACK_NICE, "r+", encoding="ascii") as file:
        before = file.read().strip()
        file.write(value)
    return before


@contextlib.contextmanager
def disks_first():
    """While this lasts, what a loop device has to do goes before all that programs compute: a drive does not wait for
    the machine's processor. Writeback, which the same workers would do, is left to others: it belongs to the work."""
    ended = threading.Event()
    keeper = threading.Thread(target=_keep_first, args=(ended,))
    with contextlib.ExitStack() as undo:
        undo.callback(_set_writeback_nice, _set_writeback_nice("1"))
        keeper.start()
        undo.callback(_give, os.SCHED_OTHER, 0)
        undo.callback(keeper.join)
        undo.callback(ended.set)
        yield
