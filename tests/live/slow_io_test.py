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
            writer = threading.Thread(target=write, args=(disk, 32 << 20))
            writer.start()
            read_for(disk, 1)
            writer.join()
        rows = blktape.dump(recorder.trace, accept=bpf_losses.STATUSES)
        arrivals = [int(row["queue_ns"]) for row in rows]
        self.assertEqual(arrivals, sorted(arrivals))
        place, slow = next((place, row) for place, row in enumerate(rows)
                           if row["op"] == "write" and int(row["lba"]) == (32 << 20) // 512)
        self.assertGreaterEqual(int(slow["complete_ns"]) - int(slow["queue_ns"]), WRITE_NS)
        meanwhile = [row for row in rows[place + 1:] if int(row["complete_ns"]) < int(slow["complete_ns"])]
        self.assertGreater(len(meanwhile), 10)


if __name__ == "__main__":
    cases.main()
