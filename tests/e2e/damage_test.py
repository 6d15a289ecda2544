"""A damaged trace never crashes a verb, and never passes for a whole one."""

import os
import random
import tempfile
import unittest

from tests.harness import blktape, cases

SAMPLE = "tests/data/sample.tape"


class DamageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(SAMPLE, "rb") as file:
            cls.whole = file.read()
        cls.all_records = blktape.ok("dump", SAMPLE, "--csv").stdout

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "damaged.tape")
        self.target = os.path.join(folder.name, "target.img")
        with open(self.target, "wb") as file:
            file.truncate(1 << 30)

    def each_verb(self, data):
        """The exit status of every verb that reads a trace."""
        with open(self.path, "wb") as file:
            file.write(data)
        statuses = {}
        for words in (["info", self.path], ["analyze", self.path], ["analyze", self.path, "--json"], ["dump", self.path],
                      ["replay", self.path, "--target", self.target, "--overwrite", "--yes", "--max", "--engine",
                       "null"]):
            result = blktape.run(*words)
            self.assertIn(result.returncode, (0, 1, 3), "%s: %s" % (words, result.stderr))
            if result.returncode == 1:
                self.assertIn(self.path, result.stderr, words)
            statuses[" ".join(words[:1] + words[2:3])] = result.returncode
        return statuses

    def test_the_whole_trace_is_whole_for_all(self):
        statuses = self.each_verb(self.whole)
        self.assertEqual(set(statuses.values()), {0}, statuses)

    def test_a_trace_cut_anywhere_is_never_whole(self):
        rng = random.Random(5)
        for cut in [1, 3, 4, 17, len(self.whole) - 1] + [rng.randrange(len(self.whole)) for _ in range(6)]:
            with self.subTest(cut=cut):
                statuses = self.each_verb(self.whole[:cut])
                self.assertNotEqual(statuses["info"], 0)
                if 0 in statuses.values():
                    # Only the seek table at the end was hurt: every record is there, and info says what is not.
                    self.assertEqual(blktape.run("dump", self.path, "--csv").stdout, self.all_records)
                    self.assertIn("no I/O missing, but THE FILE IS DAMAGED", blktape.run("info", self.path).stdout)
                    mended = self.path + "-mended"
                    blktape.ok("recover", self.path, "-o", mended)
                    self.assertIn("whole, nothing lost", blktape.ok("info", mended).stdout)
                    os.remove(mended)

    def test_a_flipped_byte_is_never_silent(self):
        rng = random.Random(6)
        # Not in the last 9 bytes and the index before them, which no record depends on.
        for at in [0, 5] + [rng.randrange(len(self.whole) * 9 // 10) for _ in range(8)]:
            with self.subTest(at=at):
                flipped = bytearray(self.whole)
                flipped[at] ^= 1 << rng.randrange(8)
                statuses = self.each_verb(bytes(flipped))
                self.assertNotIn(0, statuses.values(), statuses)

    def test_a_hole_of_zeros_is_reported(self):
        middle = len(self.whole) // 2
        statuses = self.each_verb(self.whole[:middle] + bytes(1024) + self.whole[middle + 1024:])
        self.assertNotIn(0, statuses.values(), statuses)

    def test_trailing_garbage_costs_no_record(self):
        self.each_verb(self.whole + b"garbage" * 100)
        self.assertEqual(blktape.run("dump", self.path, "--csv").stdout, self.all_records)


if __name__ == "__main__":
    cases.main()
