"""A replay is the recorded work and nothing else: whoever records it sees the same requests."""

import collections
import os
import unittest

from tests.harness import blktape, cases, devices, direct_io

WORKER = os.path.realpath(direct_io.__file__)
SPAN = direct_io.MIXED_SPAN_BYTES


def sequence(rows):
    return [(row["op"], row["lba"], row["bytes"]) for row in rows]


def conflicting(rows):
    """Pairs, in the order of the plan, that overlap and of which one writes."""
    rows = [row for row in rows if row["op"] != "flush"]
    for number, later in enumerate(rows):
        for earlier in rows[:number]:
            apart = int(later["lba"]) - int(earlier["lba"])
            if -int(later["bytes"]) < 512 * apart < int(earlier["bytes"]) and "write" in (earlier["op"], later["op"]):
                yield earlier, later


def one_at_a_time(rows):
    rows = sorted(rows, key=lambda row: int(row["issue_ns"]))
    return all(int(later["issue_ns"]) >= int(earlier["complete_ns"]) for earlier, later in zip(rows, rows[1:]))


class ReplayTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)
        self.trace = self.scratch.path("recorded.tape")

    def record_mixed(self, count=600, seed=3, pause_ms=0):
        device = self.scratch.loop(SPAN)
        blktape.ok("record", "--device", device, "--settle", "1s", "-o", self.trace, "--", "/usr/bin/python3", WORKER, device, "mixed",
                   str(seed), str(count), str(pause_ms))
        # One at a time, so that each is one request.
        self.assertGreaterEqual(len(blktape.dump(self.trace)), count)

    def rerecord(self, *replay_words):
        """Replays on a new device while recording that; returns the records of the replay alone."""
        target = self.scratch.loop(SPAN)
        again = self.scratch.path("again%d.tape" % len(os.listdir(self.scratch.folder)))
        result = self.scratch.path("result%d.tape" % len(os.listdir(self.scratch.folder)))
        blktape.ok("record", "--device", target, "--settle", "0s", "-o", again, "--", os.path.realpath(blktape.PROGRAM), "replay",
                   self.trace, "--target", target, "--overwrite", "--yes", "-o", result, *replay_words)
        return blktape.dump(again), result

    def check_same(self, *replay_words):
        # Recorded one at a time, with pauses that leave a slower device room to be done as well.
        self.record_mixed(pause_ms=3)
        want = sequence(blktape.dump(self.trace))
        again, result = self.rerecord(*replay_words)
        # Looking at a device before a replay reads some of it: what counts begins with the first I/O
        # of the trace and runs to the end.
        got, replayed = sequence(again), blktape.dump(result)
        if one_at_a_time(replayed):
            extra = got[:len(got) - len(want)]
            self.assertEqual(got[len(extra):], want)
        else:
            # The machine stood still for a moment. What conflicts with an I/O that is out waits for it
            # then, and flushes that wait are served by one: the same, in nearly the same order.
            self.assertNotIn("--max", replay_words)
            rest = collections.Counter(io for io in got if io[0] != "flush")
            rest.subtract(io for io in want if io[0] != "flush")
            self.assertGreaterEqual(min(rest.values()), 0)
            extra = rest.elements()
        self.assertTrue(all(op == "read" for op, _, _ in extra), extra)
        self.assertEqual(sequence(replayed), want)
        return result

    def test_timed_by_io_uring_is_the_same_sequence(self):
        self.check_same("--engine", "io_uring")

    def test_by_io_uring_with_a_submission_thread_is_the_same_sequence(self):
        result = self.check_same("--engine", "io_uring", "--sqpoll", "--max")
        plan = blktape.as_json("info", result)["header"]["replay"]
        self.assertEqual(plan["engine"], "io_uring")
        self.assertIn("submission thread", plan["engine_mode"])

    def test_by_several_threads_it_is_the_same_requests_and_conflicts_keep_their_order(self):
        self.record_mixed(count=1500)
        recorded = blktape.dump(self.trace)
        want = collections.Counter(sequence(recorded))
        for words in (["--queue-depth", "16"], ["--speed", "20", "--idle-cap", "1ms"]):
            again, result = self.rerecord("--threads", "2", *words)
            replayed = blktape.dump(result)
            self.assertEqual(sequence(replayed), sequence(recorded))
            missing = want - collections.Counter(sequence(again))
            # Flushes that wait together are served by one.
            self.assertEqual({io for io in missing if io[0] != "flush"}, set())
            conflicts = list(conflicting(replayed))
            self.assertGreater(len(conflicts), 100)
            self.assertEqual([pair for pair in conflicts if int(pair[0]["complete_ns"]) > int(pair[1]["issue_ns"])], [])
            plan = blktape.as_json("info", result)["header"]["replay"]
            self.assertIn("threads=2", plan["rule"])

    def test_modes_of_io_uring_are_refused_where_they_cannot_be(self):
        self.record_mixed(count=20)
        target = self.scratch.loop(SPAN)
        polled = blktape.run("replay", self.trace, "--target", target, "--overwrite", "--yes", "--engine", "io_uring",
                             "--iopoll")
        self.assertEqual(polled.returncode, 1)
        self.assertIn(target + ": polled completion: the driver has no poll queues", polled.stderr)
        for mode in ("--iopoll", "--sqpoll"):
            for engine in ("auto", "libaio"):
                refused = blktape.run("replay", self.trace, "--target", target, "--overwrite", "--yes", "--engine",
                                      engine, mode)
                self.assertEqual(refused.returncode, 2)
                self.assertIn("--engine io_uring", refused.stderr)

    def test_timed_by_libaio_is_the_same_sequence(self):
        self.check_same("--engine", "libaio")

    def test_at_max_speed_is_the_same_sequence(self):
        # One I/O at a time was recorded, and so it is replayed, however fast.
        self.check_same("--max")

    def test_a_desktop_session_replayed_timed_issues_the_same_in_the_same_order(self):
        device = self.scratch.loop(1 << 30)
        point = self.scratch.mount_ext4(device)
        blktape.ok("record", "--device", device, "--settle", "1s", "-o", self.trace, "--", "/usr/bin/python3",
                   os.path.realpath("tools/desktop_workload.py"), point, "--scale", "0.15", "--pace", "0.1")
        target = self.scratch.loop(1 << 30)
        result = self.scratch.path("result.tape")
        figures = blktape.as_json("replay", self.trace, "--target", target, "--overwrite", "--yes", "--idle-cap",
                                  "25ms", "-o", result)
        recorded = blktape.as_json("analyze", self.trace)
        self.assertEqual(figures["issued"], figures["completed"])
        self.assertEqual(figures["errors"], 0)
        # The flushes that the kernel derived from flagged writes are left to the kernel again.
        replayed = blktape.as_json("analyze", result)
        for key in ("reads", "writes", "discards", "read_bytes", "write_bytes"):
            self.assertEqual(replayed[key], recorded[key], key)
        self.assertGreater(recorded["reads"], 100)
        self.assertGreater(recorded["flushes"], 50)

    def test_on_a_scratch_file_without_root_rights_to_devices(self):
        self.record_mixed(count=200)
        target = self.scratch.image("scratch.img", SPAN)
        figures = blktape.as_json("replay", self.trace, "--target", target, "--overwrite", "--yes", "--max")
        self.assertEqual(figures["issued"], len(blktape.dump(self.trace)))
        self.assertEqual(figures["errors"], 0)

    def test_a_replay_with_time_takes_the_recordings_time(self):
        self.record_mixed(count=300)
        recorded = blktape.as_json("analyze", self.trace)
        self.assertGreater(recorded["duration_ns"], 0)
        figures = blktape.as_json("replay", self.trace, "--target", self.scratch.loop(SPAN), "--overwrite", "--yes",
                                  "--speed", "0.25")
        # Four times slower, never faster than that. How late it is, benchmarks tell.
        self.assertGreaterEqual(figures["wall_ns"], 3.9 * recorded["duration_ns"])


if __name__ == "__main__":
    cases.main()
