"""One session recorded at once by BPF programs, which pair requests in the kernel, and by tracefs, of which
the assembler pairs the events: the same records, in the same order of issue."""

import collections
import os
import signal
import subprocess
import time
import unittest

from tests.harness import blktape, bpf_losses, cases, devices, known_disk


APART_NS = 50_000_000
# Both stamp one event, one right after the other: a step of the kernel in between would be tens of microseconds.
MEDIAN_APART_NS = 10_000


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

    def record(self, device, work):
        """Records `work` by both; gives the records of each in order of issue, and what bpf lost."""
        bpf = self.start("bpf", device)
        tracefs = self.start("tracefs", device)
        time.sleep(0.5)
        work()
        time.sleep(1.5)
        by_bpf, losses = self.stop(*bpf)
        by_tracefs, _ = self.stop(*tracefs)
        return by_bpf, by_tracefs, losses

    @staticmethod
    def crowd(device):
        """24 readers at once, many more than the disk takes requests; each place is read once."""
        subprocess.run(["fio", "--name=crowd", "--filename=" + device, "--rw=read", "--bs=64k", "--size=3712k",
                        "--offset_increment=3712k", "--numjobs=24", "--thread", "--ioengine=psync", "--direct=1",
                        "--output=/dev/null"], check=True)

    def set_queue(self, device, name, value):
        path = "/sys/block/%s/queue/%s" % (os.path.basename(device), name)
        with open(path, encoding="ascii") as file:
            before = file.read().strip().split("[")[-1].split("]")[0]

        def put(text):
            with open(path, "w", encoding="ascii") as file:
                file.write(text)

        put(value)
        self.addCleanup(put, before)

    def test_all_three_times_agree_where_requests_wait_for_a_tag(self):
        # A disk whose every read takes a millisecond: of one that answers at once nobody waits for a tag.
        disk = known_disk.KnownDisk(self.scratch.path("slow"), 96, (1000, 1000, 1000, 0, 4), self.addCleanup)
        device = disk.device
        self.set_queue(device, "nr_requests", "4")
        by_bpf, by_tracefs, losses = self.record(device, lambda: self.crowd(device))
        self.assertGreater(len(by_bpf), 1300)
        self.assertLessEqual(len(by_tracefs) - len(by_bpf), losses.unissued)
        # The place alone tells them apart: each is read once. Of all readers only some wait, and for long: whoever
        # is awake takes a free tag again before those that sleep.
        reads = {row["lba"]: row for row in by_tracefs if row["bytes"] == "65536"}
        waited = {lba for lba, row in reads.items() if int(row["issue_ns"]) - int(row["queue_ns"]) > 500_000}
        self.assertGreater(len(waited), 100, "too few waited for a tag")
        apart = collections.defaultdict(list)
        for row in by_bpf:
            if row["bytes"] != "65536" or row["lba"] not in waited:
                continue
            for stamp in ("queue_ns", "issue_ns", "complete_ns"):
                if row[stamp]:
                    apart[stamp].append(abs(int(row[stamp]) - int(reads[row["lba"]][stamp])))
        for stamp in ("queue_ns", "issue_ns", "complete_ns"):
            differences = sorted(apart[stamp])
            self.assertGreater(len(differences), 0.95 * len(waited), stamp)
            self.assertLess(differences[len(differences) // 2], MEDIAN_APART_NS, stamp)

    def test_bpf_and_tracefs_give_the_same_records(self):
        device = self.scratch.loop(96 << 20)
        by_bpf, by_tracefs, losses = self.record(device, lambda: self.workload(device))

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
