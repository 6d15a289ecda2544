"""The guest boots, sees its disks, runs our binary, and reports a failing script as such."""

import unittest

from tests.guest import guest
from tests.harness import cases


class BootTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def test_disks_of_both_kinds_are_there_and_blktape_runs(self):
        result = guest.Guest(disks=[guest.Disk("nvme", 64 << 20, "tape1"), guest.Disk("virtio", 32 << 20)]).run("""
            blktape --version > /out/version
            cat /sys/block/nvme0n1/size /sys/block/vda/size > /out/sizes
            cat /sys/block/nvme0n1/device/serial > /out/serial
            ls /sys/kernel/tracing/events/block > /out/events
            attempt refused blktape no-such-verb
        """).check()
        self.assertRegex(result.text("version"), r"^blktape \d+\.\d+\.\d+\n$")
        self.assertEqual(result.text("sizes").split(), ["131072", "65536"])
        self.assertEqual(result.text("serial").strip(), "tape1")
        self.assertIn("block_rq_complete", result.text("events").split())
        self.assertEqual(result.rc("refused"), 2)

    def test_a_failing_script_is_reported_with_what_it_said(self):
        result = guest.Guest().run("echo so far; echo oh >&2; exit 7")
        self.assertEqual(result.status, 7)
        self.assertEqual(result.text("stdout"), "so far\n")
        with self.assertRaisesRegex(AssertionError, "oh"):
            result.check()


if __name__ == "__main__":
    cases.main()
