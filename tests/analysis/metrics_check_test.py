"""`blktape analyze` against a second implementation of docs/metrics.md, and against statistics made by another program."""

import os
import tempfile
import unittest

from tests.analysis import metrics_check
from tests.harness import blktape, cases

BOUND = 1 / 256  # of a percentile that is not exact

# Recorded for this project. The second implementation says what must come out.
OWN = {
    "nvme": ["tests/capture/data/nvme0n1.blktrace.0.zst", "tests/capture/data/nvme0n1.blktrace.1.zst"],
    "loop": ["tests/capture/data/loop2.blktrace.0.zst", "tests/capture/data/loop2.blktrace.1.zst"],
}

# Traces beside the repository, and what an independent script counted in them.
SHARED = {
    "takeoverjp": (["blktrace-takeoverjp/sample.blktrace.0"], {
        "reads": 963, "writes": 0, "read_bytes": 3944448, "write_bytes": 0, "data_requests": 963,
        "share_4k": 1.0, "size_histogram": [{"bytes": 4096, "count": 963, "reads": 963, "writes": 0}],
        "sequential": {"any_device": 1, "same_device": 1, "same_device_and_op": 1},
        "max_end_bytes": 1269808672768, "queue_depth": {"max": 1},
        "d2c_ns": {"count": 963, "mean": 55948.807, "min": 52471, "p50": 54257, "p99": 92572, "max": 102460,
                   "exact": True},
        "lost_events": 0, "finished_cleanly": True,
    }),
    "desktop": (["own/desktop-session/loop0.blktrace.0.zst", "own/desktop-session/loop0.blktrace.1.zst"], {
        "ios": 421548, "reads": 304114, "writes": 74556, "discards": 17337, "flushes": 25541,
        "flushes_asked": 17121, "read_bytes": 10312628224, "write_bytes": 18291933696, "discard_bytes": 83566473216,
        "data_requests": 378670, "share_4k": 170954 / 378670, "max_end_bytes": 42949672960,
        "queue_depth": {"max": 98},
        "d2c_ns": {"count": 378670, "mean": 639685.534, "min": 11000, "p50": 69000, "p99": 15548000,
                   "max": 184941000},
        "by_op": {"read": {"d2c_ns": {"count": 304114, "mean": 114282.529, "p50": 63000, "p99": 741000,
                                      "max": 40454000}},
                  "write": {"d2c_ns": {"count": 74556, "mean": 2782804.925, "p50": 297000, "p99": 34302000,
                                       "max": 184941000}}},
        "queued": {"data_bios": 674008, "reads": 310466, "writes": 363542, "share_4k": 437731 / 674008},
    }),
}


class MetricsCheckTest(unittest.TestCase):
    maxDiff = None

    def compare(self, expected, told, path, exact=True):
        if isinstance(expected, dict):
            exact = told.get("exact", exact)
            for key, value in expected.items():
                self.assertIn(key, told, path)
                self.compare(value, told[key], "%s.%s" % (path, key), exact)
        elif path.split(".")[-1] in ("p50", "p95", "p99", "p999", "p9999") and not exact:
            self.assertLessEqual(abs(told - expected), expected * BOUND, "%s: %r, not %r" % (path, told, expected))
        elif isinstance(expected, float):
            self.assertLessEqual(abs(told - expected), 1e-8 * abs(expected), "%s: %r, not %r" % (path, told, expected))
        else:
            self.assertEqual(told, expected, path)

    def test_sequential_share_of_a_recording_with_equal_stamps(self):
        """Its stamps are whole microseconds. The other program orders equal ones by CPU, ours by arrival."""
        files = SHARED["desktop"][0]
        told = blktape.as_json("analyze", self.imported(self.shared(files)), accept=(0, 3))["sequential"]
        for key, counted in (("any_device", 214623), ("same_device", 214623), ("same_device_and_op", 218261)):
            self.assertLessEqual(abs(told[key] - counted), 20, key)

    @staticmethod
    def shared(files):
        return cases.shared(*("traces/" + file for file in files))

    def imported(self, files):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        trace = os.path.join(folder.name, "a.tape")
        blktape.ok("import", *files, "-o", trace)
        return trace

    def test_own_recordings_by_every_definition(self):
        for name, files in OWN.items():
            with self.subTest(name):
                trace = self.imported(files)
                told = blktape.as_json("analyze", trace, accept=(0, 3))
                told["idle_gap_counts"] = [idle["count"] for idle in told["idle_gaps"]]
                self.compare(metrics_check.figures(blktape.dump(trace)), told, name)

    def test_other_recordings_by_the_count_of_another_program(self):
        for name, (files, expected) in SHARED.items():
            with self.subTest(name):
                trace = self.imported(self.shared(files))
                self.compare(expected, blktape.as_json("analyze", trace, accept=(0, 3)), name)


if __name__ == "__main__":
    cases.main()
