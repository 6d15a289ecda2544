"""Queue settings of a target: set for a replay or a preparation, and put back however it ends."""

import json
import os
import signal
import subprocess
import time
import unittest

from tests.harness import blktape, cases, devices

SAMPLE = "tests/data/sample.tape"
ASKED = {"scheduler": "none", "nomerges": "2", "read_ahead_kb": "0"}
FLAGS = [word for name, value in ASKED.items() for word in ("--set", name + "=" + value)]


class QueueSettingsTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)
        self.device = self.scratch.loop(1 << 30)
        self.queue = "/sys/block/%s/queue/" % os.path.basename(self.device)
        with open(self.queue + "scheduler", encoding="ascii") as file:
            cases.need("mq-deadline" in file.read(), "the scheduler mq-deadline")
        # A loop device keeps its queue when it gets another file.
        for name in ("scheduler", "nomerges"):
            self.addCleanup(self.put, name, self.one(name))
        # What a user may have chosen, tunables of the scheduler included.
        self.put("scheduler", "mq-deadline")
        self.put("nomerges", "0")
        self.put("iosched/read_expire", "200")
        self.put("nr_requests", "200")
        self.before = self.everything()
        self.assertEqual(self.before["iosched/read_expire"], "200")

    def put(self, name, value):
        with open(self.queue + name, "w", encoding="ascii") as file:
            file.write(value)

    def one(self, name):
        with open(self.queue + name, encoding="ascii") as file:
            return file.read().strip().split("[")[-1].split("]")[0]

    def everything(self):
        found = {}
        names = list(ASKED) + ["nr_requests", "wbt_lat_usec"]
        if os.path.isdir(self.queue + "iosched"):
            names += ["iosched/" + name for name in os.listdir(self.queue + "iosched")]
        for name in names:
            try:
                with open(self.queue + name, encoding="ascii") as file:
                    found[name] = file.read().strip()
            except OSError:
                found[name] = None
        return found

    def chosen(self):
        return {name: self.one(name) for name in ASKED}

    def words(self, *more):
        return ["replay", SAMPLE, "--target", self.device, "--overwrite", "--yes", *FLAGS, *more]

    def prepare_words(self, *more):
        return ["prepare", "--state", "used", "--span", "8M", "--round", "50ms", "--rounds", "5", "--target",
                self.device, "--overwrite", "--yes", *more]

    def phase(self, journal):
        if not os.path.exists(journal):
            return None
        with open(journal, encoding="ascii") as file:
            return json.load(file)["phase"]

    def start(self, words=None, hangup=signal.SIG_DFL):
        """A replay of half a minute, or what `words` name, once its settings are in force."""
        # One that is killed leaves its temporary folder.
        environment = {**os.environ, "TMPDIR": self.scratch.folder}
        running = subprocess.Popen([blktape.PROGRAM, *(words or self.words())], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=environment,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, hangup))
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        end = time.monotonic() + 60
        while self.chosen() != ASKED:
            self.assertIsNone(running.poll(), "it ended before it had set anything")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        return running

    def test_they_hold_while_it_runs_are_in_the_result_and_put_back_at_the_end(self):
        result = self.scratch.path("result.tape")
        figures = blktape.as_json(*self.words("--max", "--to", "1s", "-o", result))
        name = os.path.basename(self.device)
        self.assertEqual(figures["settings_changed"], [
            name + " scheduler: mq-deadline -> none", name + " nomerges: 0 -> 2", name + " read_ahead_kb: 128 -> 0"])
        self.assertEqual(figures["settings_not_restored"], [])
        self.assertEqual(self.everything(), self.before)
        target = blktape.as_json("info", result)["header"]["replay"]["targets"][0]
        self.assertEqual((target["scheduler"], target["nomerges"]), ("none", 2))

    def test_they_are_put_back_when_it_is_interrupted_or_loses_its_terminal(self):
        for how in (signal.SIGINT, signal.SIGHUP):
            running = self.start()
            running.send_signal(how)
            self.assertEqual(running.wait(60), 3)
            self.assertEqual(self.everything(), self.before)

    def test_under_nohup_it_outlives_its_terminal(self):
        running = self.start(hangup=signal.SIG_IGN)
        with open("/proc/%d/status" % running.pid, encoding="ascii") as file:
            ignored = next(line for line in file if line.startswith("SigIgn:"))
        self.assertEqual(int(ignored.split()[1], 16) >> (signal.SIGHUP - 1) & 1, 1)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(60), 3)

    def test_they_are_put_back_when_it_fails(self):
        refused = blktape.run(*self.words("--set", "scheduler=no-such"))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("[mq-deadline]", refused.stderr)
        self.assertEqual(self.everything(), self.before)
        # The result cannot be made, which shows after the queue was set.
        failed = blktape.run(*self.words("-o", "/nonexistent/result.tape"))
        self.assertEqual(failed.returncode, 1)
        self.assertEqual(self.everything(), self.before)

    def test_after_a_kill_the_next_verb_puts_them_back_on_any_target(self):
        for verb in (["replay", SAMPLE, "--engine", "null", "--max"],
                     ["score", SAMPLE, "--target", "/nonexistent"],
                     ["prepare", "--state", "fresh", "--target", "/nonexistent"]):
            with self.subTest(verb[0]):
                running = self.start()
                running.kill()
                running.wait()
                self.assertEqual(self.chosen(), ASKED)
                said = blktape.run(*verb).stderr
                self.assertIn("restored %s scheduler: none -> mq-deadline" % os.path.basename(self.device), said)
                self.assertEqual(self.everything(), self.before)
                self.assertNotIn("restored", blktape.run(*verb).stderr)

    def test_of_a_preparation_they_are_told_and_put_back_at_the_end(self):
        # 3 where the rounds of this machine differ too much for a steady state.
        figures = blktape.as_json(*self.prepare_words("--idle", "0s", *FLAGS), accept=(0, 3))
        name = os.path.basename(self.device)
        self.assertEqual(figures["settings_changed"], [
            name + " scheduler: mq-deadline -> none", name + " nomerges: 0 -> 2", name + " read_ahead_kb: 128 -> 0"])
        self.assertEqual(figures["settings_not_restored"], [])
        self.assertEqual(len(figures["rounds_iops"]), 5)
        self.assertEqual(self.everything(), self.before)

    def test_of_a_preparation_they_hold_until_it_ends_and_are_put_back_when_it_is_stopped(self):
        journal = self.scratch.path("progress.json")
        running = self.start(self.prepare_words("--idle", "1h", "--resume", journal, *FLAGS))
        end = time.monotonic() + 60
        while self.phase(journal) != "idle":
            self.assertIsNone(running.poll(), "it ended before it was idle")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assertEqual(self.chosen(), ASKED)
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(60), 1)
        self.assertEqual(self.everything(), self.before)
        # Rounds that were measured with other settings are not gone on with.
        refused = blktape.run(*self.prepare_words("--idle", "0s", "--resume", journal))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("belongs to another preparation", refused.stderr)

    def test_after_a_kill_of_a_preparation_the_next_puts_them_back(self):
        running = self.start(self.prepare_words("--idle", "1h", *FLAGS))
        running.kill()
        running.wait()
        self.assertEqual(self.chosen(), ASKED)
        said = blktape.run("prepare", "--state", "fresh", "--target", "/nonexistent").stderr
        self.assertIn("restored %s scheduler: none -> mq-deadline" % os.path.basename(self.device), said)
        self.assertEqual(self.everything(), self.before)

    def test_one_replay_at_a_time_sets_a_disk(self):
        running = self.start()
        second = blktape.run("replay", SAMPLE, "--target", self.device, "--skip-writes", "--set", "nomerges=1")
        self.assertEqual(second.returncode, 1)
        self.assertIn("another run of blktape (process %d)" % running.pid, second.stderr)
        self.assertEqual(self.chosen(), ASKED)
        running.send_signal(signal.SIGTERM)
        running.wait(60)
        self.assertEqual(self.everything(), self.before)

    def test_what_they_are_not_for_is_refused(self):
        image = self.scratch.image("scratch.img", 1 << 30)
        for words, says in ((["--target", image], "is a file"), (["--engine", "null"], "the null engine touches none")):
            refused = blktape.run("replay", SAMPLE, *words, "--set", "nomerges=2")
            self.assertEqual(refused.returncode, 2)
            self.assertIn(says, refused.stderr)
        for words, says in ((["--target", image, "--set", "nomerges=2"], "is a file"),
                            (["--target", self.device, "--set", "nomerges=3"], "nomerges is 0")):
            refused = blktape.run("prepare", "--state", "used", "--overwrite", "--yes", *words)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(says, refused.stderr)
        self.assertEqual(os.stat(image).st_blocks, 0, "nothing was written")


if __name__ == "__main__":
    cases.main()
