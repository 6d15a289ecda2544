"""A device that takes bios and has no requests (zram here, as dm and md): each direct I/O is one record, by
every source that works on this machine."""

import glob
import os
import unittest

from tests.harness import blktape, bpf_losses, cases, devices, direct_io
from tests.live import recording

SIZE_BYTES = 64 << 20


class BioBasedTest(recording.BySource, unittest.TestCase):
    def setUp(self):
        cases.need(os.geteuid() == 0, "live recording needs root")
        self.zram = devices.Zram(self, SIZE_BYTES)
        self.assertEqual(glob.glob("/sys/block/zram%d/mq/*" % self.zram.number), [])

    def check(self, source):
        ios = direct_io.transfers(seed=1, count=500, span_bytes=SIZE_BYTES)
        with recording.Recording(self, self.zram.path, source=source, statuses=bpf_losses.STATUSES) as recorder:
            direct_io.perform(self.zram.path, ios)
        losses = bpf_losses.Losses(self, recorder.trace)
        losses.check_no_others()
        dumped = blktape.dump(recorder.trace, accept=bpf_losses.STATUSES)
        rows = [row for row in dumped if int(row["pid"]) == os.getpid()]
        losses.check_whole(rows, ios, direct_io.of_row)
        for row in rows:
            # There is no driver below that would be issued a request.
            self.assertEqual(row["issue_ns"], "")
            self.assertLessEqual(int(row["queue_ns"]), int(row["complete_ns"] or row["queue_ns"]))


if __name__ == "__main__":
    cases.main()
