"""A program's flush that is asked for while a file system's commit is under way shares the commit's second flush, in a
replay as in the recording: the disk sees two flushes, not three."""

import os
import unittest

from tests.harness import blktape, cases, devices, known_disk

# Read, write, flush in us, ns a byte, units: a commit flushes, writes and flushes again from 0 to 650 ms.
SPEED = (1_000, 50_000, 300_000, 0, 4)
COMMIT = (0, "FWFS", 0, 4096)
FLUSH = (100_000, "F", 0, 0)


def flushes(device):
    with open("/sys/block/%s/stat" % os.path.basename(device), encoding="ascii") as file:
        return int(file.read().split()[15])


class FlushSharingTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)
        self.disk = known_disk.KnownDisk(self.scratch.path("known"), 64, SPEED, self.addCleanup).device

    def flushes_of(self, name, ios, engine):
        rows, trace = self.scratch.path(name + ".csv"), self.scratch.path(name + ".tape")
        with open(rows, "w", encoding="ascii") as file:
            for queue_us, op, offset, size in ios:
                file.write("%d,%d,%s,%d,%d\n" % (queue_us, queue_us + 1000, op, offset, size))
        blktape.ok("import", rows, "--columns", "queue:us,complete:us,op,offset,size", "-o", trace)
        before = flushes(self.disk)
        blktape.ok("replay", trace, "--target", self.disk, "--overwrite", "--yes", "--engine", engine, accept=(0, 3))
        return flushes(self.disk) - before

    def check(self, engine):
        alone = self.flushes_of("alone-" + engine, [COMMIT], engine)
        self.assertGreaterEqual(alone, 2)
        self.assertEqual(self.flushes_of("both-" + engine, [COMMIT, FLUSH], engine), alone)

    def test_by_io_uring(self):
        self.check("io_uring")

    def test_by_libaio(self):
        self.check("libaio")


if __name__ == "__main__":
    cases.main()
