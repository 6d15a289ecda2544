"""The recording service under a running systemd: what its unit allows is enough for it, whatever the source."""

import json
import os
import unittest

from tests.guest import guest, systemd
from tests.harness import blktape, cases

FILES = {
    "etc/systemd/system/blktape-record.service": "packaging/systemd/blktape-record.service",
    "etc/blktape/record.conf": "packaging/systemd/record.conf",
}
FOLDER = "/var/lib/blktape"

PRELUDE = r"""
service=blktape-record
mkfs.ext4 -q /dev/vda
mkdir -p /var/lib/blktape
mount -t ext4 /dev/vda /var/lib/blktape
folder=/var/lib/blktape
property() { systemctl show -p $1 --value $service; }
drop_in() {  # LINE...: in [Service]
  mkdir -p /etc/systemd/system/$service.service.d
  { echo '[Service]'; printf '%s\n' "$@"; } > /etc/systemd/system/$service.service.d/test.conf
  systemctl daemon-reload
}
configure() {  # WHAT OPTIONS
  printf 'BLKTAPE_WHAT="%s"\nBLKTAPE_FOLDER=%s\nBLKTAPE_OPTIONS="%s"\n' "$1" $folder "$2" > /etc/blktape/record.conf
}
work() { /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=$1 iflag=direct 2> /dev/null; }
log() { journalctl --no-pager -o cat -u $service --cursor-file=/tmp/cursor > /out/$1.log; }
keep() { mkdir /out/$1; mv $folder/*.tape* /out/$1; }
journalctl -b -n 0 --cursor-file=/tmp/cursor > /dev/null
"""

AS_SHIPPED = PRELUDE + r"""
systemctl start $service
attempt status systemctl --no-pager status $service
grep -E '^(CapEff|NoNewPrivs)' /proc/$(property MainPID)/status > /out/rights
work 100
attempt figures blktape record --status
systemctl reload $service
until ls $folder/*.tape; do sleep 0.1; done
work 50
systemctl stop $service
property Result > /out/result
log shipped
keep shipped
"""

EACH_SOURCE = PRELUDE + r"""
each() {  # NAME WHAT OPTIONS
  configure "$2" "$3"
  # So many starts in so short a time are no fault here.
  systemctl reset-failed $service 2> /dev/null || true
  systemctl start $service
  work 20
  systemctl stop $service
  log $1
  keep $1
}
for source in auto bpf tracefs blktrace; do each $source --all "--source $source"; done
umount /sys/kernel/tracing /sys/kernel/debug
for source in auto bpf tracefs blktrace; do each unmounted_$source --all "--source $source"; done
mkfs.ext4 -q /dev/nvme0n1
mount -t ext4 /dev/nvme0n1 /home
each mount "--mount /home" ""
"""

CRASHES = PRELUDE + r"""
restarted() { until [ $(property NRestarts) = $1 ] && [ $(property ActiveState) = active ]; do sleep 0.2; done; }
drop_in RestartSec=1 WatchdogSec=5
systemctl start $service
work 100
# What is older than a second is on the disk.
sleep 2
kill -KILL $(property MainPID)
restarted 1
work 70
sleep 2
kill -STOP $(property MainPID)
restarted 2
work 30
systemctl stop $service
log crashes
keep crashes
"""

# An eighth of it is room for rings of one MiB a CPU, but not for larger ones beside them.
LITTLE_MEMORY = PRELUDE + r"""
drop_in MemoryMax=40M WatchdogSec=0
configure "--device nvme0n1" "--source bpf --buffer 1M"
systemctl start $service
kill -STOP $(property MainPID)
work 40000
kill -CONT $(property MainPID)
sleep 3
work 20
sleep 1
blktape record --status --json > /out/figures
property NRestarts > /out/restarts
systemctl stop $service
keep memory
"""


class ServiceTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())
        cases.need(not systemd.missing(), systemd.missing())

    def run_guest(self, script, **options):
        return guest.Guest(systemd=True, files=FILES, programs=["dd", "mkfs.ext4", "mount"], modules=["ext4"], disks=[
            guest.Disk("nvme", 256 << 20), guest.Disk("virtio", 64 << 20)], **options).run(script).check()

    def traces(self, result, name):
        """The traces of a part, in the order of their names, which is that of time, and what was left beside them."""
        names = sorted(os.listdir(result.path(name)))
        return ([result.path(os.path.join(name, one)) for one in names if one.endswith(".tape")],
                [one for one in names if not one.endswith(".tape")])

    def reads(self, trace):
        rows = blktape.dump(trace, accept=(0, 3))
        return [int(row["lba"]) for row in rows if row["process"] == "dd" and row["op"] == "read"]

    def test_it_records_from_start_to_stop_and_says_little(self):
        result = self.run_guest(AS_SHIPPED)
        self.assertRegex(result.text("status.out"), r"Active: active \(running\)")
        self.assertRegex(result.text("status.out"), 'Status: "recording into %s/' % FOLDER)
        # Of its rights it has kept that to read its BPF counters.
        self.assertEqual(result.text("rights").split(), ["CapEff:", "%016x" % (1 << 39), "NoNewPrivs:", "1"])
        self.assertEqual(result.rc("figures"), 0, result.text("figures.err"))
        self.assertIn("by bpf into " + FOLDER, result.text("figures.out"))
        self.assertEqual(result.text("result").strip(), "success")
        traces, rest = self.traces(result, "shipped")
        self.assertEqual(rest, [])
        self.assertEqual([self.reads(trace) for trace in traces],
                         [list(range(0, 800, 8)), list(range(0, 400, 8))])
        own = [line for line in result.text("shipped.log").splitlines() if "blktape-record.service" not in line]
        expected = ["^recording nvme0n1 .* by bpf into ", "^finished ", r"tape: [\d,]+ I/Os in ", "^  by bpf, ",
                    "^  [0-9,]+ I/Os of the recorder itself left out$", "^  the last of 2 traces$", "^  nothing was lost$"]
        self.assertEqual(len(own), len(expected), own)
        for line, pattern in zip(own, expected):
            self.assertRegex(line, pattern)

    def test_every_source_works_within_the_rights_of_the_unit(self):
        result = self.run_guest(EACH_SOURCE)
        for mounted in ("", "unmounted_"):
            for source in ("auto", "bpf", "tracefs", "blktrace"):
                with self.subTest(mounted + source):
                    log = result.text(mounted + source + ".log")
                    self.assertNotIn("not used", log)
                    self.assertNotIn("stay allowed", log)
                    self.assertNotIn("rights of root are kept", log)
                    self.assertIn(" by %s into " % source.replace("auto", "bpf"), log)
                    traces, rest = self.traces(result, mounted + source)
                    self.assertEqual(([self.reads(trace) for trace in traces], rest), ([list(range(0, 160, 8))], []))
        with self.subTest("a folder that the unit lets it only read"):
            self.assertIn("recording nvme0n1 ", result.text("mount.log"))
            self.assertEqual([self.reads(trace) for trace in self.traces(result, "mount")[0]], [list(range(0, 160, 8))])

    def test_it_comes_back_after_a_crash_and_after_a_hang_and_recovers_what_was_left(self):
        result = self.run_guest(CRASHES)
        self.assertIn("Watchdog timeout", result.text("crashes.log"))
        traces, rest = self.traces(result, "crashes")
        self.assertEqual(rest, [])
        self.assertEqual([self.reads(trace) for trace in traces],
                         [list(range(0, 8 * count, 8)) for count in (100, 70, 30)])
        self.assertEqual([blktape.as_json("info", trace, accept=(0, 3)).get("recovered", False) for trace in traces],
                         [True, True, False])

    def test_rings_do_not_grow_beyond_what_the_unit_allows(self):
        result = self.run_guest(LITTLE_MEMORY)
        [figures] = json.loads(result.text("figures"))
        self.assertGreater(figures["lost_events"], 0)
        self.assertEqual(figures["buffer_bytes_per_cpu"], 1 << 20)
        self.assertEqual(result.text("restarts").strip(), "0", "it was killed")
        [trace], rest = self.traces(result, "memory")
        self.assertEqual(rest, [])
        self.assertEqual(self.reads(trace)[-20:], list(range(0, 160, 8)))


if __name__ == "__main__":
    cases.main()
