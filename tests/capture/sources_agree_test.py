"""One session recorded at once by BPF programs, which pair requests in the kernel, and by tracefs, of which
the assembler pairs the events: the same records, in the same order of issue."""

import collections
import os
import signal
import subprocess
import time
import unittest

from tests.harness import blktape, bpf_losses, cases, devices


APART_NS = 50_000_000


class SourcesAgreeTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)

    def start(self, source, device):
        """A recording that runs until stopped; returns once its trace exists."""
        trace = self.scratch.path(source + ".tape")
        process = subprocess.Popen(
            [blktape.PROGRAM, "record", "--source=" + source, "--device", device, "-o", trace],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        for _ in range(200):
            if os.path.exists(trace + ".partial"):
                return process, trace
            if process.poll() is not None:
                output = process.stdout.read()
                cases.need("type information" not in output and "not let" not in output, output)
                self.fail(output)
            time.sleep(0.05)
        self.fail("no recording after 10 s")

    def stop(self, process, trace):
        """Ends it; gives its records in order of issue, and what is lost."""
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        self.assertIn(process.returncode, bpf_losses.STATUSES, output)
        losses = bpf_losses.Losses(self, trace)
        losses.check_no_others()
        rows = blktape.dump(trace, accept=bpf_losses.STATUSES)
        return sorted(rows, key=lambda row: int(row["issue_ns"])), losses

    def workload(self, device):
        mount = self.scratch.mount_ext4(device)
        data = os.urandom(1 << 20)
        for i in range(6):
            with open(os.path.join(mount, "file%d" % i), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("1")
        for i in range(6):
            with open(os.path.join(mount, "file%d" % i), "rb") as file:
                self.assertEqual(file.read(), data)
        fd = os.open(os.path.join(mount, "sync"), os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
        for _ in range(20):
            os.write(fd, data[:4096])
        os.close(fd)
        os.unlink(os.path.join(mount, "file0"))
        os.sync()
        subprocess.run(["fstrim", mount], check=True)
        subprocess.run(["umount", mount], check=True)

    def test_bpf_and_tracefs_give_the_same_records(self):
        device = self.scratch.loop(96 << 20)
        bpf = self.start("bpf", device)
        tracefs = self.start("tracefs", device)
        time.sleep(0.5)
        self.workload(device)
        time.sleep(1.5)
        by_bpf, losses = self.stop(*bpf)
        by_tracefs, _ = self.stop(*tracefs)

        self.assertGreater(len(by_bpf), 60)
        ops = collections.Counter(row["op"] for row in by_bpf)
        for op in ("read", "write", "discard", "flush"):
            self.assertGreater(ops[op], 0, op)
        self.assertLessEqual(len(by_tracefs) - len(by_bpf), losses.unissued)
        losses.check_completed(by_bpf)

        # Record by record: those of one place pair up in order of issue.
        partners = collections.defaultdict(list)
        for row in by_tracefs:
            partners[(row["op"], row["flags"], row["lba"], row["bytes"])].append(row)
        for row in by_bpf:
            near = partners[(row["op"], row["flags"], row["lba"], row["bytes"])]
            self.assertTrue(near, row)
            # Both look at the same moment, one after the other; nobody may be preempted in between for long.
            while len(near) > 1 and int(row["issue_ns"]) - int(near[0]["issue_ns"]) > APART_NS:
                near.pop(0)  # kept from bpf; how many, is compared above
            other = near.pop(0)
            for stamp in ("queue_ns", "issue_ns") + (("complete_ns",) if row["complete_ns"] else ()):
                self.assertEqual(row[stamp] == "", other[stamp] == "", (stamp, row, other))
            for stamp in ("issue_ns", "complete_ns"):
                if row[stamp]:
                    self.assertLess(abs(int(row[stamp]) - int(other[stamp])), APART_NS, (stamp, row, other))
            if row["complete_ns"]:
                self.assertEqual(row["error"], other["error"], (row, other))
            self.assertEqual(row["pid"], other["pid"], (row, other))
            if row["queue_ns"] != "":
                self.assertEqual(row["process"], other["process"], (row, other))


if __name__ == "__main__":
    cases.main()
