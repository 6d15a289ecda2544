"""The memory of `blktape analyze` and `blktape replay` does not grow with the trace.

That of recording: tests/live/memory_test. That of writing and reading: tests/format/streaming_memory_test.
"""

import json
import os
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases

SHORT, LONG = 100_000, 5_000_000


class MemoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def measure(self, ios, verb, *options):
        """What it says and its peak resident KiB for a trace of so many I/Os."""
        trace = os.path.join(self.folder, "a.tape")
        subprocess.run(["tests/support/make_trace", trace, str(ios), "7000", "kind=desktop"], check=True)
        with subprocess.Popen([blktape.PROGRAM, verb, trace, "--json", *options], stdout=subprocess.PIPE,
                              text=True) as process:
            said = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        os.unlink(trace)
        self.assertEqual(process.returncode, 0)
        print("%s: %d KiB at %d I/Os" % (verb, usage.ru_maxrss, ios), flush=True)
        return json.loads(said), usage.ru_maxrss

    def test_analyze(self):
        short, short_kib = self.measure(SHORT, "analyze")
        long, long_kib = self.measure(LONG, "analyze")
        self.assertEqual((short["ios"], long["ios"]), (SHORT, LONG))
        # The footprint of the longer trace reaches its bound of 24 MiB; the half it grew from is there for a moment. Each thread has
        # frames under way, of which the shorter trace has few.
        threads = min(4, len(os.sched_getaffinity(0)))
        self.assertLess(long_kib - short_kib, (40 + 20 * threads) << 10)
        self.assertLess(long_kib, (80 + 30 * threads) << 10)

    def test_replay_with_its_result(self):
        kib = []
        # The profile of the result reaches what it holds at once within the first.
        for ios in 10 * SHORT, LONG:
            result = os.path.join(self.folder, "result.tape")
            said, peak_kib = self.measure(ios, "replay", "--engine", "null", "--queue-depth", "32", "-o", result)
            self.assertEqual((said["issued"], said["completed"]), (ios, ios))
            os.unlink(result)
            kib.append(peak_kib)
        # The seek table of the result grows. Three bytes an I/O that stay would be 11,718 KiB.
        self.assertLess(kib[1] - kib[0], 11 << 10)
        self.assertLess(kib[1], 64 << 10)


if __name__ == "__main__":
    cases.main()
