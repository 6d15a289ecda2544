"""Several drives for the same work: ranked, resumed, refused. On simulated drives, which take no time."""

import json
import os
import shutil
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

    def test_quick_is_not_ranked(self):
        words = ["--target", "sim:sata-2011", "--target", "sim:nvme-2026"]
        ran = blktape.run("bench", SAMPLE, *words, "--quick", "-o", self.folder)
        self.assertIn("not ranked", ran.stdout)
        self.assertNotIn("times as fast", ran.stdout)


if __name__ == "__main__":
    cases.main()
