"""The classic synthetic tests, on a file and on a disk that compresses."""

import os
import unittest

from tests.harness import blktape, cases, devices


class CornersTest(unittest.TestCase):
    def setUp(self):
        self.scratch = devices.Scratch(self)

    def corners(self, target, *words):
        return blktape.as_json("corners", "--target", target, "--overwrite", "--quick", *words)

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

    def test_a_device_is_not_touched_without_overwrite(self):
        devices.need_devices()
        loop = self.scratch.loop(8 << 20)
        run = blktape.run("corners", "--target", loop, "--quick", "--yes")
        self.assertEqual(run.returncode, 1)
        self.assertIn("--overwrite", run.stderr)

    def test_a_disk_that_compresses_is_found_out(self):
        devices.need_devices()
        zram = devices.Zram(self, 256 << 20)
        report = self.corners(zram.path, "--yes", "--only", "random")
        writes = {test["name"].split(", ")[3]: test["iops"] for test in report["tests"]
                  if test["op"] == "write" and test["queue_depth"] == 3}
        self.assertGreater(writes["repeated byte"], writes["random data"])
        self.assertEqual(len(report["left_out"]), 1, "zram has blocks of 4 KiB")


if __name__ == "__main__":
    cases.main()
