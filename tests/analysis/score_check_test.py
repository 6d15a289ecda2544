"""`blktape score` against a second implementation of docs/score.md, on the same traces."""

import json
import os
import random
import struct
import tempfile
import unittest

from tests.analysis import score_check
from tests.harness import blktape, cases

READ, WRITE, FLUSH, SYNC, QUEUE, ISSUE, COMPLETE, FUA = (1 << n for n in (0, 1, 2, 3, 4, 6, 7, 15))
Q, D, C = 1, 7, 8


def blktrace(events):
    """Bytes of a blktrace version 7 file of one CPU."""
    out = bytearray()
    for sequence, (time, action, category, sector, size) in enumerate(sorted(events, key=lambda e: e[0]), 1):
        out += struct.pack("<IIQQIIIIIHH", 0x65617407, sequence, time, sector, size, category << 16 | action, 77,
                           8 << 20, 0, 0, 0)
    return bytes(out)


def desktop(seed, ios):
    """Bursts, pauses of which some are long, every class of I/O; no two requests share a sector."""
    rng = random.Random(seed)
    events, now, sector = [], 1_000_000_000, 0
    for i in range(ios):
        now += rng.choice((20_000, 60_000, 200_000, 900_000))
        if i % 700 == 650:
            now += 130_000_000
        kind = rng.random()
        if kind < 0.45:
            category, size = READ, rng.choice((4096, 8192, 16384))
        elif kind < 0.62:
            category, size = READ, rng.choice((32768, 131072))
        elif kind < 0.78:
            category, size = WRITE | SYNC, rng.choice((4096, 12288))
        elif kind < 0.83:
            category, size = WRITE | SYNC | FUA, 4096
        else:
            category, size = WRITE, rng.choice((4096, 262144))
        took = rng.randrange(30_000, 400_000)
        wait = rng.randrange(0, 5_000)
        events.append((now, Q, category | QUEUE, sector, size))
        events.append((now + wait, D, category | ISSUE, sector, size))
        events.append((now + wait + took, C, category | COMPLETE, sector, size))
        sector += size // 512
    return blktrace(events), sector * 512


class ScoreCheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        path = lambda name: os.path.join(cls.folder.name, name)
        data, span = desktop(seed=5, ios=8_000)
        with open(path("day.blktrace.0"), "wb") as file:
            file.write(data)
        trace = path("day.tape")
        blktape.ok("import", path("day.blktrace.0"), "-o", trace)
        with open(path("target"), "wb") as file:
            file.truncate(span + (1 << 20))
        # Invalid where this machine was late: the figures are the same all the same.
        result = blktape.run("score", trace, "--target", path("target"), "--cycles", "2", "--pause", "0s", "--engine", "libaio", "-o",
                             path("score"), "--json")
        if result.returncode not in (0, 3):
            raise AssertionError(result.stderr)
        cls.report = json.loads(result.stdout)
        read = lambda name: score_check.records(blktape.dump(name))
        cls.counted = [run["label"].split(",")[0].replace(" ", "-") for run in cls.report["runs"]
                       if run["label"].endswith("timed") and not run["repeated"]]
        if len(cls.counted) != 2:
            raise AssertionError(cls.report["runs"])
        cls.trace = read(trace)
        cls.results = {name: read(path("score/%s.tape" % name)) for name in
                       (cycle + kind for cycle in ["reference", *cls.counted] for kind in ("-timed", "-max"))}
        cls.cut, cls.all_writes = score_check.segments(cls.trace)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def costs(self, name):
        return score_check.costs(self.trace, self.cut, self.all_writes, self.results[name + "-timed"],
                                 self.results[name + "-max"])

    def assert_close(self, a, b, what=""):
        self.assertLess(abs(a - b), 1e-9 * max(abs(a), abs(b)) + 1e-12, "%s: %r and %r" % (what, a, b))

    def test_the_trace_is_what_was_written(self):
        self.assertEqual(len(self.trace), 8_000)
        self.assertGreater(len(self.cut), 1)

    def test_segments(self):
        self.assertEqual(self.cut, [(s["first_record"], s["end_record"]) for s in self.report["segments"]])
        for (first, end), segment in zip(self.cut, self.report["segments"]):
            classes = [score_check.wait_class(io, self.all_writes) for io in self.trace[first:end]]
            for which, key in enumerate(score_check.CLASSES):
                self.assertEqual(segment[key], classes.count(which), key)
        # The test means something only if cuts were moved to pauses.
        self.assertTrue(any(segment["cut_at_idle"] for segment in self.report["segments"]))

    def test_the_reference_drive(self):
        for kind in ("timed", "max"):
            result = self.results["reference-" + kind]
            start = result[0]["queue"] if kind == "timed" else result[0]["issue"]
            expected = score_check.reference_run(self.trace, kind == "timed")
            for n, (io, (due, issue, complete)) in enumerate(zip(result, expected)):
                if due is not None:
                    self.assertEqual(io["queue"] - start, due, "%s, due of %d" % (kind, n))
                self.assertEqual(io["issue"] - start, issue, "%s, issue of %d" % (kind, n))
                self.assertEqual(io["complete"] - start, complete, "%s, completion of %d" % (kind, n))

    def test_costs(self):
        for n, name in enumerate(["reference", *self.counted]):
            for k, computed in enumerate(self.costs(name)):
                segment = self.report["segments"][k]
                told = segment["reference"] if n == 0 else segment["cycles"][n - 1]
                for cost, key in zip(computed, ("response_ns", "tail_ns", "busy_ns")):
                    self.assert_close(cost, told[key], "%s, segment %d, %s" % (name, k, key))

    def test_score_and_interval(self):
        reference, cycles = self.costs("reference"), [self.costs(cycle) for cycle in self.counted]
        logs = [score_check.log_score(reference, cycle) for cycle in cycles]
        for computed, told in zip(logs, self.report["log_scores"]):
            self.assert_close(computed, told)
        self.assert_close(1000 * score_check.math.exp(score_check.mean(logs)), self.report["score"])
        low, high = score_check.interval(logs)
        self.assertAlmostEqual(low / self.report["ci_low"], 1, 5)
        self.assertAlmostEqual(high / self.report["ci_high"], 1, 5)
        self.assertAlmostEqual(high / low / self.report["interval_ratio"], 1, 5)
        self.assertEqual(self.report["interval_too_wide"], self.report["interval_ratio"] > 2 ** 0.3)
        for computed, told in zip(score_check.variants(reference, cycles), self.report["weight_variants"]):
            self.assert_close(computed, told["score"])

    def test_storage_wait(self):
        waits = [score_check.storage_wait_ns(self.trace, self.all_writes, self.results[cycle + "-timed"])
                 for cycle in self.counted]
        self.assertEqual(waits, self.report["waits_ns"])
        self.assert_close(score_check.mean(waits) / self.report["recording_ns"] * 28_800,
                          self.report["storage_wait_s_per_workday"])


if __name__ == "__main__":
    cases.main()
