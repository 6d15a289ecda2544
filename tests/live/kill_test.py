"""kill -9 at a random moment of a recording: `blktape recover` makes a whole trace of what is left, every record in
it is right, and nothing older than a second is missing.

BLKTAPE_KILLS=200 makes it two hundred kills instead of ten:
  bazel test --test_env=BLKTAPE_KILLS=200 --test_timeout=3000 --test_output=all //tests/live:kill_test
"""

import os
import random
import signal
import time
import unittest

from tests.harness import blktape, bpf_losses, cases, devices, direct_io
from tests.live import recording

KILLS = int(os.environ.get("BLKTAPE_KILLS", "10"))
SIZE_BYTES = 64 << 20
SECOND_NS = 1_000_000_000


def sources():
    return ["tracefs", "bpf"] if os.path.exists("/sys/kernel/btf/vmlinux") else ["tracefs"]


class KillTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)
        self.device = self.scratch.loop(SIZE_BYTES)

    def work(self, planned, seconds, pause_s):
        """Does what there is to do until the time is over; gives (begin, end) in ns of each I/O."""
        spans = []
        end_s = time.monotonic() + seconds
        with direct_io.Disk(self.device) as disk:
            for one in planned:
                begin_ns = time.monotonic_ns()
                disk.perform(*one)
                spans.append((begin_ns, time.monotonic_ns()))
                if pause_s:
                    time.sleep(pause_s)
                if time.monotonic() >= end_s:
                    return spans
        raise AssertionError("the plan was too short")

    def kill_once(self, number, source, rng):
        planned = direct_io.transfers(number, 200_000, SIZE_BYTES)
        recorder = recording.Recording(self, self.device, source=source, trace=self.scratch.path("%d.tape" % number))
        with recorder:
            spans = self.work(planned, rng.uniform(0.02, 2.5), rng.choice((0, 0.0002, 0.002)))
            killed_ns = time.monotonic_ns()
            recorder.stop(signal.SIGKILL)
        self.assertFalse(os.path.exists(recorder.trace))
        said = blktape.run("recover", recorder.partial)
        self.assertIn(said.returncode, (0, 3), said.stderr)
        self.assertFalse(os.path.exists(recorder.partial))
        losses = bpf_losses.Losses(self, recorder.trace)
        self.assertTrue(losses.info["finished"] and losses.info["recovered"], losses.info)
        rows = [row for row in blktape.dump(recorder.trace, accept=(0, 3)) if int(row["pid"]) == os.getpid()]
        kept = 0  # so far does what is in the trace reach into the plan
        for row, place in losses.follow(rows, planned, direct_io.of_row):
            begin_ns, end_ns = spans[place]
            stamps = [int(row[name]) for name in ("queue_ns", "issue_ns", "complete_ns") if row[name] != ""]
            self.assertEqual([begin_ns, *stamps, end_ns], sorted([begin_ns, *stamps, end_ns]))
            kept = place + 1
        losses.check_completed(rows)
        self.assertLessEqual(kept, len(spans))
        due = sum(end_ns < killed_ns - SECOND_NS for _, end_ns in spans)
        self.assertGreaterEqual(kept, due, "of %d" % len(spans))
        os.unlink(recorder.trace)
        youngest_ns = killed_ns - spans[kept - 1][1] if kept else killed_ns - spans[0][0]
        return len(spans), kept, due, youngest_ns

    def test_a_kill_costs_at_most_the_last_second(self):
        rng = random.Random(5)
        done = kept = due = 0
        worst_ns = 0
        for number in range(KILLS):
            source = sources()[number % len(sources())]
            with self.subTest(kill=number, source=source):
                ios, left, old, missing_ns = self.kill_once(number, source, rng)
                done, kept, due, worst_ns = done + ios, kept + left, due + old, max(worst_ns, missing_ns)
        self.assertGreater(due, 0, "no kill came later than in the first second")
        print("%d kills, %d I/Os, %d in the traces; at most the last %.0f ms were missing" % (
            KILLS, done, kept, worst_ns / 1e6), flush=True)


if __name__ == "__main__":
    cases.main()
