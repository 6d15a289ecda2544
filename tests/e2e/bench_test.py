"""Several drives for the same work: ranked, resumed, refused. On simulated drives, which take no time."""

import csv
import io
import json
import math
import os
import shutil
import stat
import statistics
import unittest

from tests.harness import blktape, cases, devices

SAMPLE = "tests/data/sample.tape"


class BenchTest(unittest.TestCase):
    def setUp(self):
        self.scratch = devices.Scratch(self)
        self.folder = self.scratch.path("bench")

    def bench(self, *targets, **options):
        words = [word for target in targets for word in ("--target", target)]
        return blktape.run("bench", SAMPLE, *words, "-o", self.folder, **options)

    def report(self, target):
        with open(os.path.join(self.folder, target.replace(":", "-"), "report.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_drives_are_ranked_by_their_scores(self):
        drives = ("sim:sata-2011", "sim:nvme-2026", "sim:reference")
        ran = self.bench(*drives)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        scores = {drive: self.report(drive)["score"] for drive in drives}
        self.assertAlmostEqual(scores["sim:reference"], 1000, places=6)
        first, second, third = sorted(drives, key=lambda drive: -scores[drive])
        for faster, slower in ((first, second), (second, third), (first, third)):
            ratio = "%.2f" % (scores[faster] / scores[slower])
            self.assertIn("%s is %s (%s to %s) times as fast as %s" % (faster, ratio, ratio, ratio, slower),
                          " ".join(ran.stdout.split()))
        with open(os.path.join(self.folder, "bench.html"), encoding="utf-8") as file:
            self.assertIn(first, file.read())

    def test_a_bench_that_was_ended_goes_on_and_does_no_run_twice(self):
        self.assertEqual(self.bench("sim:sata-2011", "sim:nvme-2026").returncode, 0)
        before = self.report("sim:sata-2011")
        kept = os.path.join(self.folder, "sim-sata-2011", "cycle-1-closed.tape")
        stamp = os.stat(kept).st_mtime_ns
        # As a crash would leave it: one drive's last cycle is missing, and what follows from it.
        shutil.rmtree(os.path.join(self.folder, "sim-nvme-2026"))
        again = self.bench("sim:sata-2011", "sim:nvme-2026")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("6 runs done", again.stderr)
        self.assertEqual(os.stat(kept).st_mtime_ns, stamp)
        self.assertEqual(self.report("sim:sata-2011")["log_scores"], before["log_scores"])

    def test_what_is_not_of_this_bench_stays_as_it_is(self):
        with open(self.folder, "w", encoding="utf-8") as file:
            file.write("precious")
        for folder in (self.folder, self.scratch.path("node")):
            if folder != self.folder:
                os.mknod(folder, stat.S_IFIFO | 0o600)
            before = os.lstat(folder)
            ran = blktape.run("bench", SAMPLE, "--target", "sim:nvme-2026", "--cycles", 2, "-o", folder)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn("no folder", ran.stderr)
            self.assertEqual(os.lstat(folder).st_ino, before.st_ino)
        os.unlink(self.folder)
        # A folder of the user's own, in which nothing is left, is still there.
        os.mkdir(self.folder)
        self.assertEqual(blktape.run("bench", "nosuch.tape", "--target", "sim:nvme-2026", "-o", self.folder).returncode, 1)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(self.bench("sim:sata-2011", "sim:nvme-2026").returncode, 0)
        kept = self.read("bench.json")
        ran = self.bench("sim:emmc-2018", "sim:hdd-2013")
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, "something else than this bench: sim-(sata-2011|nvme-2026)")
        self.assertEqual(self.read("bench.json"), kept)
        for drive in ("sim-sata-2011", "sim-nvme-2026"):
            shutil.rmtree(os.path.join(self.folder, drive))
        ran = self.bench("sim:sata-2011", "sim:nvme-2026")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("not of this bench", ran.stderr)
        self.assertEqual(self.read("bench.json"), kept)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def test_a_drive_named_twice_is_refused(self):
        ran = self.bench("sim:sata-2011", "sim:sata-2011")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("named twice", ran.stderr)

    def test_two_names_of_one_file_are_noticed_before_a_byte_changes(self):
        target = self.scratch.image("target.img", 2 << 30)
        os.symlink(target, self.scratch.path("other.img"))
        ran = self.bench(target, self.scratch.path("other.img"))
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn("two names of one drive", ran.stderr)
        self.assertEqual(os.stat(target).st_blocks, 0)

    def suite(self):
        """Two traces, the second a piece of the first, with weights 3 and 1."""
        path = self.scratch.path("office.suite")
        if os.path.exists(path):
            return path
        shutil.copy(SAMPLE, self.scratch.path("whole.tape"))
        blktape.ok("cut", SAMPLE, "--from", "1s", "--to", "5s", "-o", self.scratch.path("piece.tape"))
        with open(path, "w", encoding="utf-8") as file:
            file.write("# what we do\n3 whole.tape\n\n1 %s\n" % self.scratch.path("piece.tape"))
        return path

    def test_a_suite_is_the_weighted_geometric_mean_of_its_traces(self):
        drives = ("sim:sata-2011", "sim:nvme-2026", "sim:reference")
        words = [word for drive in drives for word in ("--target", drive)]
        db = self.scratch.path("results.db")
        ran = blktape.ok("bench", "--suite", self.suite(), *words, "-o", self.folder, "--db", db)
        means = []
        for drive in drives:
            logs = []
            for trace in ("whole", "piece"):
                with open(os.path.join(self.folder, trace, drive.replace(":", "-"), "report.json")) as file:
                    logs.append(statistics.mean(json.load(file)["log_scores"]))
            means.append(1000 * math.exp((3 * logs[0] + logs[1]) / 4))
        with open(os.path.join(self.folder, "bench.json")) as file:
            told = json.load(file)["suites"]
        for drive, mean in zip(told["drives"], means):
            self.assertAlmostEqual(drive["score"], mean, places=9)
            self.assertEqual([trace["share"] for trace in drive["traces"]], [0.75, 0.25])
        for pair in told["pairs"]:
            self.assertAlmostEqual(pair["ratio"], means[pair["first"]] / means[pair["second"]], places=9)
        first = drives[max(range(3), key=means.__getitem__)]
        self.assertTrue(ran.stdout.startswith(first + " is "), ran.stdout)
        for line in ran.stdout.splitlines():
            self.assertLess(len(line), 80 + len(self.folder) * line.startswith("Page: "), line)
        # Kept, and compared in every form from there and from the folder.
        rows = blktape.as_json("results", "list", "--db", db)
        self.assertEqual([(row["name"], row["kind"], row["trace"]) for row in rows],
                         [("bench/" + drive.replace(":", "-"), "suite", "office") for drive in drives])
        again = blktape.as_json("compare", 1, 2, 3, "--db", db)["suites"]
        self.assertEqual(again["pairs"], told["pairs"])
        by_folder = blktape.as_json("compare", self.folder)["suites"]
        self.assertEqual(sorted(drive["score"] for drive in by_folder["drives"]), sorted(means))
        table = list(csv.DictReader(io.StringIO(blktape.ok("compare", 1, 2, 3, "--db", db, "--csv").stdout)))
        self.assertEqual([row["trace"] for row in table], ["", "whole.tape", "piece.tape"] * 3)
        self.assertAlmostEqual(float(table[0]["score"]), means[0], places=9)
        self.assertIn("office", blktape.ok("compare", 1, 2, 3, "--db", db, "--markdown").stdout)
        self.assertIn("whole.tape", blktape.ok("results", "show", 1, "--db", db).stdout)
        with open(os.path.join(self.folder, "bench.html")) as file:
            self.assertIn('id="chart-suite-bars"', file.read())
        # Told once more, nothing is run and nothing is kept twice.
        stamp = os.stat(os.path.join(self.folder, "whole", "sim-sata-2011", "cycle-1-closed.tape")).st_mtime_ns
        blktape.ok("bench", "--suite", self.suite(), *words, "-o", self.folder, "--db", db)
        self.assertEqual(os.stat(os.path.join(self.folder, "whole", "sim-sata-2011", "cycle-1-closed.tape")).st_mtime_ns,
                         stamp)
        self.assertEqual(len(blktape.as_json("results", "list", "--db", db)), 3)

    def test_several_traces_weigh_alike_and_mistakes_are_told(self):
        self.suite()
        traces = [self.scratch.path("whole.tape"), self.scratch.path("piece.tape")]
        words = ["--target", "sim:sata-2011", "--target", "sim:nvme-2026", "--cycles", 2]
        told = json.loads(blktape.ok("bench", *traces, *words, "-o", self.folder, "--json").stdout)["suites"]
        self.assertEqual([trace["share"] for trace in told["drives"][0]["traces"]], [0.5, 0.5])
        other = self.scratch.path("other")
        for wrong in ((), ("--suite", self.suite(), SAMPLE), (SAMPLE, SAMPLE), (*traces, "--from", "1s"),
                      ("--suite", SAMPLE), (SAMPLE, "--no-db", "--keep-traces")):
            run = blktape.run("bench", *wrong, *words, "-o", other)
            self.assertEqual(run.returncode, 2, (wrong, run.stderr))
            self.assertFalse(os.path.exists(other))
        # One of the traces cannot be scored: known before anything is run on the others.
        blktape.ok("cut", SAMPLE, "--to", "1ms", "-o", self.scratch.path("short.tape"))
        run = blktape.run("bench", traces[0], self.scratch.path("short.tape"), *words, "-o", other)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("short.tape", run.stderr)
        self.assertFalse(os.path.exists(other), run.stderr)

    def test_quick_is_not_ranked(self):
        words = ["--target", "sim:sata-2011", "--target", "sim:nvme-2026"]
        ran = blktape.run("bench", SAMPLE, *words, "--quick", "-o", self.folder)
        self.assertIn("not ranked", ran.stdout)
        self.assertNotIn("times as fast", ran.stdout)


if __name__ == "__main__":
    cases.main()
