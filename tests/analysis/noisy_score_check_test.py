"""Scores of drives that are not the same twice, against a second implementation of docs/score.md, to 1e-9."""

import json
import math
import os
import random
import subprocess
import tempfile
import unittest

from tests.analysis import score_check
from tests.harness import blktape, cases

NOISY_SCORE = "tests/analysis/noisy_score"


def work(seed, ios):
    """What `dump --csv` would say of every kind of I/O, many at once, some at the same addresses; with long pauses."""
    rng = random.Random(seed)
    at, sector = 1_000_000_000, 0
    lines = [",".join(blktape.COLUMNS)]
    for i in range(ios):
        at += rng.choice((0, 5_000, 20_000, 60_000, 200_000, 700_000)) + rng.randrange(1_000)
        if i % 400 == 350:
            at += 130_000_000
        kind, flags = rng.random(), ""
        if kind < 0.50:
            op, size = "read", rng.choice((4096, 16384, 32768, 131072))
        elif kind < 0.75:
            op, size = "write", rng.choice((4096, 12288))
            flags = rng.choice(("sync", "sync", "sync+fua", "sync+preflush", "sync+fua+preflush", "sync+meta"))
        elif kind < 0.85:
            op, size = "flush", 0
            flags = rng.choice(("", "", "derived"))
        elif kind < 0.97:
            op, size = "write", rng.choice((4096, 262144))
        else:
            op, size = "discard", 65536
        lba = sector
        if op != "flush" and rng.random() < 0.1 and sector > 4096:
            lba = sector - rng.choice((8, 64, 512))  # of what may still be in flight
        if op != "flush":
            sector = max(sector, lba + size // 512)
        issue = at + rng.randrange(2_000)
        complete = issue + rng.choice((20_000, 90_000, 400_000, 3_000_000)) + rng.randrange(1_000)
        pid = 60 if op == "write" and not flags else rng.choice((100, 101, 102, 103))
        lines.append(",".join(map(str, (at, issue, complete, "sda", op, flags, "" if op == "flush" else lba, size, 0, pid,
                                        "program", 0))))
    return "\n".join(lines) + "\n"


class NoisyScoreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        cls.day = cls.make("day", seed=1, ios=6_000)
        cls.evening = cls.make("evening", seed=2, ios=1_000)
        cls.trace = score_check.records(blktape.dump(cls.day))
        cls.cut, cls.all_writes = score_check.segments(cls.trace)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def make(cls, name, seed, ios):
        with open(cls.path(name + ".csv"), "w", encoding="utf-8") as file:
            file.write(work(seed, ios))
        blktape.ok("import", cls.path(name + ".csv"), "-o", cls.path(name + ".tape"))
        return cls.path(name + ".tape")

    def budget(self, share):
        """So much of what a cycle of the whole day takes on the reference."""
        report = self.score("whole-%d" % (100 * share), "cycles=1", "sd=0", drive="reference")
        return "budget_ms=%d" % (share * sum(run["wall_ns"] for run in report["runs"]) / 1e6)

    def score(self, name, *words, trace=None, drive="nvme-2026"):
        """The report, which its folder of this name also holds."""
        result = subprocess.run([NOISY_SCORE, "score", trace or self.day, self.path(name), drive, *words],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def runs(self, name, report, kind):
        """Of the reference and of each cycle that counts: the records of its run, the reference's first."""
        counted = [run["file"] for run in report["runs"] if run["file"].endswith(kind + ".tape") and not run["repeated"]]
        return [score_check.records(blktape.dump(os.path.join(self.path(name), file), "--result"))
                for file in ["reference-%s.tape" % kind, *counted]]

    def assert_close(self, a, b, what=""):
        self.assertLessEqual(abs(a - b), 1e-9 * max(abs(a), abs(b)), "%s: %r and %r" % (what, a, b))

    def assert_all_close(self, a, b, what=""):
        self.assertEqual(len(a), len(b), what)
        for one, other in zip(a, b):
            if one is None or other is None:
                self.assertEqual(one, other, what)
            else:
                self.assert_close(one, other, what)

    def assert_interval(self, report, logs, first_stage=None):
        self.assert_all_close(logs, report["log_scores"], "L")
        self.assertGreater(score_check.variance(logs), 0)
        low, high = score_check.interval(logs, first_stage)
        self.assert_close(1000 * math.exp(score_check.mean(logs)), report["score"])
        self.assert_close(low, report["ci_low"])
        self.assert_close(high, report["ci_high"])
        self.assert_close(high / low, report["interval_ratio"])
        self.assert_close(math.log(high / low) / 2, report["half_width_ln"])

    def logs(self, name, report):
        """L of each cycle from the result traces, and their costs."""
        closed, fastest = self.runs(name, report, "closed"), self.runs(name, report, "max")
        reference, *cycles = [score_check.costs(self.trace, self.cut, self.all_writes, *runs)
                              for runs in zip(closed, fastest)]
        for k, segment in enumerate(report["segments"]):
            for costs, told in zip([reference, *cycles], [segment["reference"], *segment["cycles"]]):
                self.assert_all_close(costs[k], (told["wait_ns"], told["busy_ns"]))
        return [score_check.log_score(reference, cycle) for cycle in cycles], closed[1:]

    def test_quantiles_of_students_t_are_those_of_the_closed_forms(self):
        # With one degree the distribution is Cauchy's; with two and four it has a closed form, too.
        self.assertLess(abs(score_check.student_t_975(1) / math.tan(0.475 * math.pi) - 1), 1e-12)
        self.assertLess(abs(score_check.student_t_975(2) / (0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))) - 1), 1e-12)
        root = math.sqrt(4 * 0.975 * 0.025)
        four = 2 * math.sqrt(math.cos(math.acos(root) / 3) / root - 1)
        self.assertLess(abs(score_check.student_t_975(4) / four - 1), 1e-12)
        # Between whole ones it falls.
        self.assertTrue(score_check.student_t_975(1) > score_check.student_t_975(1.4) > score_check.student_t_975(2))

    def test_a_score_of_three_cycles(self):
        report = self.score("three", "sd=0.03")
        self.assertTrue(report["valid"], report["invalid_reasons"])
        self.assertEqual(report["cycles"], 3)
        self.assertGreater(len(self.cut), 1)
        self.assertEqual(self.cut, [(s["first_record"], s["end_record"]) for s in report["segments"]])
        # The trace has all that a score tells apart.
        self.assertEqual({io["op"] for io in self.trace}, {"read", "write", "flush", "discard"})
        self.assertLessEqual({"fua", "preflush", "derived"}, set().union(*(io["flags"] for io in self.trace)))
        logs, closed = self.logs("three", report)
        self.assert_interval(report, logs)
        self.assertIsNone(report["trend_ln"])
        self.check_waits(report, closed)
        self.check_responses(report, closed)
        self.check_series(report, closed)
        for kind in ("closed", "max"):
            self.check_reference_drive(self.runs("three", report, kind)[0])

    def check_reference_drive(self, run):
        """With PREFLUSH, FUA, discards and I/Os that waited for one at the same address."""
        result = sorted(run, key=lambda io: (io["issue"], io["ordinal"]))
        start = result[0]["issue"]
        self.assertEqual([io["complete"] - start for io in result], score_check.complete_times(
            [(io["op"], io["flags"], io["bytes"], io["issue"] - start) for io in result]))

    def check_waits(self, report, closed):
        waits = [score_check.storage_wait_ns(self.trace, self.all_writes, run) for run in closed]
        self.assertEqual(waits, report["waits_ns"])
        self.assert_close(score_check.mean(waits), report["storage_wait_ns"])
        for run, told in zip(closed, (run for run in report["runs"] if run["file"].endswith("closed.tape"))):
            host = score_check.host_wait_ns(self.trace, self.all_writes, run)
            self.assertEqual(told["host_wait_ns"], host)
            self.assertGreater(host, 0)
        # Some waited for one in flight: the drive's part of the time before submission.
        self.assertTrue(any(io["backlog"] for io in closed[0]))

    def check_responses(self, report, closed):
        percentiles = report["percentiles"]
        each = [score_check.responses(self.trace, self.all_writes, run) for run in closed]
        for which, key in enumerate(score_check.CLASSES):
            told = report["responses"][key]
            self.assertEqual(told["ios"], each[0][which][0])
            self.assert_close(told["mean_ns"], score_check.mean([one[which][1] for one in each]), key)
            self.assert_close(told["worst_1_percent_ns"], score_check.mean([one[which][2] for one in each]), key)
            times = [end - start for run in closed for start, end in
                     (score_check.waited(io) for io, of in score_check.foreground(self.trace, self.all_writes, run)
                      if of == which)]
            self.assertEqual(percentiles[key]["ios"], len(times))
            self.assertEqual(percentiles[key]["ns"], [score_check.percentile(times, ppm) for ppm in percentiles["ppm"]])
        late = [score_check.late_ns(io) for run in closed for io in run]
        self.assertEqual(percentiles["lateness"]["ios"], len(late))
        self.assertEqual(percentiles["lateness"]["ns"], [score_check.percentile(late, ppm) for ppm in percentiles["ppm"]])
        # Too few I/Os for the last ones, enough for the first.
        self.assertIn(None, percentiles["lateness"]["ns"] + percentiles["reads_over_16k"]["ns"])

    def check_series(self, report, closed):
        median = sorted(range(3), key=lambda n: report["waits_ns"][n])[1]
        told, computed = report["series"], score_check.series(self.trace, self.all_writes, closed[median])
        self.assertEqual(told["run"], "cycle %d, closed" % (median + 1))
        self.assertEqual(told["step_ns"], computed["step_ns"])
        for key in ("ios_per_s", "bytes_per_s", "depth_mean", "max_ns"):
            self.assert_all_close(told[key], computed[key], key)
        for one, exact in zip(told["p99_ns"], computed["p99_ns"]):
            self.assertEqual(one is None, exact is None)
            if exact is not None:
                self.assertLessEqual(abs(one - exact), exact / 16)
        self.assertTrue(any(told["p99_ns"]))

    def test_a_published_score_by_stein(self):
        report = self.score("published", "published=1", "cycles=5", "sd=0.018", "seed=3")
        self.assertTrue(report["valid"], report["invalid_reasons"])
        logs, _ = self.logs("published", report)
        self.assertEqual(report["first_stage_cycles"], 5)
        self.assertEqual(report["cycles"], score_check.stein_cycles(logs[:5]))
        self.assertTrue(5 < report["cycles"] < 40, report["cycles"])
        self.assert_interval(report, logs, first_stage=5)

    def test_a_drive_that_becomes_slower(self):
        report = self.score("slower", "sd=0.004", "drift=0.05", "cycles=4")
        logs, _ = self.logs("slower", report)
        self.assert_interval(report, logs)
        self.assert_close(score_check.trend_ln(logs), report["trend_ln"])
        self.assertLess(report["trend_ln"], -0.1)

    def test_a_repeated_cycle_counts_only_where_it_is_said(self):
        report = self.score("repeated", "spoil=2", "sd=0.02")
        self.assertTrue(report["valid"], report["invalid_reasons"])
        self.assertEqual([one["cycle"] for one in report["repeated_cycles"]], [2])
        self.assertEqual(report["repeated_cycles"][0]["rules"], [5, 5])
        logs, _ = self.logs("repeated", report)
        self.assert_interval(report, logs)
        spoiled = [score_check.records(blktape.dump(self.path("repeated/cycle-2-%s.tape" % kind), "--result"))
                   for kind in ("closed", "max")]
        reference = [tuple(segment["reference"][key] for key in ("wait_ns", "busy_ns")) for segment in report["segments"]]
        log = score_check.log_score(reference, score_check.costs(self.trace, self.cut, self.all_writes, *spoiled))
        self.assert_close(report["score_with_repeated"], 1000 * math.exp(score_check.mean([*logs, log])))

    def test_two_drives(self):
        # Slower, a tie within the interval, and one of less than 2 %.
        for number, (drive, words, word) in enumerate((
                ("sata-2011", ("sd=0.03", "seed=11"), "slower"),
                ("nvme-2026", ("sd=0.03", "seed=12"), "tie"),
                ("nvme-2026", ("sd=0.00001", "drift=0", "seed=13"), "tie"))):
            a = self.score("a%d" % number, "sd=0.00001" if number == 2 else "sd=0.02")
            b = self.score("b%d" % number, "reference=" + self.path("a%d" % number), *words, drive=drive)
            told = b["comparison"]
            reference = score_check.geometric_mean(self.cycles(a))
            logs = [[score_check.log_score(reference, cycle) for cycle in self.cycles(report)] for report in (a, b)]
            computed = score_check.compare(logs[1], logs[0])
            self.assertEqual(told["verdict"], computed[0])
            self.assertEqual(told["verdict"], word)
            self.assert_all_close(computed[1:], (told["ratio"], told["ratio_low"], told["ratio_high"]))
            self.assert_all_close(logs[1], b["log_scores"])
            # The same of `compare`, whose first one is the faster.
            pair = blktape.as_json("compare", self.path("a%d" % number), self.path("b%d" % number))["pairs"][0]
            own = [tuple(segment["reference"][key] for key in ("wait_ns", "busy_ns")) for segment in a["segments"]]
            logs = [[score_check.log_score(own, cycle) for cycle in self.cycles(report)] for report in (a, b)]
            computed = score_check.compare(logs[pair["first"]], logs[pair["second"]])
            self.assertEqual(pair["verdict"], computed[0])
            self.assert_all_close(computed[1:], (pair["ratio"], pair["ratio_low"], pair["ratio_high"]))

    @staticmethod
    def cycles(report):
        return [[tuple(segment["cycles"][n][key] for key in ("wait_ns", "busy_ns")) for segment in report["segments"]]
                for n in range(report["cycles"])]

    def test_a_suite_of_three_and_two_drives_over_it(self):
        words = {"day": (), "evening": ("published=1", "cycles=3"), "sample": (self.budget(0.5),)}
        traces = {"day": self.day, "evening": self.evening, "sample": self.day}
        weights = {"day": 3, "evening": 1.5, "sample": 1}
        reports, suites = {}, {}
        for drive, seed in (("nvme-2026", 21), ("emmc-2018", 22)):
            for name in words:
                reports[drive, name] = self.score("%s-%s" % (name, drive), "seed=%d" % seed, *words[name],
                                                  trace=traces[name], drive=drive)
            for names in (("day", "evening", "sample"), ("day", "evening")):
                pairs = [word for name in names
                         for word in (str(weights[name]), self.path("%s-%s/report.json" % (name, drive)))]
                suite = subprocess.run([NOISY_SCORE, "suite", *pairs], capture_output=True, text=True, check=True).stdout
                suites[drive, names] = json.loads(suite)
                with open(self.path("suite-%s-%d.json" % (drive, len(names))), "w", encoding="utf-8") as file:
                    file.write(suite)
                parts = []
                for name in names:
                    report = reports[drive, name]
                    draw = None
                    if report["sample"]:
                        drawn = [report["sample"]["stratum_of_window"].count(h) for h in range(len(report["sample"]["strata"]))]
                        left = sum(2 <= n < stratum["windows"] for n, stratum in zip(drawn, report["sample"]["strata"]))
                        draw = report["sampling_sd_ln"] ** 2, max(1, left / 40)
                    parts.append((weights[name], report["log_scores"], report["first_stage_cycles"], draw))
                told = suites[drive, names]
                self.assert_all_close(score_check.suite(parts), (told["score"], told["ci_low"], told["ci_high"]))
        self.assertIsNotNone(reports["nvme-2026", "sample"]["sample"])
        names = ("day", "evening")
        told = blktape.as_json("compare", self.path("suite-nvme-2026-2.json"),
                               self.path("suite-emmc-2018-2.json"))["suites"]["pairs"][0]
        self.assertEqual((told["first"], told["second"]), (0, 1))
        parts = [(weights[name], reports["nvme-2026", name]["log_scores"], reports["emmc-2018", name]["log_scores"])
                 for name in names]
        computed = score_check.compare_suites(parts)
        self.assertEqual(told["verdict"], computed[0])
        self.assert_all_close(computed[1:], (told["ratio"], told["ratio_low"], told["ratio_high"]))

    def test_a_sample(self):
        report = self.score("sample", self.budget(0.6), "sample=7", "sd=0.01", drive="emmc-2018")
        sample = report["sample"]
        self.assertLess(sample["windows_drawn"], sample["windows"])
        cut = [(segment["first_record"], segment["end_record"]) for segment in report["segments"]]
        self.check_draw(sample, cut)
        meant = [(number, io["lba"], io["bytes"]) for number, io in score_check.replayed(
            self.trace, score_check.with_lead_ins(self.trace, self.cut, self.all_writes, cut))]
        for run in self.runs("sample", report, "closed") + self.runs("sample", report, "max"):
            self.assertEqual([(io["ordinal"], io["lba"], io["bytes"]) for io in run], meant)
        reference, *cycles = [
            [(score_check.union([score_check.waited(io) for io, _ in
                                 score_check.foreground(self.trace, self.all_writes, closed, first, end)]),
              score_check.union([(io["issue"], io["complete"]) for io in fastest if first <= io["ordinal"] < end]))
             for first, end in cut]
            for closed, fastest in zip(self.runs("sample", report, "closed"), self.runs("sample", report, "max"))]
        self.assert_all_close([score_check.sampled_log_score(sample, reference, cycle)[0] for cycle in cycles],
                              report["log_scores"])
        score, low, high, half = score_check.sampled_interval(sample, reference, cycles)
        self.assert_all_close((score, low, high, half),
                              (report["score"], report["ci_low"], report["ci_high"], report["half_width_ln"]))
        waits = [score_check.sampled_wait_ns(sample, cycle) for cycle in cycles]
        for computed, told in zip(waits, report["waits_ns"]):
            self.assertLessEqual(abs(computed - told), 1)  # in whole ns
        self.assertLessEqual(abs(score_check.sampled_wait_ns(sample, reference) - report["reference_wait_ns"]), 1)
        self.assert_close(report["storage_wait_ns"], score_check.mean(report["waits_ns"]))

    def check_draw(self, sample, cut):
        drives = [[score_check.records(blktape.dump(self.path("sample/reference-whole-%s-%s.tape" % (drive, kind)),
                                                    "--result")) for kind in ("closed", "max")]
                  for drive in ("reference", "sata-2011")]
        self.assertEqual(sample["windows"], len(score_check.windows(self.trace, self.cut, self.all_writes)))
        drawn, stratum_of, strata = score_check.draw(self.trace, self.cut, self.all_writes, drives, sample["budget_ns"],
                                                     sample["seed"])
        self.assertEqual(cut, drawn)
        self.assertEqual(sample["stratum_of_window"], stratum_of)
        self.assertEqual([(one["segment"], one["windows"]) for one in sample["strata"]], strata)
        # The 10,000th number, as the C++ standard has it.
        numbers = score_check.mt19937_64(5489)
        self.assertEqual([next(numbers) for _ in range(10_000)][-1], 9981545732273789042)


if __name__ == "__main__":
    cases.main()
