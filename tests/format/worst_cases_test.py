"""Traces made to cost as much as possible: time and memory of every verb that reads one stay in proportion.

But score, bench and prepare, which read one as replay and analyze do.

Each kind of make_worst_case is made in two sizes, one four times the other. Quadratic work would cost sixteen times as much; and
no kind may cost more than so many times what the densest trace costs that a writer makes, for each thing that grows.
"""

import os
import subprocess
import tempfile
import unittest

from tests.harness import cases

BLKTAPE = "cli/blktape"
MAKE = "tests/format/make_worst_case"

# Kind, the smaller size, the larger. Where they are equal the format allows no more.
KINDS = [
    ("dense", 2, 8),
    ("fake-frames", 8, 32),
    ("fake-tables", 8, 32),
    ("raw-blocks", 8, 32),
    ("empty-messages", 4, 16),
    ("losses", 1, 4),
    ("losses-between", 1, 4),
    ("long-details", 8, 32),
    ("queued-sizes", 1, 4),
    ("many-devices", 1, 4),
    ("long-requests", 1, 4),
    ("disorder", 1, 4),
    ("long-header", 1, 4),
    ("long-summary", 1, 4),
    ("unknown-fields", 2, 8),
    ("batches", 1, 4),
]
# For each record or message that a frame may hold; the dense trace takes 0.04 s a frame to analyze.
GROWTH = 8
FLOOR_S = 0.25  # start of the program, what a reader may spend whatever the file, and the clock's grain
MEMORY_KIB = 192 << 10
# Each thread that analyzes has frames of its own under way.
MEMORY_GROWTH_KIB = (64 + 8 * min(4, len(os.sched_getaffinity(0)))) << 10


# These read as the others do: each with the kinds that make it hold the most beside.
ONLY = {
    "merge": ("losses", "queued-sizes"),
    "cut": ("disorder",),
    "diff": ("disorder",),
    "export": ("losses-between",),
    "anonymize": ("queued-sizes", "disorder"),
    "pack": ("disorder",),
}
COPIES = ("recover", "merge", "cut", "anonymize", "pack", "export")
# The highest compression alone takes 100 MiB, and a frame of it holds eight times the records of another.
PACK_MEMORY_KIB = 256 << 10


def verbs(kind, trace, folder):
    copy = os.path.join(folder, "copy.tape")
    every = [("info",), ("info", "--json"), ("analyze",), ("analyze", "--json"), ("dump", "--csv"), ("recover", "-o", copy),
             ("replay", "--dry-run", "--engine", "null"), ("merge", "--clock", "start", trace, "-o", copy),
             ("cut", "--op", "read,write", "-o", copy), ("diff", "--json", trace), ("export", "--to", "perfetto", "-o", copy),
             ("anonymize", "-o", copy), ("pack", "-o", copy)]
    return [verb for verb in every if kind in ONLY.get(verb[0], (kind,))]


def cost_of(verb, trace, folder):
    copy = os.path.join(folder, "copy.tape")
    for path in (copy, copy + ".partial"):
        if os.path.exists(path):
            os.remove(path)
    return cost(BLKTAPE, verb[0], trace, *verb[1:])


def cost(*command):
    """CPU seconds, largest resident set in KiB, exit status (negative: a signal)."""
    actions = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status)


class WorstCasesTest(unittest.TestCase):
    def test_every_verb_takes_time_and_memory_in_proportion_to_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind, small, large in KINDS:
                measured = []
                for name, size in ("small", small), ("large", large):
                    trace = os.path.join(folder, name + ".tape")
                    subprocess.run([MAKE, kind, str(size), trace], check=True)
                    measured.append([(verb, *cost_of(verb, trace, folder)) for verb in verbs(kind, trace, folder)])
                for (verb, small_s, small_kib, _), (_, large_s, large_kib, status) in zip(*measured):
                    with self.subTest(kind=kind, verb=" ".join(verb[:2])):
                        print("%-16s %-18s %.2f and %.2f s, %d and %d MiB" % (
                            kind, " ".join(verb[:2]), small_s, large_s, small_kib >> 10, large_kib >> 10))
                        self.assertIn(status, (0, 1, 3))
                        self.assertLess(large_s, GROWTH * small_s + FLOOR_S)
                        self.assertLess(large_kib, PACK_MEMORY_KIB if verb[0] == "pack" else MEMORY_KIB)
                        growth_kib = MEMORY_GROWTH_KIB * (2 if verb[0] == "diff" else 1)  # it analyzes two
                        # Frames wait for a thread that gets no CPU: what the file costs is what it costs in the best of runs.
                        for _ in range(4):
                            if large_kib < small_kib + growth_kib or verb[0] in COPIES:
                                break
                            large_kib = min(large_kib, cost_of(verb, trace, folder)[1])
                        self.assertLess(large_kib, small_kib + growth_kib)

    def test_no_file_costs_much_more_than_the_densest_that_a_writer_makes(self):
        with tempfile.TemporaryDirectory() as folder:
            costs = {}
            for kind, size in ("dense", 16), ("long-requests", 16), ("many-devices", 16), ("disorder", 16), ("batches", 16):
                trace = os.path.join(folder, kind + ".tape")
                subprocess.run([MAKE, kind, str(size), trace], check=True)
                costs[kind], _, status = cost(BLKTAPE, "analyze", trace)
                self.assertIn(status, (0, 3))
            print(costs)
            for kind, seconds in costs.items():
                self.assertLess(seconds, 30 * costs["dense"], kind)


if __name__ == "__main__":
    cases.main()
