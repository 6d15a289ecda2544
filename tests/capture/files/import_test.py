"""`blktape import` from the command line: what it prints, writes, refuses, and its exit status."""

import gzip
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases

DATA = "tests/capture/data"
READ = 1 << 16
QUEUE, ISSUE, COMPLETE = 1, 7, 8


def record(sequence, time_ns, action, sector=0, size=4096):
    return struct.pack("<IIQQIIIIIHH", 0x65617407, sequence, time_ns, sector, size, action, 1, 8 << 20, 0, 0, 0)


class ImportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def test_a_set_named_by_its_common_part(self):
        for cpu in (0, 1):
            shutil.copy("%s/nvme0n1.blktrace.%d.zst" % (DATA, cpu), self.folder)
        trace = self.path("day.tape")
        result = blktape.ok("import", self.path("nvme0n1"), "-o", trace)
        self.assertIn("2 files, blktrace version 7", result.stdout)
        self.assertIn("missing   nothing", result.stdout)
        self.assertEqual(len(blktape.dump(trace)), 2035)
        subprocess.run(["zstd", "-tq", trace], check=True)

    def test_one_of_a_set_is_read_with_a_warning(self):
        for cpu in (0, 1):
            shutil.copy("%s/nvme0n1.blktrace.%d.zst" % (DATA, cpu), self.folder)
        result = blktape.ok("import", self.path("nvme0n1.blktrace.0.zst"), "-o", self.path("day.tape"))
        self.assertIn("nvme0n1.blktrace.1.zst is of the same recording", result.stderr)
        whole = blktape.ok("import", self.path("nvme0n1"), "-o", self.path("whole.tape"))
        self.assertNotIn("same recording", whole.stderr)

    def test_json_tells_the_same(self):
        shown = blktape.as_json("import", DATA + "/nvme0n1.blktrace.0.zst", DATA + "/nvme0n1.blktrace.1.zst", "-o",
                                self.path("day.tape"))
        self.assertEqual(shown["ios"], 2035)
        self.assertEqual(shown["ios_by_op"], {"read": 281, "write": 1400, "discard": 115, "flush": 239})
        self.assertEqual(shown["events"]["merged"], 8608)
        self.assertEqual(shown["losses"], [])

    def test_standard_input_compressed(self):
        content = b"".join(record(2 * i + 1, 100 * i + 1, READ | ISSUE, 8 * i) +
                           record(2 * i + 2, 100 * i + 50, READ | COMPLETE, 8 * i) for i in range(500))
        trace = self.path("day.tape")
        result = subprocess.run([blktape.PROGRAM, "import", "-", "-o", trace], input=gzip.compress(content),
                                capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(blktape.dump(trace)), 500)

    def test_missing_data_is_named_and_ends_with_three(self):
        content = record(1, 10, READ | ISSUE) + record(5, 20, READ | COMPLETE) + b"\0" * 77
        result = blktape.run("import", self.path("sda.blktrace.0", content), "-o", self.path("day.tape"))
        self.assertEqual(result.returncode, 3)
        self.assertIn("missing   3 events: sequence gap", result.stdout)
        self.assertIn("damaged input", result.stdout)

    def test_nothing_is_overwritten(self):
        trace = self.path("day.tape", b"precious")
        result = blktape.run("import", DATA + "/nvme0n1.blktrace.0.zst", "-o", trace)
        self.assertEqual(result.returncode, 1)
        self.assertIn("exists", result.stderr)
        with open(trace, "rb") as file:
            self.assertEqual(file.read(), b"precious")

    def test_what_is_no_recording_is_refused_with_what_is_known(self):
        result = blktape.run("import", self.path("x.csv", b"a,b,c\n1,2,3\n"), "-o", self.path("day.tape"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("blktrace binary", result.stderr)
        self.assertFalse(os.path.exists(self.path("day.tape")))
        self.assertFalse(os.path.exists(self.path("day.tape.partial")))
        result = blktape.run("import", self.path("nowhere"), "-o", self.path("day.tape"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(blktape.run("import", "x").returncode, 2)


if __name__ == "__main__":
    cases.main()
