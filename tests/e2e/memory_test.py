"""The memory of `blktape analyze` does not grow with the trace, and its rate is printed."""

import os
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases

SHORT, LONG = 100_000, 5_000_000


class MemoryTest(unittest.TestCase):
    def measure(self, ios):
        """Peak resident KiB and CPU seconds of analyzing a trace of so many I/Os."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            trace = os.path.join(folder, "a.tape")
            subprocess.run(["tests/support/make_trace", trace, str(ios), "7000", "kind=desktop"], check=True)
            process = subprocess.Popen([blktape.PROGRAM, "analyze", trace, "--json"], stdout=subprocess.PIPE, text=True)
            told = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            self.assertEqual(status, 0)
            self.assertEqual(blktape.json.loads(told)["ios"], ios)
            return usage.ru_maxrss, usage.ru_utime + usage.ru_stime

    def test_memory_at_100_thousand_and_5_million(self):
        short, _ = self.measure(SHORT)
        long, seconds = self.measure(LONG)
        print("analyze: %d KiB at %d I/Os, %d KiB at %d; %.2f M I/Os a second of CPU time" % (
            short, SHORT, long, LONG, LONG / seconds / 1e6))
        # The footprint of the longer trace reaches its bound of 24 MiB; the half it grew from is there for a moment.
        self.assertLess(long - short, 40 << 10)
        self.assertLess(long, 96 << 10)


if __name__ == "__main__":
    cases.main()
