"""A recorded desktop session as a trace takes at most 7.5 bytes per I/O, and reads back whole."""

import json
import os
import tempfile
import unittest

from tests.harness import blktape, cases


class RecordedSizeTest(unittest.TestCase):
    def test_a_desktop_session_with_issue_and_completion(self):
        parts = ["tests/capture/data/loop2.blktrace.%d.zst" % cpu for cpu in (0, 1)]
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "day.tape")
            done = blktape.run("import", *parts, "-o", trace)
            self.assertIn(done.returncode, (0, 3), done.stderr)
            said = json.loads(blktape.run("info", "--json", trace).stdout)
            print("%d I/Os, %.2f bytes each" % (said["records"], said["bytes_per_record"]))
            self.assertGreater(said["records"], 35_000)
            self.assertLessEqual(said["bytes_per_record"], 7.5)


if __name__ == "__main__":
    cases.main()
