"""The classic synthetic tests, on a file and on a disk that compresses."""

import json
import os
import subprocess
import unittest

from tests.harness import blktape, cases, devices


class CornersTest(unittest.TestCase):
    def setUp(self):
        self.scratch = devices.Scratch(self)

    def corners(self, target, *words):
        return blktape.as_json("corners", "--target", target, "--overwrite", "--quick", "--no-db", *words)

    def test_as_ssd_on_a_file_writes_and_reads_every_byte_once(self):
        target = self.scratch.image("target.img", 64 << 20)
        report = self.corners(target, "--only", "incompressible")
        self.assertTrue(report["quick"])
        self.assertEqual([(test["op"], test["ios"], test["bytes"]) for test in report["tests"]],
                         [("write", 4, 64 << 20), ("read", 4, 64 << 20)])
        for test in report["tests"]:
            self.assertAlmostEqual(test["bytes_per_second"], test["bytes"] / test["elapsed_ns"] * 1e9, places=3)
            self.assertEqual(sum(test["series"]["bytes"]), test["bytes"])
        with open(target, "rb") as file:
            self.assertEqual(file.read().count(b"\0" * 4096), 0, "every block was written with data")

    def test_a_dry_run_writes_nothing_and_says_how_long_it_takes(self):
        target = self.scratch.image("target.img", 8 << 20)
        run = blktape.run("corners", "--target", target, "--overwrite", "--quick", "--dry-run")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("takes ", run.stderr)
        self.assertIn("4 KiB random write, QD 3", run.stdout)
        self.assertEqual(os.stat(target).st_blocks, 0)

    def test_a_file_that_was_made_for_a_run_goes_where_there_is_none(self):
        target = self.scratch.path("made.img")
        words = ("corners", "--target", target, "--create", "8M", "--overwrite", "--quick", "--no-db")
        self.assertIn("removed " + target, blktape.ok(*words, "--dry-run").stderr)
        self.assertFalse(os.path.exists(target))
        self.assertNotIn("removed", blktape.ok(*words, "--only", "incompressible").stderr)
        self.assertEqual(os.stat(target).st_size, 8 << 20)

    def test_no_file_is_made_in_the_place_of_a_device(self):
        run = blktape.run("corners", "--target", "/dev/blktape-test-no-such-disk", "--create", "1M", "--overwrite", "--quick")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no such device", run.stderr)
        self.assertFalse(os.path.exists("/dev/blktape-test-no-such-disk"))

    def test_what_was_measured_before_a_failure_is_told(self):
        devices.need_devices()
        # A file of 64 MiB where there is room for 40: it can be filled to a half.
        point = self.scratch.path("small")
        os.mkdir(point)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", point], check=True)
        self.addCleanup(subprocess.run, ["umount", point], check=True)
        run = blktape.run("corners", "--target", self.scratch.image("small/target.img", 64 << 20), "--overwrite", "--quick",
                          "--no-db", "--only", "fill", "--json")
        self.assertEqual(run.returncode, 1)
        self.assertIn("fill to 75 %", run.stderr)
        report = json.loads(run.stdout)
        self.assertEqual([test["condition"] for test in report["tests"]], ["25 % full", "50 % full"])
        self.assertTrue(report["stopped"])
        self.assertIn("fill to 75 %", report["failure"])

    def test_simulated_drives_are_targets_of_a_name(self):
        rates = {}
        for drive in ("nvme-2026", "hdd-2013"):
            report = self.corners("sim:" + drive, "--only", "depth")
            self.assertEqual(report["targets"][0]["model"], "simulated drive " + drive)
            (test,) = (test for test in report["tests"] if test["op"] == "read" and test["queue_depth"] == 1)
            rates[drive] = test["iops"]
        # 45 us and 4096 B at 6 GB/s; the arm of the disk takes 1 ms to 1.3 ms and half a turn over a span of 1 GiB.
        self.assertAlmostEqual(rates["nvme-2026"], 1e9 / (45_000 + 682), delta=10)
        self.assertTrue(1e3 / (1.35 + 4.17 + 0.1) < rates["hdd-2013"] < 1e3 / (1.0 + 4.0), rates)
        self.assertEqual(blktape.run("corners", "--target", "sim:nothing", "--no-db").returncode, 2)

    def test_a_device_is_not_touched_without_overwrite(self):
        devices.need_devices()
        loop = self.scratch.loop(8 << 20)
        run = blktape.run("corners", "--target", loop, "--quick", "--yes")
        self.assertEqual(run.returncode, 1)
        self.assertIn("--overwrite", run.stderr)

    def test_a_disk_that_compresses_is_found_out(self):
        devices.need_devices()
        zram = devices.Zram(self, 256 << 20)
        db = self.scratch.path("results.db")
        said = blktape.ok("corners", "--target", zram.path, "--overwrite", "--quick", "--yes", "--only", "random",
                          "--db", db, "--name", "zram").stdout
        report = json.loads(blktape.ok("results", "export", "zram", "--db", db).stdout)
        writes = {test["name"].split(", ")[3]: test["iops"] for test in report["tests"]
                  if test["op"] == "write" and test["queue_depth"] == 3}
        self.assertGreater(writes["repeated byte"], writes["random data"])
        ratio = writes["repeated byte"] / writes["random data"]
        self.assertAlmostEqual(report["repeated_over_random"], ratio, places=9)
        # And in words, wherever it is shown.
        self.assertIn("A repeated byte is written %.2f times as fast as random data: this drive compresses or deduplicates"
                      % ratio, " ".join(said.split()))
        shown = blktape.ok("results", "show", "zram", "--db", db).stdout
        self.assertIn("compresses or deduplicates", " ".join(shown.split()))
        self.assertEqual(len(report["left_out"]), 1, "zram has blocks of 4 KiB")


if __name__ == "__main__":
    cases.main()
