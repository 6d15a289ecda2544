"""The fleet's question over 1,000 traces: Spark and DuckDB give the answer that plain Python works out."""

from tests.harness import pypi

pypi.enter()

import collections
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import blktape
from tests.harness import cases
from tests.python import tape_writer

sys.path.insert(0, "examples/fleet")
import representatives

TRACES = 1000
MACHINES = 40
RECORDS = 60
LOST = (17, 500, 993)  # of these traces a frame is missing

READ, WRITE, DISCARD, FLUSH = range(4)
SYNC, DERIVED = 1, 32

# Five kinds of work that nobody would take for one another: sizes, share of reads, share that goes on where the one
# before ended, mean gap and service time in us, share of writes that somebody waits for, flushes.
KINDS = {
    "database": ([4096, 8192], 0.3, 0.0, 900, 90, 0.9, 0.25),
    "backup": ([1 << 20, 524288], 1.0, 0.98, 4000, 3000, 0.0, 0.0),
    "desktop": ([4096, 16384, 65536], 0.65, 0.4, 60000, 400, 0.3, 0.08),
    "log": ([4096], 0.0, 0.95, 150, 30, 0.05, 0.02),
    "cache": ([131072, 65536], 0.9, 0.1, 40, 1500, 0.0, 0.0),
}


def make_records(chosen, kind):
    sizes, reads, sequential, gap_us, service_us, waited_for, flushes = KINDS[kind]
    records, at, end = [], chosen.randrange(10**12), 0
    for _ in range(RECORDS):
        at += int(chosen.expovariate(1 / gap_us) * 1000)
        record = {"device": chosen.randrange(2) if kind == "desktop" else 0, "flags": 0, "queue": at,
                  "issue": at + 2000, "complete": at + 2000 + int(chosen.uniform(0.5, 1.5) * service_us * 1000)}
        if chosen.random() < flushes:
            record.update(op=FLUSH, bytes=0, flags=chosen.choice([0, DERIVED]))
        else:
            size = chosen.choice(sizes)
            lba = end if chosen.random() < sequential else chosen.randrange(1 << 30) * 8
            end = lba + size // 512
            record.update(op=READ if chosen.random() < reads else WRITE, bytes=size, lba=lba)
            if record["op"] == WRITE and chosen.random() < waited_for:
                record["flags"] = SYNC
        odd = chosen.random()
        if odd < 0.03:
            del record["complete"]  # in flight at the end
        elif odd < 0.06:
            del record["queue"]  # a source that does not tell
        elif odd < 0.08:
            record.update(op=DISCARD, bytes=1 << 20, lba=0)
        elif odd < 0.09:
            record["complete"] = record["issue"] - 10**9  # a clock that ran backwards
        elif odd < 0.10:
            record["complete"] = 2**61  # a time that cannot be
        records.append(record)
    return records


def union_ns(records):
    """By sorting ends: how long at least one of the foreground I/Os was waited for."""
    changes = []
    for io in records:
        foreground = (io["op"] in (READ, FLUSH) or io["op"] == WRITE and io["flags"] & SYNC) and not io["flags"] & DERIVED
        begin = io.get("queue", io["issue"])
        if foreground and begin <= io.get("complete", -1) < 2**60:
            changes += [(begin, 1), (io["complete"], -1)]
    waiting = total = since = 0
    for at, change in sorted(changes, key=lambda each: (each[0], -each[1])):
        if waiting == 0:
            since = at
        waiting += change
        if waiting == 0:
            total += at - since
    return total


def observed_ns(records):
    arrivals = [io.get("queue", io["issue"]) for io in records]
    return max(arrivals + [io["complete"] for io in records if io.get("complete", 2**61) < 2**60]) - min(arrivals)


class FleetTest(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        cls.folder = Path(cls.temporary.name)
        cls.dataset = cls.folder / "fleet"
        chosen = random.Random(5)
        cls.kind = {}
        cls.sizes = collections.defaultdict(lambda: [0, 0])
        cls.wait = collections.Counter()
        cls.recorded = collections.Counter()
        cls.ios = collections.Counter()
        for number in range(TRACES):
            # Names that a careless reader would take for numbers.
            machine, name = "%03d" % (number % MACHINES), "%04d" % number
            kind = chosen.choice(list(KINDS))
            cls.kind[machine, name] = kind
            batches = [make_records(chosen, kind)]
            frames = tape_writer.frames_of(batches, devices=["sda", "sdb"], host=machine)
            if number in LOST:
                batches = [batches[0], []]
                frames.insert(2, None)
                frames[1:] = [frames[1]] + [tape_writer.frame(tape_writer.frame_start(3, RECORDS + 7) +
                                                              tape_writer.summary(RECORDS + 7))]
            path = cls.folder / (name + ".tape")
            path.write_bytes(tape_writer.finish(frames))
            blktape.add_to_dataset(path, cls.dataset)
            for io in batches[0]:
                if io["op"] in (READ, WRITE):
                    cls.sizes[machine, io["bytes"]][io["op"]] += 1
            cls.wait[machine] += union_ns(batches[0])
            cls.recorded[machine] += observed_ns(batches[0])
            cls.ios[machine] += RECORDS
        cls.answers = {}
        for engine in ("duckdb", "spark"):
            done = cls.run_example(engine, cls.dataset, "--json", "--out", cls.folder / engine)
            assert done.returncode == 3, done.stdout + done.stderr
            cls.answers[engine] = json.loads(done.stdout)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def run_example(cls, engine, *words):
        env = {**os.environ, "SPARK_LOCAL_DIRS": str(cls.folder), "HOME": str(cls.folder),
               # Short runs: half the CPU time without the optimizing compiler.
               "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir=" + str(cls.folder)}
        return subprocess.run([sys.executable, "examples/%s/fleet.py" % engine, *map(str, words)], capture_output=True,
                              text=True, check=False, env=env)

    def test_size_histogram_by_machine(self):
        expected = [{"machine": machine, "bytes": size, "requests": reads + writes, "reads": reads, "writes": writes}
                    for (machine, size), (reads, writes) in sorted(self.sizes.items())]
        for engine, answer in self.answers.items():
            with self.subTest(engine):
                self.assertEqual(answer["size_histogram"], expected)

    def test_storage_wait_by_machine(self):
        for engine, answer in self.answers.items():
            with self.subTest(engine):
                self.assertEqual([row["machine"] for row in answer["storage_wait"]], sorted(self.wait))
                for row in answer["storage_wait"]:
                    machine = row["machine"]
                    self.assertEqual((row["storage_wait_ns"], row["recorded_ns"], row["traces"], row["ios"]),
                                     (self.wait[machine], self.recorded[machine], TRACES // MACHINES, self.ios[machine]))
                    self.assertAlmostEqual(row["storage_wait_s_per_workday"],
                                           self.wait[machine] / self.recorded[machine] * 8 * 3600)

    def test_what_is_missing_is_told(self):
        for engine, answer in self.answers.items():
            with self.subTest(engine):
                self.assertEqual((answer["traces"], answer["incomplete_traces"], answer["lost_events"]),
                                 (TRACES, len(LOST), 7 * len(LOST)))

    def test_ten_traces_represent_all(self):
        for engine, answer in self.answers.items():
            with self.subTest(engine):
                chosen = answer["representatives"]
                self.assertEqual(len(chosen), 10)
                self.assertEqual(sum(each["stands_for"] for each in chosen), TRACES)
                stands_for = collections.Counter()
                for each in chosen:
                    stands_for[self.kind[each["machine"], each["trace"]]] += each["stands_for"]
                # No trace is represented by one of another kind of work.
                self.assertEqual(stands_for, collections.Counter(self.kind.values()))
                self.assertGreater(answer["explained"], 0.8)

    def test_both_engines_choose_the_same(self):
        self.assertEqual(self.answers["spark"]["representatives"], self.answers["duckdb"]["representatives"])

    def test_files(self):
        for engine, answer in self.answers.items():
            for name in ("size_histogram", "storage_wait", "representatives"):
                with self.subTest(engine, name=name), open(self.folder / engine / (name + ".csv"), newline="") as file:
                    self.assertEqual([row["machine"] for row in csv.DictReader(file)],
                                     [row["machine"] for row in answer[name]])

    def test_the_answer_in_words(self):
        done = self.run_example("duckdb", self.dataset, "--representatives", "3")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)
        self.assertIn("1,000 traces of 40 machines\nIncomplete: 3 traces lack 21 events or more, or their end\n", done.stdout)
        self.assertIn("These 3 represent all", done.stdout)

    def test_refusals(self):
        self.assertEqual(self.run_example("duckdb", self.dataset, "--representatives", "0").returncode, 2)
        done = self.run_example("duckdb", self.folder / "none")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^error: .*none: is no dataset")

    def test_figures_of_the_trace_that_ships_are_those_of_analyze(self):
        # Numbers of docs/metrics.md that the program counts too.
        from tests.harness import blktape as tool
        dataset = self.folder / "sample"
        blktape.add_to_dataset("tests/data/sample.tape", dataset)
        told = tool.as_json("analyze", "tests/data/sample.tape")
        answer = json.loads(self.run_example("duckdb", dataset, "--json").stdout)
        self.assertEqual([{key: row[key] for key in ("bytes", "reads", "writes")} for row in answer["size_histogram"]],
                         [{key: row[key] for key in ("bytes", "reads", "writes")} for row in told["size_histogram"]])
        [machine] = answer["storage_wait"]
        self.assertEqual((machine["ios"], machine["recorded_ns"]), (told["ios"], told["recorded_ns"]))


class RepresentativesTest(unittest.TestCase):
    def distance(self, *places):
        points = np.array([[float(place)] for place in places])
        return representatives.distances(points, points)

    def test_medoids_worked_by_hand(self):
        # Sums to all others on the line 0 1 2 10 11 12: the middles of both groups, 2 + 2, are the least.
        self.assertEqual(representatives.medoids(self.distance(0, 1, 2, 10, 11, 12), 2), [1, 4])
        self.assertEqual(representatives.medoids(self.distance(0, 1, 2, 3, 100), 1), [2])
        # BUILD takes 2 first (sum 4 + 5 = 9 against 10 or more), then 6; SWAP finds 1 and 6.
        self.assertEqual(representatives.medoids(self.distance(0, 1, 2, 6, 7), 2), [1, 3])

    def test_ties_go_to_the_first(self):
        self.assertEqual(representatives.medoids(self.distance(0, 1), 1), [0])
        self.assertEqual(representatives.medoids(self.distance(5, 5, 5, 5), 2), [0, 1])

    def test_as_many_as_there_are(self):
        self.assertEqual(representatives.medoids(self.distance(3, 1, 2), 10), [0, 1, 2])
        self.assertEqual(representatives.choose([], 10), ([], None))

    def rows(self, count):
        return [{"machine": "m", "trace": "%05d" % i, "data_requests": 10, "recorded_ns": 10**9, "ios": 10, "bytes": 40960,
                 "storage_wait_ns": 0, "sequential": 0, "reads": i % 2 * 10, "flushes": 0, "up_to_4k": 10, "up_to_16k": 10,
                 "up_to_64k": 10, "up_to_256k": 10, "mean_ln_d2c": None} for i in range(count)]

    def test_one_of_each_when_there_are_two_kinds(self):
        chosen, explained = representatives.choose(self.rows(20)[::-1], 2)
        self.assertEqual([(each["trace"], each["stands_for"], each["max_distance"]) for each in chosen],
                         [("00000", 10, 0), ("00001", 10, 0)])
        self.assertEqual(explained, 1)

    def test_an_empty_trace_has_features_too(self):
        rows = self.rows(3)
        rows[1].update(data_requests=0, recorded_ns=0, ios=0, bytes=None, reads=None, flushes=None)
        self.assertEqual(sum(each["stands_for"] for each in representatives.choose(rows, 2)[0]), 3)

    def test_more_traces_than_candidates(self):
        most, representatives.MAX_CANDIDATES = representatives.MAX_CANDIDATES, 7
        try:
            chosen, _ = representatives.choose(self.rows(100), 2)
        finally:
            representatives.MAX_CANDIDATES = most
        self.assertEqual(sorted(each["stands_for"] for each in chosen), [50, 50])


if __name__ == "__main__":
    cases.main()
