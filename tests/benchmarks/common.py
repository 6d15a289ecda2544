"""What the benchmarks share: devices of their own, interleaved rounds, medians."""

import contextlib
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile

# Programs are named as Bazel lays them out, also when the script is started by hand.
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MAKE_TRACE = "tests/support/make_trace"
# Who is told to end still takes back what it set up.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


class Bench(contextlib.ExitStack):
    """A folder in memory and devices over it; gone at the end, however it ends. Stands in for a test."""

    def __init__(self):
        super().__init__()
        parent = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.folder = self.enter_context(tempfile.TemporaryDirectory(prefix="blktape-bench.", dir=parent))

    def path(self, name):
        return os.path.join(self.folder, name)

    def loop(self, size_bytes):
        """A loop device over a file that is there in full: holes would be read for nothing."""
        path = self.path("image%d" % len(os.listdir(self.folder)))
        with open(path, "wb") as file:
            for _ in range(size_bytes >> 20):
                file.write(os.urandom(1 << 20))
        device = subprocess.check_output(["losetup", "-f", "--show", path], text=True).strip()
        self.callback(subprocess.run, ["losetup", "-d", device], check=True)
        # A loop device keeps the queue that somebody gave it before.
        queue = "/sys/block/%s/queue/" % os.path.basename(device)
        for name, value in (("scheduler", "none"), ("nomerges", "0"), ("rq_affinity", "1")):
            with open(queue + name, encoding="ascii") as file:
                before = file.read().strip().split("[")[-1].split("]")[0]
            self.callback(self._write, queue + name, before)
            self._write(queue + name, value)
        return device

    def zram(self, size_bytes):
        """A zram device full of data, or None where the kernel has none."""
        try:
            with open("/sys/class/zram-control/hot_add", encoding="ascii") as file:
                number = file.read().strip()
        except OSError:
            return None
        self.callback(self._write, "/sys/class/zram-control/hot_remove", number)
        self._write("/sys/block/zram%s/disksize" % number, str(size_bytes))
        device = "/dev/zram" + number
        with open(device, "wb") as file:
            for _ in range(size_bytes >> 20):
                file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
        return device

    @staticmethod
    def _write(path, text):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def make_trace(self, name, count, rate, span_mib, kind, burst=1):
        path = self.path(name)
        subprocess.run([MAKE_TRACE, path, str(count), str(rate), "span_mib=%d" % span_mib, "kind=" + kind,
                        "burst=%d" % burst], check=True)
        return path


@contextlib.contextmanager
def no_halts():
    """Keeps idle CPUs from halting, where the kernel has a driver of idle states. Under a hypervisor waking one costs
    tens of microseconds, so that programs differ by how many CPUs they leave idle; a replay keeps them awake
    itself."""
    with open("/dev/cpu_dma_latency", "wb", buffering=0) as limit:
        limit.write(struct.pack("i", 0))
        yield


def need_root():
    if os.geteuid() != 0:
        sys.exit("error: loop devices and tracefs need root")


def have(program):
    return any(os.access(os.path.join(folder, program), os.X_OK)
               for folder in os.environ["PATH"].split(":") + ["/usr/sbin", "/sbin"])


def interleaved(rounds, contestants):
    """Runs every contestant once a round, in another order each time, so that what the machine does
    besides falls on all alike. Returns a list of results for each name."""
    results = {name: [] for name in contestants}
    names = list(contestants)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            results[name].append(contestants[name]())
    return results


def paired_ratio(ours, theirs):
    """The median of the rounds' ratios: both of a pair ran next to one another."""
    return statistics.median(a / b for a, b in zip(ours, theirs) if b > 0)


def percentile(values, share):
    """By nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]
