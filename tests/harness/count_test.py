"""tools/count.py counts cases, not targets, and lets nothing pass that told of no case."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from tests.harness import cases

PASSED = '<testsuites><testsuite><testcase name="A"/><testcase name="B"/></testsuite></testsuites>'
# As Bazel writes it where the test did not.
STAND_IN = '<testsuites><testsuite name="tests/guest/flood_test"><testcase name="tests/guest/flood_test" status="run"/></testsuite></testsuites>'
NOTHING = '<testsuites><testsuite name="AllTests"/></testsuites>'
SKIPPED = '<testsuites><testsuite><testcase name="A"><skipped message="%s"/></testcase><testcase name="B"/></testsuite></testsuites>'
FAILED = '<testsuites><testsuite><testcase name="A"><failure message="m">what it said</failure></testcase><testcase name="B"/></testsuite></testsuites>'


class CountTest(unittest.TestCase):
    def count(self, xml, *options, status="PASSED", label="//tests/guest:flood_test"):
        """The exit status and the last line, and all it said."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            outputs = []
            if xml is not None:
                path = os.path.join(folder, "test.xml")
                with open(path, "w") as file:
                    file.write(xml)
                outputs = [{"name": "test.xml", "uri": "file://" + path}]
            events = os.path.join(folder, "events")
            with open(events, "w") as file:
                file.write(json.dumps({"id": {"testResult": {"label": label, "run": 1}},
                                       "testResult": {"status": status, "testActionOutput": outputs}}) + "\n")
            done = subprocess.run([sys.executable, "tools/count.py", *options, events], capture_output=True, text=True,
                                  check=False)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()[-1], done.stdout

    def test_cases_are_counted_not_targets(self):
        self.assertEqual(self.count(PASSED)[:2], (0, "2 passed, 0 failed, 0 skipped"))

    def test_a_failed_case_is_named_with_what_it_said(self):
        code, last, said = self.count(FAILED, status="FAILED")
        self.assertEqual((code, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("//tests/guest:flood_test A", said)
        self.assertIn("what it said", said)

    def test_a_test_that_passed_and_told_of_no_case_fails(self):
        for name, xml in (("stand-in of Bazel", STAND_IN), ("no case", NOTHING), ("no file", None)):
            with self.subTest(name):
                code, last, said = self.count(xml)
                self.assertEqual((code, last), (1, "0 passed, 1 failed, 0 skipped"))
                self.assertIn("told of no case", said)

    def test_a_test_that_was_killed_fails_once(self):
        self.assertEqual(self.count(STAND_IN.replace('"run"/>', '"run"><error message="x"/></testcase>'), status="TIMEOUT")[:2],
                         (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_skipped_case_fails_where_every_facility_must_be_there(self):
        xml = SKIPPED % "needs root"
        self.assertEqual(self.count(xml)[:2], (0, "1 passed, 0 failed, 1 skipped"))
        code, last, said = self.count(xml, "--strict-skips")
        self.assertEqual((code, last), (1, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("SKIPPED //tests/guest:flood_test A: needs root", said)

    def test_what_needs_a_file_outside_of_the_repository_may_skip_everywhere(self):
        xml = SKIPPED % "tests/a.cc:12&#x0A;not in the repository: shared/traces/a"
        code, last, said = self.count(xml, "--strict-skips")
        self.assertEqual((code, last), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("A: not in the repository: shared/traces/a", said)


if __name__ == "__main__":
    cases.main()
