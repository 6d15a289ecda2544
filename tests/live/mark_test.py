"""`blktape mark`: a running recording is told of phases, and the trace and its reports have them."""

import json
import os
import subprocess
import time
import unittest

from tests.harness import blktape, cases, devices
from tests.live import recording


class MarkTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)

    def test_phases_are_in_the_trace_where_they_were_said(self):
        device = self.scratch.loop(16 << 20)
        with recording.Recording(self, device) as recorder:
            before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            self.assertIn("unpack begins", blktape.ok("mark", "unpack").stdout)
            subprocess.run(["dd", "if=" + device, "of=/dev/null", "bs=4k", "count=64", "iflag=direct"], check=True,
                           stderr=subprocess.DEVNULL)
            blktape.ok("mark", "unpack", "--end")
            # The exit status is the command's.
            done = blktape.run("mark", "second", "--", "sh", "-c", "exit 5")
            self.assertEqual(done.returncode, 5)
            after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        info = json.loads(blktape.ok("info", "--json", recorder.trace, accept=(0, 3)).stdout)
        marks = [mark for mark in info["marks"] if mark["kind"].startswith("PHASE")]
        self.assertEqual([(mark["kind"], mark["detail"]) for mark in marks],
                         [("PHASE_BEGIN", "unpack"), ("PHASE_END", "unpack"), ("PHASE_BEGIN", "second"), ("PHASE_END", "second")])
        times = [int(mark["at_ns"]) for mark in marks]
        self.assertEqual(times, sorted(times))
        self.assertTrue(before_ns <= times[0] and times[-1] <= after_ns)
        read = [int(row["issue_ns"] or row["queue_ns"]) for row in blktape.dump(recorder.trace, accept=(0, 3)) if row["op"] == "read"]
        self.assertGreaterEqual(sum(times[0] <= at <= times[1] for at in read), 64)
        self.assertIn("unpack", blktape.ok("info", recorder.trace, accept=(0, 3)).stdout)
        # A recorder that has ended leaves no ear behind.
        self.assertFalse(os.path.exists("/run/blktape/mark-%d.sock" % recorder.pid))

    def test_a_name_must_be_one(self):
        self.assertEqual(blktape.run("mark", "").returncode, 2)
        self.assertEqual(blktape.run("mark", "x" * 201).returncode, 2)


if __name__ == "__main__":
    cases.main()
