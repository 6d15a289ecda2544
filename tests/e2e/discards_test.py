"""What runs of a score discard: none of their reads finds a block empty where the recording read data."""

import csv
import io
import os
import tempfile
import unittest

from tests.harness import blktape, cases

BLOCK = 4096
COLUMNS = ["queue_ns", "issue_ns", "complete_ns", "device", "op", "flags", "lba", "bytes"]
RUNS = ("closed", "max")


def blocks_of(row):
    first = int(row["lba"]) * 512 // BLOCK
    return range(first, first + int(row["bytes"]) // BLOCK)


class DiscardsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.rows = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def add(self, op, block, count=1):
        at = 1_000_000 * len(self.rows)
        self.rows.append([at, at, at + 100_000, "sda", op, "", block * 8, count * BLOCK])

    def trace(self):
        with open(self.path("day.csv"), "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(self.rows)
        blktape.ok("import", self.path("day.csv"), "-o", self.path("day.tape"))
        return self.path("day.tape")

    def runs(self, *options):
        """The I/Os of each run of two cycles, in their order."""
        blktape.ok("score", self.trace(), "--target", "sim:nvme-2026", "--cycles", 2, "--no-db",
                   "-o", self.path("score"), *options)
        for cycle in (1, 2):
            for run in RUNS:
                tape = self.path("score/cycle-%d-%s.tape" % (cycle, run))
                yield list(csv.DictReader(io.StringIO(blktape.ok("dump", "--csv", tape).stdout)))

    def empty_reads(self, runs):
        empty = set()
        found = []
        for run in runs:
            for row in run:
                if row["op"] == "discard":
                    empty.update(blocks_of(row))
                elif row["op"] == "write":
                    empty.difference_update(blocks_of(row))
                elif row["op"] == "read":
                    found += empty.intersection(blocks_of(row))
        return found

    def test_the_next_run_reads_data_where_the_first_one_did(self):
        for block in range(1500):
            self.add("read", block)
        self.add("discard", 0, 1500)
        self.add("discard", 700, 10)  # all of it was read first
        for block in range(600):
            self.add("write", block)
            self.add("read", block)
        for block in range(1500, 1600):
            self.add("write", block)
        self.add("discard", 1500, 100)
        runs = list(self.runs())
        self.assertEqual(self.empty_reads(runs), [])
        for run in runs:
            # Of the first what is written again, of the second nothing, of the third all: nobody reads it.
            self.assertEqual([(int(row["lba"]) // 8, int(row["bytes"]) // BLOCK) for row in run if row["op"] == "discard"],
                             [(0, 600), (1500, 100)])

    def test_a_sample_reads_data_that_a_window_left_out_had_written(self):
        # Windows are of a hundred reads: one ends with a discard, the next one writes, and one only reads.
        for _ in range(40):
            for block in range(300):
                if block == 99:
                    self.add("discard", 0, 100)
                if block == 100:
                    for written in range(100):
                        self.add("write", written)
                self.add("read", block % 100 if block != 99 else 200)
        runs = list(self.runs("--budget", "6s"))
        reads = sum(row["op"] == "read" for run in runs for row in run)
        self.assertGreater(reads, 0)
        self.assertLess(reads, 4 * 40 * 300)
        self.assertEqual(self.empty_reads(runs), [])


if __name__ == "__main__":
    cases.main()
