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

    def test_a_phase_ends_however_its_command_does(self):
        device = self.scratch.loop(16 << 20)
        with recording.Recording(self, device) as recorder:
            # One who is told to end tells the command, and waits for it.
            running = subprocess.Popen([blktape.PROGRAM, "mark", "ended", "--", "sh", "-c",
                                        "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done"],
                                       stdout=subprocess.PIPE, text=True)
            self.assertEqual(running.stdout.readline(), "ready\n")
            running.terminate()
            self.assertEqual(running.wait(60), 7)
            running.stdout.close()
            self.assertEqual(blktape.run("mark", "mistyped", "--", "no-such-command").returncode, 1)
        info = json.loads(blktape.ok("info", "--json", recorder.trace, accept=(0, 3)).stdout)
        self.assertEqual([(mark["kind"], mark["detail"]) for mark in info["marks"] if mark["kind"].startswith("PHASE")],
                         [("PHASE_BEGIN", "ended"), ("PHASE_END", "ended"),
                          ("PHASE_BEGIN", "mistyped"), ("PHASE_END", "mistyped")])

    def test_a_command_that_outlives_the_recording_has_its_own_exit_status(self):
        device = self.scratch.loop(16 << 20)
        with recording.Recording(self, device):
            running = subprocess.Popen([blktape.PROGRAM, "mark", "long", "--", "sh", "-c", "echo ready; read line; exit 4"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(running.stdout.readline(), "ready\n")
        _, said = running.communicate("\n", timeout=60)
        self.assertEqual(running.returncode, 4)
        self.assertIn("the end of the phase was not told", said)

    def test_a_name_must_be_one(self):
        self.assertEqual(blktape.run("mark", "").returncode, 2)
        self.assertEqual(blktape.run("mark", "x" * 201).returncode, 2)


if __name__ == "__main__":
    cases.main()
