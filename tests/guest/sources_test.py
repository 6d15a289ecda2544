"""On a plain kernel with an NVMe disk: three live sources and the blktrace program agree."""

import collections
import csv
import io
import re
import unittest

from tests.guest import guest, workload
from tests.harness import cases

DISK = guest.Disk("nvme", 512 << 20)

def rows(result, name):
    return list(csv.DictReader(io.StringIO(result.text(name))))


def key(row):
    return row["op"], row["lba"], int(row["bytes"])


def as_blktrace_tells(row):
    """Version 7 of its format has no word for write zeroes: they are writes of that size."""
    op, lba, size = key(row)
    return ("write" if op == "write_zeroes" else op), lba, size


class SourcesTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def run_guest(self, script, modules=("ext4",), programs=()):
        return guest.Guest(programs=[*workload.PROGRAMS, *programs],
                           modules=list(modules), disks=[DISK], timeout_s=300).run(workload.SCRIPT + script).check()

    def check_same_records(self, first, second, key=key):
        differences = collections.Counter(map(key, first))
        differences.subtract(map(key, second))
        self.assertEqual({what: count for what, count in differences.items() if count}, {})
        # Requests that one CPU issued are in one order in both; across CPUs stamps of one moment may tie.
        for cpu in sorted({row["cpu"] for row in first}):
            issued = [sorted((row for row in side if row["cpu"] == cpu), key=lambda row: int(row["issue_ns"]))
                      for side in (first, second)]
            self.assertEqual([key(row) for row in issued[0]], [key(row) for row in issued[1]], "CPU " + cpu)
        self.assertGreater(len(first), 300)

    def test_all_three_sources_at_once_give_the_same_records(self):
        result = self.run_guest(r"""
            blktape record --device nvme0n1 --settle 0s --source tracefs -o /tmp/tracefs.tape -- \
              blktape record --device nvme0n1 --settle 0s --source bpf -o /tmp/bpf.tape -- \
              blktape record --device nvme0n1 --settle 0s --source blktrace -o /tmp/blktrace.tape -- sh /workload
            for source in tracefs bpf blktrace; do
              blktape dump --csv /tmp/$source.tape > /out/$source.csv
              blktape info /tmp/$source.tape > /out/$source.info
              ls -l /tmp/$source.tape
            done
        """)
        tracefs, bpf, blktrace = (rows(result, name + ".csv") for name in ("tracefs", "bpf", "blktrace"))
        self.check_same_records(tracefs, blktrace, as_blktrace_tells)
        self.check_same_records(tracefs, bpf)
        ops = {row["op"] for row in tracefs}
        self.assertLessEqual({"read", "write", "discard", "flush", "write_zeroes"}, ops)
        for records in (tracefs, bpf, blktrace):
            direct = [row for row in records if row["op"] == "write" and int(row["lba"]) in range(16000, 16128)]
            self.assertEqual([int(row["bytes"]) for row in direct], [4096] * 16)
            for row in direct:
                self.assertIn("fua", row["flags"], row)
            trimmed = [row for row in records if row["op"] == "discard" and
                       131072 <= int(row["lba"]) < 131072 + 16384 and int(row["bytes"]) <= 8 << 20]
            self.assertGreaterEqual(sum(int(row["bytes"]) for row in trimmed), 8 << 20)
            if records is blktrace:
                continue
            zeroed = [row for row in records if row["op"] == "write_zeroes" and row["process"] == "blkdiscard"]
            self.assertEqual(sum(int(row["bytes"]) for row in zeroed), 2 << 20)

    def test_the_blktrace_program_sees_what_we_see(self):
        result = self.run_guest(r"""
            mkdir /tmp/bt
            blktrace -d /dev/nvme0n1 -D /tmp/bt -o disk -b 1024 -n 8 > /out/blktrace.log 2>&1 &
            pid=$!
            i=0
            until [ -e /sys/kernel/debug/block/nvme0n1/trace0 ]; do
              sleep 0.1; i=$((i + 1)); [ $i -lt 100 ]
            done
            blktape record --device nvme0n1 --settle 0s --source tracefs -o /tmp/ours.tape -- sh /workload
            kill -INT $pid
            wait $pid || true
            blkparse -q -i disk -D /tmp/bt -f '%a %d %S %N\n' -o /out/blkparse.txt > /dev/null
            blktape import /tmp/bt/disk.blktrace.* -o /tmp/imported.tape
            blktape dump --csv /tmp/ours.tape > /out/ours.csv
            blktape dump --csv /tmp/imported.tape > /out/imported.csv
        """, programs=["blktrace", "blkparse"])
        ours = rows(result, "ours.csv")
        imported = rows(result, "imported.csv")
        self.check_same_records(ours, imported, as_blktrace_tells)
        issued = [line.split() for line in result.text("blkparse.txt").splitlines()]
        data = [(int(sector), int(size)) for action, kind, sector, size in issued
                if action == "D" and int(size) > 0 and re.search("[RW]", kind) and "D" not in kind]
        mine = [(int(row["lba"]), int(row["bytes"])) for row in ours if row["op"] in ("read", "write")]
        zeroed = [(int(row["lba"]), int(row["bytes"])) for row in ours if row["op"] == "write_zeroes"]
        # blkparse 6.1 has no letter for write zeroes and shows them as writes.
        self.assertEqual(sorted(data), sorted(mine + zeroed))

    def test_auto_takes_one_that_works_and_says_which(self):
        result = self.run_guest(r"""
            blktape record --device nvme0n1 --settle 0s -o /tmp/auto.tape -- sh /workload
            blktape info /tmp/auto.tape > /out/info
            blktape dump --csv /tmp/auto.tape > /out/auto.csv
        """)
        self.assertRegex(result.text("info"), r"source +(bpf|tracefs)\b")
        self.assertGreater(len(rows(result, "auto.csv")), 300)


if __name__ == "__main__":
    cases.main()
