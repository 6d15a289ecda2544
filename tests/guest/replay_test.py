"""What a replay sends to a drive is what the trace holds: recorded once more below it and compared."""

import collections
import json
import unittest

from tests.guest import guest, workload
from tests.harness import cases

FILES = {"sample.tape": "tests/data/sample.tape"}


def interrupts(table):
    """How many the rows of /proc/interrupts count."""
    return sum(int(word) for row in table.splitlines() for word in row.split()[1:] if word.isdigit())


def wanted(records, fua):
    """The requests that a drive must see, in order: (op, LBA, bytes, whether with FUA).

    As the kernel documents it (block/writeback_cache_control): PREFLUSH is a flush before the write;
    FUA is one after it where the drive has no FUA. The flushes that the block layer under the
    recording made of such writes are left to the one above the target. A record has FUA where the
    write was queued with it.
    """
    requests = []
    for row in records:
        flags = row["flags"].split("+")
        if row["op"] == "flush":
            if "derived" not in flags:
                requests.append(("flush", 0, 0, False))
            continue
        durable = row["op"] == "write" and "fua" in flags
        if row["op"] == "write" and "preflush" in flags:
            requests.append(("flush", 0, 0, False))
        requests.append((row["op"], int(row["lba"]), int(row["bytes"]), durable))
        if durable and not fua:
            requests.append(("flush", 0, 0, False))
    return requests


def seen(records):
    """The same of what was recorded below a replay, in the order of issue."""
    requests = []
    for row in sorted(records, key=lambda row: int(row["issue_ns"] or 0)):
        if row["op"] == "flush":
            requests.append(("flush", 0, 0, False))
        else:
            requests.append((row["op"], int(row["lba"]), int(row["bytes"]), "fua" in row["flags"].split("+")))
    return requests


def joined(requests, like):
    """`requests` with the pieces put together that the kernel made of those in `like`, one for one."""
    whole, rest = [], collections.deque(requests)
    for op, lba, size, fua in like:
        done = 0
        while rest and done < size and rest[0][0] == op and rest[0][1] == lba + done // 512 and rest[0][3] == fua:
            done += rest.popleft()[2]
        if op == "flush" and rest and rest[0][0] == "flush":
            rest.popleft()
            done = size
        elif done != size:
            break
        whole.append((op, lba, done, fua))
    return whole, list(rest)


def changed_bytes(requests):
    """By operation, of those that change what lies on the drive."""
    total = collections.Counter()
    for op, _, size, _ in requests:
        if op not in ("read", "flush"):
            total[op] += size
    return total


class ReplayGuestTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def check_sequence(self, want, got):
        # By which the engine finds out whether the driver may block.
        self.assertEqual(got[0], ("read", 0, 4096, False))
        whole, rest = joined(got[1:], want)
        at = len(whole)
        self.assertEqual(whole, want[:at])
        self.assertEqual(at, len(want), "then, instead of %s: %s" % (want[at:at + 3], rest[:5]))
        # What is left is the final sweep over everything that was written.
        self.assertEqual({op for op, _, _, _ in rest}, {"read"})

    def test_completions_are_polled_for_where_the_driver_has_poll_queues(self):
        result = guest.Guest(files=FILES, disks=[guest.Disk("nvme", 1 << 30)]).run(r"""
            rmmod nvme
            insmod /modules/nvme.ko poll_queues=1
            while [ ! -b /dev/nvme0n1 ]; do sleep 0.1; done
            cat /sys/block/nvme0n1/queue/io_poll > /out/io_poll
            grep nvme /proc/interrupts > /out/before
            attempt polled blktape record --device nvme0n1 --source tracefs --settle 0s -o /tmp/polled.tape -- \
              blktape replay /sample.tape --target /dev/nvme0n1 --engine io_uring --iopoll --queue-depth 1 --verify \
              --overwrite --yes --json -o /tmp/polled.result
            grep nvme /proc/interrupts > /out/after
            blktape info --json /tmp/polled.result > /out/info
            blktape dump --csv /tmp/polled.tape > /out/polled.csv
            blktape dump --csv /sample.tape > /out/sample.csv
        """).check()
        self.assertEqual(result.text("io_poll").strip(), "1")
        self.assertIn("polled completion", json.loads(result.text("info"))["header"]["replay"]["engine_mode"])
        self.assertEqual(result.rc("polled"), 0, result.text("polled.err") + result.text("polled.out"))
        figures, _ = json.JSONDecoder().raw_decode(result.text("polled.out"))
        self.assertEqual(figures["issued"], figures["completed"])
        self.assertEqual((figures["errors"], figures["verify_mismatches"]), (0, 0))
        transfers = sum(row["op"] in ("read", "write") for row in result.rows("sample.csv"))
        self.assertGreater(transfers, 1000)
        self.assertLess(interrupts(result.text("after")) - interrupts(result.text("before")), transfers / 2)
        # Two reads before: one proves that polling works, by the other the engine finds out whether the
        # driver may block.
        got = seen(result.rows("polled.csv"))
        self.assertEqual(got[0], got[1])
        self.check_sequence(wanted(result.rows("sample.csv"), fua=True), got[1:])

    def test_a_drive_sees_what_the_trace_holds(self):
        result = guest.Guest(programs=workload.PROGRAMS, modules=workload.MODULES, files=FILES, disks=[
            guest.Disk("nvme", 512 << 20), guest.Disk("nvme", 1 << 30), guest.Disk("virtio", 512 << 20),
        ]).run(workload.SCRIPT + r"""
            again() {  # NAME TRACE DISK OPTION...: replays and records what arrives at the disk
              name=$1
              trace=$2
              disk=$3
              shift 3
              attempt $name blktape record --device $disk --source tracefs --settle 0s -o /tmp/$name.tape -- \
                blktape replay $trace --target /dev/$disk --engine io_uring --verify --overwrite --yes --json \
                -o /tmp/$name.result "$@"
              blktape dump --csv /tmp/$name.tape > /out/$name.csv
              blktape info /tmp/$name.tape > /out/$name.info
            }
            blktape record --device nvme0n1 --source tracefs --settle 0s -o /tmp/work.tape -- sh /workload
            blktape dump --csv /tmp/work.tape > /out/work.csv
            blktape dump --csv /sample.tape > /out/sample.csv
            again single /tmp/work.tape nvme1n1 --queue-depth 1
            again timed /tmp/work.tape nvme1n1 --idle-cap 5ms
            again without_fua /tmp/work.tape vda --queue-depth 1
            again sampled /sample.tape nvme1n1 --queue-depth 1
            again deep /sample.tape nvme1n1 --queue-depth 32
        """).check()
        work, sample = result.rows("work.csv"), result.rows("sample.csv")
        # Something of everything.
        flags = {flag for row in work for flag in row["flags"].split("+")}
        self.assertLessEqual({"fua", "preflush", "derived"}, flags)
        self.assertLessEqual({"read", "write", "discard", "flush", "write_zeroes"}, {row["op"] for row in work})
        for name in ("single", "timed", "without_fua", "sampled", "deep"):
            with self.subTest(name):
                self.assertEqual(result.rc(name), 0, result.text(name + ".err"))
                self.assertIn("whole, nothing lost", result.text(name + ".info"))
                # What the recorder says of itself follows.
                figures, _ = json.JSONDecoder().raw_decode(result.text(name + ".out"))
                self.assertEqual(figures["issued"], figures["completed"])
                self.assertEqual((figures["errors"], figures["verify_mismatches"]), (0, 0))
                self.assertGreater(figures["verified_sectors"], 1000)
        with self.subTest("sequence of our own work"):
            self.check_sequence(wanted(work, fua=True), seen(result.rows("single.csv")))
        with self.subTest("sequence on a drive without FUA"):
            self.check_sequence(wanted(work, fua=False), seen(result.rows("without_fua.csv")))
        with self.subTest("sequence of the sample"):
            self.check_sequence(wanted(sample, fua=True), seen(result.rows("sampled.csv")))
        with self.subTest("on time"):
            # Several are in flight: the same requests in whatever order; and of flushes that wait
            # for one in flight the block layer makes one.
            want = collections.Counter(wanted(work, fua=True))
            got = collections.Counter(seen(result.rows("timed.csv")))
            self.assertEqual({what for what in want - got if what[0] != "flush"}, set())
            self.assertEqual({what for what in got - want if what[0] != "read"}, set())
        with self.subTest("deep"):
            # A run of discards is out at a time, which this kernel takes by ioctl alone.
            want = changed_bytes(wanted(sample, fua=True))
            self.assertGreater(want["discard"], 0)
            self.assertEqual(changed_bytes(seen(result.rows("deep.csv"))), want)


if __name__ == "__main__":
    cases.main()
