"""A bench of three drives and a score are ended by SIGKILL and ^C, again and again: they go on, no finished run is
lost or done twice."""

import json
import os
import signal
import subprocess
import time
import unittest

from tests.harness import blktape, cases, devices

SAMPLE = "tests/data/sample.tape"
TIMEOUT_S = 200
CYCLES = 5


class InterruptTest(unittest.TestCase):
    def setUp(self):
        self.scratch = devices.Scratch(self)
        self.folder = self.scratch.path("out")
        self.stopped = set()
        # Waiting is no part of what is tested.
        self.words = ["--cycles", str(CYCLES), "--idle-cap", "1ms", "--pause", "1ms", "--no-db", "-o", self.folder]

    def finished(self):
        """The result traces of runs that were not stopped, each with what tells whether it was made once more."""
        runs = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if name.startswith("cycle-") and name.endswith(".tape"):
                    path = os.path.join(folder, name)
                    try:
                        stat = os.stat(path)
                    except FileNotFoundError:
                        continue  # Stopped before, and measured again just now.
                    runs[os.path.relpath(path, self.folder)] = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        return {name: stat for name, stat in runs.items() if (name, stat) not in self.stopped}

    def was_stopped(self, name):
        told = blktape.as_json("info", os.path.join(self.folder, name))
        return told["summary"]["replay"].get("stopped_early", False)

    def end_after(self, words, runs, how):
        """Ends the program by a signal once that many runs, and one of its own, are finished; returns what was finished
        and what it said."""
        runs = max(runs, len(self.finished()) + 1)
        process = subprocess.Popen([blktape.PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        end_s = time.monotonic() + TIMEOUT_S
        while len(self.finished()) < runs and process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.001)
        self.assertIsNone(process.poll(), process.poll() is not None and process.stdout.read())
        # Into the next run, unless that is over already.
        time.sleep(0.01)
        before = self.finished()
        process.send_signal(how)
        said, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, -signal.SIGKILL if how == signal.SIGKILL else 3, said)
        if how == signal.SIGINT:
            # What a run has done when it is told to stop is kept for who wants to look, and is measured again. One may
            # have finished just before the signal came.
            self.stopped.update((name, stat) for name, stat in self.finished().items()
                                if name not in before and self.was_stopped(name))
        return before, said

    def check(self, verb, targets):
        words = [verb, SAMPLE, *self.words, *[word for target in targets for word in ("--target", target)]]
        kept = {}
        for runs, how in ((1, signal.SIGKILL), (3, signal.SIGINT), (4, signal.SIGKILL)):
            done, said = self.end_after(words, runs, how)
            self.assertEqual({name: done[name] for name in kept}, kept, "a finished run was lost or done twice")
            if kept:
                self.assertIn("run", said)
                self.assertIn("done", said)
            if how == signal.SIGINT:
                self.assertIn("the same command goes on", said)
            kept = done
        last = blktape.ok(*words, accept=(0, 3))
        done = self.finished()
        self.assertEqual({name: done[name] for name in kept}, kept, "a finished run was lost or done twice")
        left = [name for _, _, names in os.walk(self.folder) for name in names if name.endswith(".partial")]
        self.assertEqual(left, [])
        runs = 0
        for target in targets:
            folder = self.folder
            if verb == "bench":
                folder = os.path.join(folder, target.lstrip("/").replace(":", "-").replace("/", "-"))
            with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
                report = json.load(file)
            self.assertTrue(report["cycles"] == CYCLES or report["ended_early"], last.stderr)
            runs += len(report["runs"])
        self.assertEqual(len(done), runs)
        # Once more nothing is run.
        if verb == "bench":
            blktape.ok(*words, accept=(0, 3))
            self.assertEqual(self.finished(), done)

    def test_a_bench_of_three_simulated_drives(self):
        self.check("bench", ["sim:sata-2011", "sim:hdd-2013", "sim:nvme-2026"])

    def test_a_bench_with_a_file(self):
        self.words += ["--state", "as-is"]
        self.check("bench", ["sim:sata-2011", self.scratch.image("target.img", 2 << 30), "sim:hdd-2013"])

    def test_a_score(self):
        self.check("score", ["sim:hdd-2013"])


if __name__ == "__main__":
    cases.main()
