"""The machine sleeps while it is recorded: no I/O is lost or lasts that long, and the trace says where it slept."""

import re
import unittest

from tests.guest import guest
from tests.harness import blktape, cases

SOURCES = ("bpf", "tracefs", "blktrace")
SECOND_NS = 1_000_000_000

SCRIPT = r"""
# CLOCK_MONOTONIC, in ns
now() { sed -n 's/^now at \([0-9]*\) nsecs.*/\1/p' /proc/timer_list; }
echo 1 > /sys/power/pm_debug_messages
for source in bpf tracefs blktrace; do
  blktape record --device nvme0n1 --source $source -o /out/$source.tape 2> /out/$source.log &
  pids="${pids:-} $!"
  until grep -q recording /out/$source.log; do sleep 0.1; done
done
/timed_writes /dev/nvme0n1 1000 > /out/said & writer=$!
sleep 1
kill -0 $writer
cat /proc/uptime > /out/uptime
now > /out/slept
echo mem > /sys/power/state
now >> /out/slept
cat /proc/uptime >> /out/uptime
kill -0 $writer
wait $writer
kill -TERM $pids
wait $pids
attempt replay blktape replay /out/tracefs.tape --target /dev/vda --overwrite --yes -o /out/replayed.tape
"""


class SuspendTest(unittest.TestCase):
    def test_a_suspend_is_a_moment_with_a_mark(self):
        cases.need(not guest.missing(), guest.missing())
        result = guest.Guest(
            disks=[guest.Disk("nvme", 64 << 20), guest.Disk("virtio", 64 << 20)],
            files={"timed_writes": "tests/guest/timed_writes"}, suspends=True).run(SCRIPT).check()
        before_ns, after_ns = map(int, result.text("slept").split())
        slept_s = re.search(r"Timekeeping suspended for ([0-9.]+) seconds", result.text("dmesg")).group(1)
        self.assertGreater(float(slept_s), 1)
        # The clock of the trace did not run meanwhile, the kernel's uptime (to 10 ms) did.
        up_before_s, up_after_s = (float(line.split()[0]) for line in result.text("uptime").splitlines())
        self.assertGreater((up_after_s - up_before_s) - (after_ns - before_ns) / 1e9, float(slept_s) - 0.02)
        said = [tuple(map(int, line.split()[1:])) for line in result.text("said").splitlines()]
        self.assertEqual(len(said), 1000)
        self.assertTrue(said[0][2] < before_ns and after_ns < said[-1][1])
        for source in SOURCES:
            with self.subTest(source):
                trace = result.path(source + ".tape")
                info = blktape.as_json("info", trace)
                self.assertEqual(info["losses"], [])
                [mark] = info["marks"]
                self.assertEqual(mark["kind"], "SUSPEND")
                # To the ms in the kernel's log; clocks read one after the other differ by a little.
                self.assertLess(abs(int(mark["value_ns"]) - float(slept_s) * 1e9), 20e6)
                self.assertGreater(int(mark["at_ns"]), before_ns)
                self.assertLess(int(mark["at_ns"]), after_ns + SECOND_NS)
                self.assertRegex(blktape.ok("info", trace).stdout,
                                 r"(?m)^mark +suspend of \d\.\d+ s, \d+\.?\d* \w+ after the beginning$")
                rows = [row for row in blktape.dump(trace) if row["process"] in ("timed_writes", "")]
                self.assertEqual([(row["op"], int(row["lba"])) for row in rows], [("write", lba) for lba, _, _ in said])
                for row, (_, begin_ns, end_ns) in zip(rows, said):
                    stamps = [begin_ns, *(int(row[name]) for name in ("queue_ns", "issue_ns", "complete_ns")), end_ns]
                    self.assertEqual(stamps, sorted(stamps))
        with self.subTest("replay"):
            self.assertEqual(result.rc("replay"), 0, result.text("replay.err"))
            arrivals, dues = ([int(row["queue_ns"]) for row in blktape.dump(result.path(name))]
                              for name in ("tracefs.tape", "replayed.tape"))
            self.assertEqual([ns - dues[0] for ns in dues], [ns - arrivals[0] for ns in arrivals])


if __name__ == "__main__":
    cases.main()
