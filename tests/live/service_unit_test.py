"""The systemd unit is one systemd accepts without a word, and its hardening does not fade."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases

UNIT = "packaging/systemd/blktape-record.service"
CONFIG = "packaging/systemd/record.conf"


class ServiceUnitTest(unittest.TestCase):
    def setUp(self):
        cases.need(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.unit = os.path.join(folder.name, "blktape-record.service")
        with open(UNIT) as file:
            text = file.read()
        # Where the program lies once it is installed; here, where Bazel built it.
        text = text.replace("/usr/bin/blktape", os.path.realpath(blktape.PROGRAM))
        text = text.replace("/etc/blktape/record.conf", os.path.realpath(CONFIG))
        with open(self.unit, "w") as file:
            file.write(text)

    def test_systemd_has_nothing_to_say_about_it(self):
        result = subprocess.run(["systemd-analyze", "verify", "--man=no", self.unit], capture_output=True,
                                text=True, check=False)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_its_exposure_is_rated_ok(self):
        said = subprocess.check_output(["systemd-analyze", "security", "--offline=true", "--no-pager", self.unit],
                                       text=True, stderr=subprocess.STDOUT)
        exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", said).group(1))
        print("systemd-analyze security: exposure %.1f of 10" % exposure, flush=True)
        self.assertLessEqual(exposure, 3.0)

    def test_the_options_of_the_configuration_are_options_of_the_program(self):
        with open(CONFIG) as file:
            named = set(re.findall(r"--[a-z][a-z-]+", file.read()))
        known = set(re.findall(r"--[a-z][a-z-]+", blktape.ok("record", "--help").stdout))
        self.assertGreater(len(named), 8)
        self.assertLessEqual(named, known)


if __name__ == "__main__":
    cases.main()
