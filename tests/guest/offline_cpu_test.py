"""A CPU that was never on, or goes off while its ring holds events, neither ends a recording nor keeps it busy."""

import unittest

from tests.guest import guest
from tests.harness import blktape, cases

IDLE_SECONDS = 8

SOURCES = ("tracefs", "bpf", "blktrace")

SCRIPT = r"""
cat /sys/devices/system/cpu/possible > /out/possible
work() {  # COUNT, on the CPU that goes off
  taskset 2 /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=$1 iflag=direct
}
look() {  # WHEN: at each recorder
  for source in $sources; do
    eval pid=\$pid_$source
    { cat /proc/$pid/stat; grep ^voluntary /proc/$pid/status; } > /out/$source.$1
  done
}
sources="tracefs bpf blktrace"
for source in $sources; do
  blktape record --source $source -d nvme0n1 -o /out/$source.tape 2> /out/$source.log & eval pid_$source=$!
  until grep -q recording /out/$source.log; do sleep 0.1; done
done
sleep 3
look before
sleep %d
look after
work 10
echo 0 > /sys/devices/system/cpu/cpu1/online
sleep 3
echo 1 > /sys/devices/system/cpu/cpu1/online
work 20
sleep 3
for source in $sources; do
  eval pid=\$pid_$source
  kill -TERM $pid
  attempt $source wait $pid
done
""" % IDLE_SECONDS


def cpu_seconds(stat):
    """User and system time of a process, by /proc/PID/stat (fields 14 and 15, in hundredths)."""
    fields = stat.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def wakes(text):
    return int(text.split("voluntary_ctxt_switches:")[1])


class OfflineCpuTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def test_recording_goes_on_and_sleeps(self):
        result = guest.Guest(programs=["dd", "taskset"], cpus="2,maxcpus=4",
                             disks=[guest.Disk("nvme", 64 << 20)]).run(SCRIPT).check()
        self.assertEqual(result.text("possible").strip(), "0-3", "the guest has no CPU that was never on")
        for source in SOURCES:
            with self.subTest(source):
                self.assertEqual(result.rc(source), 0, result.text(source + ".log"))
                before, after = (result.text(source + when) for when in (".before", ".after"))
                self.assertLess(cpu_seconds(after) - cpu_seconds(before), IDLE_SECONDS / 4)
                if source != "blktrace":  # which has nothing to wake it by at once
                    woken = wakes(after) - wakes(before)
                    print("%s: woken %d times in %d s" % (source, woken, IDLE_SECONDS))
                    self.assertLess(woken, 3 * IDLE_SECONDS)
                rows = [row for row in blktape.dump(result.path(source + ".tape")) if row["process"] == "dd"]
                self.assertEqual([int(row["lba"]) for row in rows],
                                 [8 * i for i in range(10)] + [8 * i for i in range(20)])


if __name__ == "__main__":
    cases.main()
