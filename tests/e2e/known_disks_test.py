"""A bench of real block devices whose speed is known: ranked rightly, by the ratios of the closed form."""

import itertools
import json
import os
import unittest

from tests.harness import blktape, cases, devices, known_disk

GROUPS = 67
BYTES = 4096
# One that the host disturbs must not make a tie of two disks: of three it would, as it should.
CYCLES = 4
# As known_disk has them: read, write, flush in us, ns a byte, units.
SPEEDS = {"slow": (18_000, 14_000, 22_000, 60, 4), "fast": (6_000, 5_000, 8_000, 20, 8),
          "middle": (8_000, 7_000, 12_000, 30, 4)}
# What a loop device and FUSE add to each I/O is the same for all three: 0.1 to 0.4 ms where nothing else runs, and
# 0.7 ms have been seen on a busy machine, a ninth of what the fast one takes.
ADDED = 0.2


def cost_us(speed):
    """Of all the work, one I/O after the other: what the disk takes, both as wait and as work at maximum speed."""
    read, write, flush, ns_per_byte, _ = speed
    return GROUPS * (read + write + flush + 2 * BYTES * ns_per_byte / 1000)


class KnownDisksTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)

    def disk(self, name):
        return known_disk.KnownDisk(self.scratch.path(name), 64, SPEEDS[name], self.addCleanup).device

    def trace(self):
        """A read, a sync write and a flush, over and over, one after the other with 1 ms of thinking in between."""
        rows = self.scratch.path("rows.csv")
        with open(rows, "w", encoding="ascii") as file:
            for i in range(3 * GROUPS):
                op = ("R", "WS", "F")[i % 3]
                at, size = (0, 0) if op == "F" else (i * 65536, BYTES)
                file.write("%d,%d,%s,%d,%d\n" % (3000 * i, 3000 * i + 2000, op, at, size))
        trace = self.scratch.path("work.tape")
        blktape.ok("import", rows, "--columns", "queue:us,complete:us,op,offset,size", "-o", trace)
        return trace

    def test_three_are_ranked_by_their_speed(self):
        disks = {self.disk(name): name for name in SPEEDS}
        folder = self.scratch.path("bench")
        words = [word for disk in disks for word in ("--target", disk)]
        words += ["--cycles", CYCLES, "--pause", 0, "--overwrite", "--yes", "--no-db", "-o", folder]
        ran = blktape.ok("bench", self.trace(), *words)
        with open(os.path.join(folder, "bench.json"), encoding="utf-8") as file:
            told = json.load(file)
        drives = told["drives"]
        speed = [SPEEDS[disks[drive["targets"][0]["path"]]] for drive in drives]
        self.assertTrue(all(drive["valid"] for drive in drives), ran.stdout)
        places = [1 + sum(cost_us(other) < cost_us(own) for other in speed) for own in speed]
        self.assertEqual([drive["place"] for drive in drives], places)
        for drive, own in zip(drives, speed):
            # What the host takes is taken out, to some us.
            self.assertGreater(drive["storage_wait_ns"] / 1e3, 0.97 * cost_us(own))
            self.assertLess(drive["storage_wait_ns"] / 1e3, (1 + ADDED) * cost_us(own))
        self.assertEqual(len(told["pairs"]), len(list(itertools.combinations(drives, 2))))
        for pair in told["pairs"]:
            true = cost_us(speed[pair["second"]]) / cost_us(speed[pair["first"]])
            self.assertGreater(true, 1)
            self.assertEqual(pair["verdict"], "faster")
            self.assertAlmostEqual(pair["ratio"] / true, 1, delta=ADDED)


if __name__ == "__main__":
    cases.main()
