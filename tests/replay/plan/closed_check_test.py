"""When the I/Os of a closed replay are due, against a second implementation of docs/closed_loop.md."""

import collections
import os
import random
import tempfile
import unittest

from tests.harness import blktape, cases
from tests.replay.plan import closed_check

SAMPLE = "tests/data/sample.tape"
FSYNC = "tests/data/fsync.tape"
BTRFS, XFS = "tests/data/btrfs.tape", "tests/data/xfs.tape"


def fsyncs(rng, at, log_rests):
    """Threads that fsync by a log that one of them writes, as in XFS or Btrfs: arrival, how long it takes, op, flags,
    thread, how long it waits to be issued; and until when that writes."""
    took = lambda: 1_000 * rng.choice((60, 100, 390, 2_000)) + rng.randrange(1_000)
    ios = []
    for thread in rng.sample((70, 71, 72, 73), rng.choice((1, 1, 2, 3))):
        ios.append((at + rng.randrange(50_000), took(), "write", "sync", thread, 0))
    writer = ios[-1][4]
    at = max(log_rests, *(io[0] + io[1] for io in ios)) + 1_000 * rng.choice((5, 30, 100, 390, 410))
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 2, 4))):
            # The kernel may take it late, and the writer waits until then.
            held_up = 1_000 * rng.choice((2, 2, 2, 390, 410, 3_000))
            waits = max(0, held_up - 1_000 * rng.choice((-50, 0, 150, 210)))
            ios.append((at, waits + took(), "write", "sync+meta", writer, waits))
            at += held_up
        at = max(at, *(io[0] + io[1] for io in ios)) + 10_000
        ios.append((at, took(), "flush", "", writer, 0))
        at += ios[-1][1] + 10_000
    if rng.random() < 0.97:  # the record
        ios.append((at, took(), "write", rng.choice(("sync+fua+meta", "sync+fua+preflush+meta")), writer, 0))
    ends = ios[-1][0] + ios[-1][1]
    for thread in sorted({io[4] for io in ios} - {writer}):
        if rng.random() < 0.6:
            ios.append((ends + 1_000 * rng.choice((5, 30, 390, 410)), took(), "flush", "", thread, 0))
    return ios, ends


def made_up(seed, ios, tick_ns, disks=("sda",)):
    """Threads that come and go, two journals, a log that programs write, writeback, flushes, all at once; what `dump --csv`
    would say of it. All times are multiples of the tick. Of two disks each has a journal, which sometimes writes to the other,
    too; programs use both. Every second tells who woke some of the threads."""
    rng, place = random.Random(seed), random.Random(-1 - seed)
    wakes = random.Random(seed + 0.5) if seed % 2 else None
    at = log_rests = 1_000_000_000
    threads = [100 + i for i in range(6)]
    newest = 200
    rows = []
    for i in range(ios):
        at += 1_000 * rng.choice((0, 0, 1, 5, 30, 100, 150, 300, 500, 2_000, 30_000))
        if rng.random() < 0.04:
            of_log, log_rests = fsyncs(rng, at, log_rests)
            disk = place.choice(disks)
            rows += [(queue, queue + waits, queue + took, op, flags, 4096, thread, "program %d" % thread, disk)
                     for queue, took, op, flags, thread, waits in of_log]
        if place.random() < 0.3:
            # Threads of one program that hand work to each other.
            took = 1_000 * place.choice((60, 100, 390)) + place.randrange(1_000)
            for handed in range(place.choice((1, 3, 8))):
                rows.append((at, at, at + took, "read", "", 4096, 80 + (i + handed) % 4, "pool", place.choice(disks)))
                at += took + 1_000 * place.choice((0, 20, 60, 190, 210, 600))
        if rng.random() < 0.02:
            newest += 1
            threads[rng.randrange(1, 6)] = newest
        pid, op, flags, size = rng.choice(threads), "read", "", 4096
        process = "program %d" % pid
        tells_thread = rng.random()
        if tells_thread < 0.02:
            pid = ""
        if tells_thread < 0.01:
            process = ""
        kind = rng.random()
        if kind < 0.35:
            pass
        elif kind < 0.50:
            op, flags = "write", rng.choice(("sync", "sync", "sync+fua", "preflush", "sync+meta", "sync+fua+meta"))
        elif kind < 0.70:
            pid, process = rng.choice(((50, "jbd2/a"), (50, "jbd2/a"), (51, "jbd2/b")))
            op, flags = "write", rng.choice(("sync+meta",) * 3 + ("sync+fua+meta", "sync+fua+preflush+meta"))
        elif kind < 0.85:
            pid, process, op, flags = 60, "kworker/0:1", "write", rng.choice(("", "meta"))
            if place.random() < 0.3:
                pid = place.choice((60, 61))
                op, flags = place.choice((("read", ""), ("read", "meta"), ("write", "sync"), ("write", "sync+meta"), ("flush", "")))
                size = 0 if op == "flush" else 4096
        elif kind < 0.90:
            op, flags, size = "flush", rng.choice(("", "derived")), 0
        elif kind > 0.98:
            op = "discard"
        complete = at + (1_000 * rng.choice((20, 60, 100, 200, 390, 800, 5_000, 40_000)) + rng.randrange(1_000))
        disk = place.choice(disks)
        if pid in (50, 51) and place.random() < 0.95:
            disk = disks[(pid - 50) % len(disks)]
        rows.append((at, at + rng.choice((0, 1, 3)) * tick_ns, complete if rng.random() > 0.005 else None, op, flags, size, pid,
                     process, disk))
    rows.sort(key=lambda row: row[0])
    lines = [",".join(blktape.COLUMNS) + ",waker,since_wake_ns"]
    for i, (queue, issue, complete, op, flags, size, pid, process, disk) in enumerate(rows):
        queue, issue = (time // tick_ns * tick_ns for time in (queue, issue))
        complete = "" if complete is None else max(complete // tick_ns * tick_ns, issue)
        waker = since = ""
        if wakes and wakes.random() < 0.5:
            waker = wakes.choice((50, 51, 60, 70, 80, *threads))
            since = 1_000 * wakes.choice((0, 3, 50, 300, 2_000, 50_000)) // tick_ns * tick_ns
        lines.append(",".join(map(str, (queue, issue, complete, disk, op, flags, "" if op == "flush" else 8 * i,
                                        0 if op == "flush" else size, 0, pid, process, 0, waker, since))))
    return "\n".join(lines) + "\n"


class ClosedCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, seed, tick_ns, disks=("sda",)):
        text, trace = (os.path.join(self.folder, "made%d.%s" % (seed, ending)) for ending in ("csv", "tape"))
        with open(text, "w", encoding="utf-8") as file:
            file.write(made_up(seed, 3_000, tick_ns, disks))
        blktape.ok("import", text, "-o", trace)
        return trace

    def check(self, trace, drive, idle_cap_ms=None, without_fua=()):
        cap = ("--no-idle-cap",) if idle_cap_ms is None else ("--idle-cap", "%dms" % idle_cap_ms)
        folder = tempfile.mkdtemp(dir=self.folder) + "/score"
        blktape.ok("score", trace, "--target", "sim:" + drive, "--cycles", "1", *cap, "-o", folder)
        result = os.path.join(folder, "cycle-1-closed.tape")
        completions = collections.defaultdict(list)
        for row in blktape.dump(result, "--result"):
            completions[int(row["ordinal"])].append((int(row["queue_ns"]), int(row["complete_ns"])))
        records = closed_check.records(blktape.rows(blktape.ok("export", trace, "--to", "csv", "-o", "-").stdout))
        machine_of = {device["name"]: device.get("machine", 0) for device in blktape.as_json("info", trace)["header"]["devices"]}
        planned = list(closed_check.waits(records, lambda io: "derived" not in io["flags"], without_fua,
                                          idle_cap_ms and idle_cap_ms * 1_000_000, machine_of))
        # The first is due when the replay starts, and what it thinks before that.
        start = completions[planned[0].ordinal][0][0] - planned[0].think_ns
        replay = closed_check.Replay(planned, start, completions)
        self.assertEqual(replay.strangers[:5], [])
        self.assertEqual([pairs for pairs in replay.completions.values() if pairs], [])
        keys = {(wait.ordinal, wait.copy) for wait in planned}
        self.assertEqual(keys, set(replay.due) | replay.left_out)
        commits = blktape.as_json("info", result)["summary"]["replay"].get("commits", {})
        self.assertEqual(len(replay.left_out), int(commits.get("left_out", 0)))
        self.assertEqual(sum(wait.copy > 0 for wait in planned), int(commits.get("copies", 0)))
        return commits

    def test_a_recording_of_applications_on_ext4(self):
        # Of a device without FUA, with threads, a journal, writeback and flushes that the kernel derived.
        devices = blktape.as_json("info", SAMPLE)["header"]["devices"]
        without_fua = {device["name"] for device in devices if device.get("fua") is False}
        self.assertEqual(without_fua, {"loop6"})
        self.check(SAMPLE, "sata-2011", without_fua=without_fua)
        self.check(SAMPLE, "nvme-2026", idle_cap_ms=10, without_fua=without_fua)

    def test_programs_that_fsync_side_by_side(self):
        # Of the fsync work of //tests/benchmarks/prediction, on its slowest disk.
        written = {}
        for drive in ("sata-2011", "nvme-2026"):
            commits = {figure: int(count) for figure, count in
                       self.check(FSYNC, drive, without_fua=("disk0",)).items()}
            self.assertGreater(commits["copies"], 0)
            self.assertGreater(commits["left_out"], 0)
            written[drive] = commits["written"]
        self.assertGreater(written["nvme-2026"], written["sata-2011"])  # where fewer share

    def test_programs_that_write_the_log_themselves(self):
        # The same work on its disk of 600 us a read, the first 1.2 s.
        for trace in (BTRFS, XFS):
            with self.subTest(trace=trace):
                commits = {figure: int(count) for figure, count in
                           self.check(trace, "sata-2011", without_fua=("disk0",)).items()}
                self.assertGreater(commits["left_out"], 0)
                self.assertLess(commits["written"], commits["recorded"])  # on a slower disk more are shared

    def test_recordings_made_up(self):
        for seed in range(3):
            with self.subTest(seed=seed):
                self.check(self.make(seed, tick_ns=1), "emmc-2018", idle_cap_ms=10 if seed % 2 else None)

    def test_two_disks(self):
        for seed in (20, 21):
            with self.subTest(seed=seed):
                self.check(self.make(seed, tick_ns=1, disks=("sda", "sdb")), "emmc-2018")

    def test_two_machines(self):
        merged = os.path.join(self.folder, "merged.tape")
        blktape.ok("merge", self.make(30, 1, ("sda", "sdb")), self.make(31, 1, ("sdc", "sdd")), "--clock", "start", "-o", merged)
        machines = [device.get("machine", 0) for device in blktape.as_json("info", merged)["header"]["devices"]]
        self.assertEqual(machines, [0, 0, 1, 1])
        self.check(merged, "emmc-2018")

    def test_clocks_that_tick_slowly(self):
        # Many completions at the same time, and at the time of an arrival.
        for seed, tick_ns in ((10, 10_000), (11, 100_000), (12, 1_000_000)):
            with self.subTest(seed=seed):
                self.check(self.make(seed, tick_ns), "emmc-2018", idle_cap_ms=10 if seed % 2 else None)


if __name__ == "__main__":
    cases.main()
