"""Recording the very disk that holds the trace: what the recorder itself causes is not in the trace.

BLKTAPE_OWN_DISK_SECONDS=600 makes it ten minutes:
  bazel test --test_env=BLKTAPE_OWN_DISK_SECONDS=600 --test_timeout=1000 //tests/live:own_disk_test
"""

import mmap
import os
import time
import unittest

from tests.harness import blktape, bpf_losses, cases, devices
from tests.live import recording

SECONDS = float(os.environ.get("BLKTAPE_OWN_DISK_SECONDS", "10"))
WRITES = 23
FILE_BYTES = WRITES * 4096


class OwnDiskTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)

    def check(self, rows, own, losses):
        """Nothing of `own`, the recorder's threads; all that this test wrote at the end; and nothing of the kernel's
        as long as nobody else did anything: a sync(2) anywhere on this machine flushes this disk too, and what the
        kernel writes after it may be on its account."""
        foreign_ns = None
        for row in rows:
            at_ns = int(row["queue_ns"] or row["issue_ns"])
            self.assertFalse(row["process"].startswith("blktape"), row)
            self.assertNotIn(row["pid"], own, row)
            if row["pid"] not in ("", "0") and not row["process"].startswith(("jbd2/", "kworker/")):
                foreign_ns = at_ns
            self.assertTrue(foreign_ns is not None and at_ns - foreign_ns < 40_000_000_000, row)
        written = [row for row in rows if row["pid"] == str(os.getpid()) and row["op"] == "write"]
        self.assertLessEqual({row["bytes"] for row in written}, {"4096"})
        self.assertLessEqual(len(written), WRITES)
        self.assertGreaterEqual(len(written), max(1, WRITES - losses.unissued))

    @staticmethod
    def write_blocks(path):
        """Over what is written already, past the page cache: WRITES requests of 4 KiB and no other."""
        with mmap.mmap(-1, 4096) as buffer:
            fd = os.open(path, os.O_WRONLY | os.O_DIRECT)
            for number in range(WRITES):
                os.pwrite(fd, buffer, 4096 * number)
            os.close(fd)

    def test_of_a_disk_under_the_trace_only_what_others_do_is_recorded(self):
        sources = ["tracefs"]
        if os.path.exists("/sys/kernel/btf/vmlinux"):
            sources.append("bpf")
        disks = {}
        for source in sources:
            disk = self.scratch.loop(64 << 20)
            disks[source] = disk, self.scratch.mount_ext4(disk, "under-" + source)
            with open(os.path.join(disks[source][1], "foreign"), "wb") as file:
                file.write(os.urandom(FILE_BYTES))
        # What mkfs and mount left is somebody else's.
        os.sync()
        recorders = []
        for source, (disk, folder) in disks.items():
            recorder = recording.Recording(self, disk, source=source, trace=os.path.join(folder, "a.tape"),
                                           statuses=bpf_losses.STATUSES)
            recorders.append(recorder)
            recorder.__enter__()
        time.sleep(SECONDS)
        for recorder, (_, folder) in zip(recorders, disks.values()):
            own = os.listdir("/proc/%d/task" % recorder.pid)
            self.write_blocks(os.path.join(folder, "foreign"))
            recorder.stop()
            losses = bpf_losses.Losses(self, recorder.trace)
            self.check(blktape.dump(recorder.trace, accept=bpf_losses.STATUSES), own, losses)
            losses.check_no_others()
            info = losses.info
            # There was something to leave out: the trace itself is on that disk.
            self.assertGreater(int(info["summary"]["own_excluded"]), 0, recorder.said)
            print("%s: %s I/Os of its own left out in %.0f s" % (
                info["header"]["source"], info["summary"]["own_excluded"], SECONDS), flush=True)


if __name__ == "__main__":
    cases.main()
