"""Recording the very disk that holds the trace: what the recorder itself causes is not in the trace.

BLKTAPE_OWN_DISK_SECONDS=600 makes it ten minutes:
  bazel test --test_env=BLKTAPE_OWN_DISK_SECONDS=600 --test_timeout=1000 //tests/live:own_disk_test
"""

import os
import time
import unittest

from tests.harness import blktape, bpf_losses, cases, devices
from tests.live import recording

SECONDS = float(os.environ.get("BLKTAPE_OWN_DISK_SECONDS", "10"))


class OwnDiskTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)

    def check(self, rows):
        """Nothing of the recorder's own, and nothing at all as long as nobody else does anything: a sync(2) anywhere
        on this machine flushes this disk too, and what the kernel writes after it may be on its account."""
        foreign_ns = None
        for row in rows:
            at_ns = int(row["queue_ns"] or row["issue_ns"])
            self.assertFalse(row["process"].startswith("blktape"), row)
            if not row["process"].startswith(("jbd2/", "kworker/")):
                foreign_ns = at_ns
            self.assertTrue(foreign_ns is not None and at_ns - foreign_ns < 40_000_000_000, row)

    def test_an_idle_disk_under_the_trace_gives_an_empty_trace(self):
        sources = ["tracefs"]
        if os.path.exists("/sys/kernel/btf/vmlinux"):
            sources.append("bpf")
        disks = {}
        for source in sources:
            disk = self.scratch.loop(64 << 20)
            disks[source] = disk, self.scratch.mount_ext4(disk, "under-" + source)
        # What mkfs and mount left is somebody else's.
        os.sync()
        recorders = []
        for source, (disk, folder) in disks.items():
            recorder = recording.Recording(self, disk, source=source, trace=os.path.join(folder, "a.tape"),
                                           statuses=bpf_losses.STATUSES)
            recorders.append(recorder)
            recorder.__enter__()
        time.sleep(SECONDS)
        for recorder in recorders:
            recorder.stop()
            self.check(blktape.dump(recorder.trace, accept=bpf_losses.STATUSES))
            losses = bpf_losses.Losses(self, recorder.trace)
            losses.check_no_others()
            info = losses.info
            # There was something to leave out: the trace itself is on that disk.
            self.assertGreater(int(info["summary"]["own_excluded"]), 0, recorder.said)
            print("%s: %s I/Os of its own left out in %.0f s" % (
                info["header"]["source"], info["summary"]["own_excluded"], SECONDS), flush=True)


if __name__ == "__main__":
    cases.main()
