"""A finished live recording is as small as what `import` makes of the same I/Os: it was written in frames of less than
a second each, and rewritten when it ended."""

import glob
import time
import unittest

from tests.harness import blktape, bpf_losses, cases, devices, direct_io
from tests.live import recording

SIZE_BYTES = 64 << 20


class FinishedSizeTest(recording.BySource, unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)

    def check(self, source):
        disk = self.scratch.loop(SIZE_BYTES)
        ios = direct_io.transfers(seed=1, count=9000, span_bytes=SIZE_BYTES)
        with recording.Recording(self, disk, source=source, statuses=bpf_losses.STATUSES) as recorder:
            # So slowly that the recorder writes a frame of each part.
            for first in range(0, len(ios), 600):
                direct_io.perform(disk, ios[first:first + 600])
                time.sleep(0.5)
        events, imported = self.scratch.path(source), self.scratch.path(source + ".tape")
        blktape.ok("export", recorder.trace, "--to", "blktrace", "-o", events, accept=bpf_losses.STATUSES)
        blktape.ok("import", *sorted(glob.glob(events + ".blktrace.*")), "-o", imported, accept=bpf_losses.STATUSES)
        live, foreign = (blktape.as_json("info", trace, accept=bpf_losses.STATUSES)
                         for trace in (recorder.trace, imported))
        print("%s: %d I/Os, bytes each live and imported:" % (source, live["records"]),
              live["bytes_per_record"], foreign["bytes_per_record"])
        self.assertGreater(live["records"], 8900)
        self.assertAlmostEqual(foreign["records"], live["records"], delta=live["records"] // 200)
        self.assertLess(live["bytes_per_record"], 1.03 * foreign["bytes_per_record"])


if __name__ == "__main__":
    cases.main()
