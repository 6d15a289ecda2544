"""The whole path on one small session: record, info, analyze, dump, replay, score."""

import os
import shutil
import unittest

from tests.harness import blktape, cases, devices, direct_io


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        devices.need_devices()
        devices.private_mounts()

    def test_from_the_kernel_to_a_score(self):
        scratch = devices.Scratch(self)
        device, target = scratch.loop(1 << 30), scratch.loop(1 << 30)
        point = scratch.mount_ext4(device)
        trace = scratch.path("session.tape")
        blktape.ok("record", "--device", device, "--settle", "1s", "-o", trace, "--", "/usr/bin/python3",
                   os.path.realpath("tools/desktop_workload.py"), point, "--device", device, "--scale", "0.3", "--pace",
                   "0.15")

        figures = blktape.as_json("analyze", trace)
        rows = blktape.dump(trace)
        self.assertEqual(figures["ios"], len(rows))
        for op, key in (("read", "reads"), ("write", "writes"), ("discard", "discards"), ("flush", "flushes")):
            self.assertEqual(figures[key], sum(row["op"] == op for row in rows), key)
        for op, key in (("read", "read_bytes"), ("write", "write_bytes")):
            self.assertEqual(figures[key], sum(int(row["bytes"]) for row in rows if row["op"] == op), key)
        self.assertEqual(sum(entry["count"] for entry in figures["size_histogram"]),
                         figures["reads"] + figures["writes"])
        self.assertTrue(figures["finished_cleanly"])
        self.assertEqual(figures["lost_events"], 0)
        self.assertGreater(figures["discards"], 0)

        report = blktape.run("score", trace, "--target", target, "--overwrite", "--yes", "--cycles", "3", "--pause", "0s",
                             "--json", "-o", scratch.path("score"))
        # 3 where this machine was too late for a valid run: all figures must be there all the same.
        self.assertIn(report.returncode, (0, 3), report.stderr)
        score = blktape.json.loads(report.stdout)
        self.assertEqual(score["valid"], report.returncode == 0)
        self.assertEqual(bool(score["invalid_reasons"]), not score["valid"])
        self.assertLess(0, score["ci_low"])
        self.assertLessEqual(score["ci_low"], score["score"])
        self.assertLessEqual(score["score"], score["ci_high"])
        self.assertEqual(score["state"], "as-is")
        self.assertGreater(score["storage_wait_s_per_workday"], 0)
        self.assertRegex(score["trace_hash"], "^[0-9a-f]{64}$")

    def test_what_a_person_reads_stays_below_80_columns_without_blanks_at_the_end(self):
        scratch = devices.Scratch(self)
        device = scratch.loop(64 << 20)
        trace, partial, result = scratch.path("a.tape"), scratch.path("b.tape.partial"), scratch.path("max.tape")
        blktape.ok("record", "--device", device, "--settle", "1s", "-o", trace, "--", "/usr/bin/python3",
                   os.path.realpath(direct_io.__file__), device, "mixed", "1", "300")
        shutil.copy(trace, partial)
        on_device = ["--target", device, "--overwrite", "--yes"]
        for words in (["record", "--device", device, "--settle", "0s", "-o", scratch.path("c.tape"), "--", "true"],
                      ["info", trace], ["analyze", trace], ["dump", trace], ["recover", partial],
                      ["import", "tests/capture/data/nvme0n1.blktrace.0.zst",
                       "tests/capture/data/nvme0n1.blktrace.1.zst", "-o", scratch.path("d.tape")],
                      ["info", scratch.path("d.tape")], ["analyze", scratch.path("d.tape")],
                      ["dump", scratch.path("d.tape")],
                      ["prepare", "--state", "used", "--round", "100ms", "--rounds", "5", "--idle", "0s", *on_device],
                      ["prepare", "--state", "fresh", "--trace", trace, "--idle", "0s", *on_device],
                      ["replay", trace, "--dry-run", *on_device], ["replay", trace, "--max", "-o", result, *on_device],
                      ["replay", trace, "--engine", "simulated"], ["info", result], ["analyze", result],
                      ["score", trace, "--cycles", "2", "--pause", "0s", "-o", scratch.path("score"), *on_device]):
            with self.subTest(" ".join(words[:2])):
                ended = blktape.run(*words)
                # 3: what this machine spoils (a late host, no steady state) is no matter of layout.
                self.assertIn(ended.returncode, (0, 3), ended.stderr)
                self.assertNotEqual(ended.stdout, "")
                for line in ended.stdout.replace(scratch.folder, "").splitlines():
                    self.assertLess(len(line), 80, line)
                    self.assertEqual(line, line.rstrip())


if __name__ == "__main__":
    cases.main()
