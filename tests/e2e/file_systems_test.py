"""Traces on file systems that know no rename that replaces nothing: a network's, USB sticks'."""

import os
import subprocess
import unittest

from tests.harness import blktape, cases, devices, direct_io

SAMPLE = "tests/data/sample.tape"


class FileSystemsTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)

    def mount(self, *words):
        folder = self.scratch.path("mnt")
        os.mkdir(folder)
        subprocess.run([*words, folder], check=True, stdout=subprocess.DEVNULL)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        with open(os.path.join(folder, "one"), "wb"):
            pass
        return folder

    def check(self, folder):
        def path(name):
            return os.path.join(folder, name)

        disk = self.scratch.loop(64 << 20, name="disk")
        blktape.ok("record", "--device", disk, "-o", path("a.tape"), "--settle", "0s", "--", "python3",
                   direct_io.__file__, disk, "forty")
        told = blktape.as_json("info", path("a.tape"))
        self.assertTrue(told["whole"])
        self.assertEqual(told["records"], 40)
        blktape.ok("cut", SAMPLE, "--to", "1s", "-o", path("cut.tape"))
        blktape.ok("replay", path("cut.tape"), "--engine", "null", "--max", "-o", path("result.tape"))
        blktape.ok("score", SAMPLE, "--target", "sim:nvme-2026", "--cycles", "1", "--idle-cap", "1ms", "--no-db", "-o",
                   path("score"), accept=(0, 3))
        blktape.ok("pack", SAMPLE, "-o", path("packed.tape"))
        blktape.ok("export", SAMPLE, "--to", "csv", "-o", path("rows.csv"))
        blktape.ok("analyze", SAMPLE, "--html", path("page.html"), "--csv", path("tables"))
        # What a crash leaves gets its name by recover.
        os.rename(path("cut.tape"), path("left.tape.partial"))
        blktape.ok("recover", path("left.tape.partial"), accept=(0, 3))
        self.assertEqual(sorted(os.listdir(folder)), ["a.tape", "left.tape", "one", "packed.tape", "page.html",
                                                      "result.tape", "rows.csv", "score", "tables"])
        self.assertEqual([name for name in os.listdir(path("score")) if name.endswith(".partial")], [])
        # Nothing is overwritten here, either, not even what was made meanwhile.
        late = blktape.run("record", "--device", disk, "-o", path("late.tape"), "--settle", "0s", "--", "sh", "-c",
                           "echo precious >" + path("late.tape"))
        self.assertEqual(late.returncode, 1)
        self.assertIn("late.tape", late.stderr)
        with open(path("late.tape"), encoding="ascii") as file:
            self.assertEqual(file.read(), "precious\n")

    def test_by_a_second_name(self):
        os.mkdir(self.scratch.path("below"))
        folder = self.mount("bindfs", self.scratch.path("below"))
        os.link(os.path.join(folder, "one"), os.path.join(folder, "two"))
        os.unlink(os.path.join(folder, "two"))
        self.check(folder)

    def test_without_links(self):
        stick = self.scratch.loop(256 << 20, name="stick")
        subprocess.run(["mkfs.exfat", stick], check=True, stdout=subprocess.DEVNULL)
        folder = self.mount("mount.exfat-fuse", stick)
        with self.assertRaises(OSError):
            os.link(os.path.join(folder, "one"), os.path.join(folder, "two"))
        self.check(folder)


if __name__ == "__main__":
    cases.main()
