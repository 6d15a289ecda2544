"""Memory to write and to read a trace does not grow with its length: 100 thousand and 5 million I/Os."""

import os
import tempfile
import unittest

from tests.harness import cases

BLKTAPE = "cli/blktape"
MAKE_TRACE = "tests/support/make_trace"
SMALL, LARGE = 100_000, 5_000_000
# The seek table of 17,000 short frames, 16 bytes each, their index of at most 4,096 entries, and the allocator's moods.
SLACK_KIB = 3072


def peak_kib(*command):
    """Runs a command and returns its largest resident set."""
    pid = os.posix_spawnp(command[0], command, os.environ,
                          file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, command
    return usage.ru_maxrss


class StreamingMemoryTest(unittest.TestCase):
    def check(self, small_kib, large_kib):
        print("peak resident: %d KiB at %d I/Os, %d KiB at %d" % (small_kib, SMALL, large_kib, LARGE))
        self.assertLess(large_kib, small_kib + SLACK_KIB)
        self.assertLess(large_kib, 40 * 1024)

    def test_writing_and_reading(self):
        with tempfile.TemporaryDirectory() as folder:
            for frame in "0", "300":
                small = os.path.join(folder, "small%s.tape" % frame)
                large = os.path.join(folder, "large%s.tape" % frame)
                load = ("600", "kind=desktop", "frame=" + frame)
                self.check(peak_kib(MAKE_TRACE, small, str(SMALL), *load), peak_kib(MAKE_TRACE, large, str(LARGE), *load))
                self.check(peak_kib(BLKTAPE, "info", small), peak_kib(BLKTAPE, "info", large))
                os.remove(large)


if __name__ == "__main__":
    cases.main()
