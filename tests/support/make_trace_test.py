"""make_trace keeps what it says of its loads: the same words, the same I/Os; within the span; at the rate."""

import os
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases

MAKE_TRACE = "tests/support/make_trace"
COUNT, RATE, SPAN_MIB = 20_000, 2000, 64


class MakeTraceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, name, *words):
        path = os.path.join(self.folder, name)
        subprocess.run([MAKE_TRACE, path, str(COUNT), str(RATE), *words], check=True)
        return path

    def check(self, *words):
        words = [*words, "span_mib=%d" % SPAN_MIB]
        rows = blktape.dump(self.make("a.tape", *words))
        self.assertEqual(rows, blktape.dump(self.make("b.tape", *words)))
        self.assertEqual(len(rows), COUNT)
        at_ns = [int(row["queue_ns"]) for row in rows]
        self.assertEqual(at_ns, sorted(at_ns))
        # Of gaps with a deviation of 3.3 times their mean (a desktop's) the mean of 20,000 has one of 2.3 %; of the
        # 625 gaps between bursts, of once their mean, 4 %.
        self.assertAlmostEqual((COUNT - 1) / (at_ns[-1] - at_ns[0]) * 1e9 / RATE, 1, delta=0.2)
        self.assertLessEqual(max(int(row["lba"]) * 512 + int(row["bytes"]) for row in rows), SPAN_MIB << 20)
        return rows

    def test_mixed(self):
        rows = self.check()
        self.assertEqual({row["op"] for row in rows}, {"read", "write"})

    def test_random_reads_in_bursts(self):
        rows = self.check("kind=random-read", "burst=32")
        self.assertEqual({(row["op"], row["bytes"]) for row in rows}, {("read", "4096")})
        at_ns = [int(row["queue_ns"]) for row in rows]
        self.assertLessEqual({later - earlier for number, (earlier, later) in enumerate(zip(at_ns, at_ns[1:]), 1)
                              if number % 32 != 0}, {4999, 5000, 5001})

    def test_a_desktop(self):
        rows = self.check("kind=desktop", "frame=300")
        self.assertEqual({row["process"] for row in rows}, {"program%d" % number for number in range(20)})

    def test_words_it_does_not_know_make_nothing(self):
        path = os.path.join(self.folder, "none.tape")
        for words in (["100"], ["100", "fast"], ["100", "0"], ["100", "9", "kind=laptop"], ["100", "9", "burst=0"],
                      ["100", "9", "kind=desktop", "burst=2"], ["100", "9", "colour=red"], ["100", "9", "frame=2x"]):
            with self.subTest(words):
                done = subprocess.run([MAKE_TRACE, path, *words], stderr=subprocess.DEVNULL, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    cases.main()
