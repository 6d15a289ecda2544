"""An I/O that takes longer than the recorder waits for it stands where it arrived once the recording is finished: a
replay lets those that came after it go on meanwhile."""

import mmap
import os
import threading
import time
import unittest

from tests.harness import blktape, bpf_losses, cases, devices, known_disk
from tests.live import recording

WRITE_NS = 500_000_000
WRITTEN = range(32 << 20, 35 << 20, 1 << 20)


def write(device, offset):
    buffer = mmap.mmap(-1, 4096)
    fd = os.open(device, os.O_WRONLY | os.O_DIRECT)
    os.pwritev(fd, [buffer], offset)
    os.close(fd)


def read_for(device, seconds):
    buffer = mmap.mmap(-1, 4096)
    fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.preadv(fd, [buffer], 0)
        time.sleep(0.005)
    os.close(fd)


class SlowIoTest(recording.BySource, unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)

    def check(self, source):
        speed = (500, WRITE_NS // 1000, 1000, 0, 4)
        disk = known_disk.KnownDisk(self.scratch.path("known"), 64, speed, self.addCleanup).device
        with recording.Recording(self, disk, source=source, statuses=bpf_losses.STATUSES) as recorder:
            read_for(disk, 0.2)
            writer = threading.Thread(target=lambda: [write(disk, offset) for offset in WRITTEN])
            writer.start()
            read_for(disk, 2)
            writer.join()
        losses = bpf_losses.Losses(self, recorder.trace)
        losses.check_no_others()
        rows = blktape.dump(recorder.trace, accept=bpf_losses.STATUSES)
        losses.check_completed(rows)
        arrivals = [int(row["queue_ns"]) for row in rows]
        self.assertEqual(arrivals, sorted(arrivals))
        completed = [row for row in rows if row["complete_ns"]]
        writes = [(place, row) for place, row in enumerate(completed)
                  if row["op"] == "write" and int(row["lba"]) * 512 in WRITTEN]
        self.assertGreaterEqual(len(writes), len(WRITTEN) - losses.unissued - losses.uncompleted)
        # With all of them lost there is nothing to see.
        self.assertGreater(len(writes), 0)
        for place, slow in writes:
            end = int(slow["complete_ns"])
            self.assertGreaterEqual(end - int(slow["queue_ns"]), WRITE_NS)
            self.assertGreater(sum(int(row["complete_ns"]) < end for row in completed[place + 1:]), 10)


if __name__ == "__main__":
    cases.main()
