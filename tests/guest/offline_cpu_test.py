"""A CPU that was never on, or goes off while its ring holds events, neither ends a recording nor keeps it busy."""

import unittest

from tests.guest import guest
from tests.harness import blktape, cases

IDLE_SECONDS = 8

SCRIPT = r"""
cat /sys/devices/system/cpu/possible > /out/possible
work() {  # COUNT, on the CPU that goes off
  taskset 2 /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=$1 iflag=direct
}
blktape record --source tracefs -d nvme0n1 -o /out/a.tape 2> /out/log & recorder=$!
until grep -q recording /out/log; do sleep 0.1; done
cat /proc/$recorder/stat > /out/before
sleep %d
cat /proc/$recorder/stat > /out/after
work 10
echo 0 > /sys/devices/system/cpu/cpu1/online
sleep 3
echo 1 > /sys/devices/system/cpu/cpu1/online
work 20
sleep 3
kill -TERM $recorder
attempt end wait $recorder
""" % IDLE_SECONDS


def cpu_seconds(stat):
    """User and system time of a process, by /proc/PID/stat (fields 14 and 15, in hundredths)."""
    fields = stat.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


class OfflineCpuTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def test_recording_goes_on_and_sleeps(self):
        result = guest.Guest(programs=["dd", "taskset"], cpus="2,maxcpus=4",
                             disks=[guest.Disk("nvme", 64 << 20)]).run(SCRIPT).check()
        self.assertEqual(result.text("possible").strip(), "0-3", "the guest has no CPU that was never on")
        self.assertEqual(result.rc("end"), 0, result.text("log"))
        reads = [row for row in blktape.dump(result.path("a.tape")) if row["process"] == "dd"]
        self.assertEqual(len(reads), 30)
        busy = cpu_seconds(result.text("after")) - cpu_seconds(result.text("before"))
        self.assertLess(busy, IDLE_SECONDS / 4, "a recorder of an idle disk takes a CPU")


if __name__ == "__main__":
    cases.main()
