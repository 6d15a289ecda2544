"""The memory of `blktape record` does not grow with the recording: 100 thousand and 5 million I/Os."""

import contextlib
import os
import re
import subprocess
import time
import unittest

from tests.harness import blktape, cases, devices
from tests.live import recording

SHORT, MIDDLE, LONG = 100_000, 1_500_000, 5_000_000
# Both recorders must keep up beside the load on two CPUs.
IOPS = 100_000
MIB = 1 << 20


class MemoryTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.device = devices.Scratch(self).loop(64 * MIB)
        self.sources = ["tracefs"]
        if os.path.exists("/sys/kernel/btf/vmlinux"):
            self.sources.append("bpf")

    def reads(self):
        with open("/sys/block/%s/stat" % os.path.basename(self.device), encoding="ascii") as file:
            return int(file.read().split()[0])

    def measure(self, ios):
        """Peak resident bytes by source: where MIDDLE I/Os were there, if so many are, after the last, and after the
        recording's end, which writes all that waits at once."""
        recorders = {source: recording.Recording(self, self.device, source=source, statuses=(0, 3),
                                                 options=["--buffer", "2M"]) for source in self.sources}
        middle, last = {}, {}
        with contextlib.ExitStack() as stack:
            for recorder in recorders.values():
                stack.enter_context(recorder)
            begin = self.reads()
            with subprocess.Popen(["fio", "--name=load", "--filename=" + self.device, "--rw=randread", "--bs=4k",
                                   "--direct=1", "--ioengine=libaio", "--iodepth=32", "--size=64M", "--io_size=1T",
                                   "--norandommap", "--number_ios=%d" % ios, "--rate_iops=%d" % IOPS],
                                  stdout=subprocess.DEVNULL) as fio:
                while fio.poll() is None:
                    time.sleep(0.1)
                    if not middle and self.reads() - begin >= MIDDLE:
                        middle = {source: resident(recorder.pid) for source, recorder in recorders.items()}
            self.assertEqual(fio.returncode, 0)
            last = {source: resident(recorder.pid) for source, recorder in recorders.items()}
        peak = {}
        for source, recorder in recorders.items():
            info = blktape.as_json("info", recorder.trace, accept=(0, 3))
            # While rings grow the kernel does not count what it leaves out, and the trace says so.
            if not any(loss["unknowable"] for loss in info["losses"]):
                self.assertGreaterEqual(int(info["records"]) + int(info["lost_events"]), ios, recorder.said)
            peak[source] = recorder.usage.ru_maxrss << 10
            os.unlink(recorder.trace)
            print("%s: %.1f MiB, %d of %d I/Os in the trace" % (source, peak[source] / MIB, info["records"], ios))
        return middle, last, peak

    def test_at_100_thousand_and_5_million(self):
        _, _, short = self.measure(SHORT)
        middle, last, long = self.measure(LONG)
        for source in self.sources:
            with self.subTest(source):
                print("%s: %.1f MiB at %d, %.1f MiB at %d" % (
                    source, middle[source] / MIB, MIDDLE, last[source] / MIB, LONG))
                # The short recording ends before all of its rings, which are mapped, was in use; and what a fifth of
                # the crash window brings waits to be put in order.
                self.assertLess(long[source] - short[source], 40 * MIB)
                # Then nothing is added. A moment in which the recorder got no CPU doubles what waits, 12 MiB in one
                # run; six bytes an I/O that stay would be 20.
                self.assertLess(last[source] - middle[source], 20 * MIB)


def resident(pid):
    """The most that was resident so far."""
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1)) << 10


if __name__ == "__main__":
    cases.main()
