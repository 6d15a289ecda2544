"""Recording on a plain kernel (the distribution's, no lockdown): what is in the way, what is left, what vanishes."""

import json
import os
import re
import unittest

from tests.guest import guest
from tests.harness import blktape, cases

EACH_IO_TAKES = """
jiffies() { awk '$1 == "jiffies:" { print $2; exit }' /proc/timer_list; }
each_io_takes() {  # SECONDS: from here on, on disks of scsi_debug
  # It counts in jiffies; a second has 250 on Debian, 1000 on Ubuntu.
  begin=$(jiffies)
  sleep 1
  echo $(($1 * ($(jiffies) - begin))) > /sys/bus/pseudo/drivers/scsi_debug/delay
}
"""


class RecorderGuestTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def run_guest(self, script, **options):
        options.setdefault("disks", [guest.Disk("nvme", 64 << 20), guest.Disk("virtio", 64 << 20)])
        options.setdefault("programs", ["dd"])
        return guest.Guest(**options).run(script).check()

    def test_a_disk_that_is_being_traced_is_explained(self):
        result = self.run_guest("""
            blktrace -d /dev/nvme0n1 -o - > /dev/null & peer=$!
            until [ -d /sys/kernel/debug/block/nvme0n1 ]; do sleep 0.2; done
            attempt busy blktape record -d nvme0n1 --source blktrace -o /out/a.tape --duration 1s
            attempt beside blktape record -d nvme0n1 --source tracefs -o /out/b.tape --duration 1s
            kill -INT $peer
            wait $peer || true
        """, programs=["blktrace"])
        self.assertEqual(result.rc("busy"), 1)
        self.assertIn("nvme0n1 is being traced by another blktrace", result.text("busy.err"))
        self.assertIn("try:  --source=tracefs", result.text("busy.err"))
        self.assertEqual(result.rc("beside"), 0)

    def test_what_a_killed_recorder_left_in_the_kernel_is_removed_by_the_next(self):
        result = self.run_guest("""
            blktape record -d nvme0n1 --source blktrace -o /out/a.tape 2> /out/one & one=$!
            blktape record -d vda --source tracefs -o /out/b.tape 2> /out/two & two=$!
            until grep -q recording /out/one && grep -q recording /out/two; do sleep 0.2; done
            kill -KILL $one $two
            wait $one || true
            wait $two || true
            ls /sys/kernel/debug/block/nvme0n1 /sys/kernel/tracing/instances > /out/left
            attempt again blktape record -d nvme0n1 --source blktrace -o /out/c.tape --duration 1s
            attempt again2 blktape record -d vda --source tracefs -o /out/d.tape --duration 1s
            ls /sys/kernel/debug/block/nvme0n1 > /out/after
            ls /sys/kernel/tracing/instances >> /out/after
        """)
        self.assertIn("trace0", result.text("left"))
        self.assertIn("blktape-", result.text("left"))
        self.assertEqual((result.rc("again"), result.rc("again2")), (0, 0))
        self.assertEqual(re.findall("trace|blktape-", result.text("after")), [])

    def test_what_the_relay_dropped_is_what_the_kernel_counted(self):
        result = self.run_guest("""
            blktape record -d nvme0n1 --source blktrace --buffer 32k -o /out/a.tape 2> /out/one & one=$!
            until grep -q recording /out/one; do sleep 0.2; done
            kill -STOP $one
            /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=512 count=3000 iflag=direct
            cat /sys/kernel/debug/block/nvme0n1/dropped > /out/dropped
            kill -CONT $one
            sleep 1
            /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=512 count=20 iflag=direct
            sleep 1
            cat /sys/kernel/debug/block/nvme0n1/dropped >> /out/dropped
            kill -TERM $one
            attempt end wait $one
            attempt report blktape analyze /out/a.tape --json
        """)
        dropped = [int(line) for line in result.text("dropped").split()]
        self.assertGreater(dropped[0], 5000)
        self.assertEqual(result.rc("end"), 3)
        losses = {loss["reason"]: loss["count"] for loss in json.loads(result.text("report.out"))["losses"]}
        self.assertEqual(losses["relay_drop"], dropped[1])

    def test_a_disk_pulled_while_it_is_recorded_ends_its_part(self):
        disk_of = {"bpf": "nvme0n1", "tracefs": "nvme1n1", "blktrace": "nvme2n1"}
        result = self.run_guest("".join("""
            blktape record -d DISK -d vda --source SOURCE -o /out/SOURCE.tape 2> /out/SOURCE.log & one=$!
            until grep -q recording /out/SOURCE.log; do sleep 0.2; done
            /usr/bin/dd if=/dev/DISK of=/dev/null bs=4k count=10 iflag=direct
            echo 1 > /sys/block/DISK/device/device/remove
            until grep -q 'DISK is gone' /out/SOURCE.log; do sleep 0.2; done
            /usr/bin/dd if=/dev/vda of=/dev/null bs=4k count=10 iflag=direct
            sleep 1
            kill -TERM $one
            attempt SOURCE wait $one
        """.replace("SOURCE", source).replace("DISK", disk) for source, disk in disk_of.items()),
            disks=[*[guest.Disk("nvme", 64 << 20)] * 3, guest.Disk("virtio", 64 << 20)])
        for source, pulled in disk_of.items():
            with self.subTest(source):
                self.assertEqual(result.rc(source), 3)
                # It tells by its status that a disk is missing from some time on.
                rows = blktape.dump(result.path(source + ".tape"), accept=(3,))
                for disk in (pulled, "vda"):
                    reads = [row for row in rows if row["device"] == disk and row["process"] == "dd"]
                    self.assertEqual(len(reads), 10, disk)
                self.assertFalse(os.path.exists(result.path(source + ".tape.partial")))

    def test_what_was_in_flight_at_either_end_is_told_as_that(self):
        result = self.run_guest(EACH_IO_TAKES + """
            insmod /modules/scsi_debug.ko dev_size_mb=16 delay=0
            until [ -e /dev/sda ]; do sleep 0.1; done
            each_io_takes 8
            /usr/bin/dd if=/dev/sda of=/dev/null bs=4k count=1 skip=100 iflag=direct & before=$!
            sleep 1
            for source in bpf tracefs; do
              blktape record -d sda --source $source -o /out/$source.tape 2> /out/$source.log &
              pids="${pids:-} $!"
            done
            until grep -q recording /out/bpf.log && grep -q recording /out/tracefs.log; do sleep 0.1; done
            kill -0 $before
            wait $before
            /usr/bin/dd if=/dev/sda of=/dev/null bs=4k count=1 skip=200 iflag=direct & behind=$!
            sleep 2
            kill -TERM $pids
            wait $pids
            kill -0 $behind
        """, modules=["sd_mod", ("scsi_debug", None)], disks=[])
        for source in ("bpf", "tracefs"):
            with self.subTest(source):
                trace = result.path(source + ".tape")
                # Nothing is missing: the recording is whole.
                losses = {loss["reason"]: loss["count"] for loss in blktape.as_json("info", trace)["losses"]}
                self.assertEqual(losses, {"IN_FLIGHT_AT_START": 1, "IN_FLIGHT_AT_END": 1})
                rows = [(row["op"], row["lba"], row["complete_ns"]) for row in blktape.dump(trace)]
                self.assertEqual(rows, [("read", "1600", "")])

    def test_what_a_device_of_bios_has_not_completed_is_told_as_in_flight(self):
        result = self.run_guest("""
            # It has no disk below, so it is the one that is recorded; suspended it keeps what it gets.
            echo "0 131072 zero" | dmsetup create still
            for source in bpf tracefs; do
              blktape record -d dm-0 --source $source -o /out/$source.tape 2> /out/$source.log &
              pids="${pids:-} $!"
            done
            until grep -q recording /out/bpf.log && grep -q recording /out/tracefs.log; do sleep 0.1; done
            /usr/bin/dd if=/dev/mapper/still of=/dev/null bs=4k count=3 iflag=direct
            dmsetup suspend --nolockfs --noflush still
            /usr/bin/dd if=/dev/mapper/still of=/dev/null bs=8k count=1 skip=100 iflag=direct & behind=$!
            sleep 2
            kill -TERM $pids
            wait $pids
            kill -0 $behind
            dmsetup resume still
            wait $behind
        """, programs=["dd", "dmsetup"], modules=["dm_mod", "dm_zero"], disks=[])
        for source in ("bpf", "tracefs"):
            with self.subTest(source):
                trace = result.path(source + ".tape")
                losses = {loss["reason"]: loss["count"] for loss in blktape.as_json("info", trace)["losses"]}
                self.assertEqual(losses, {"IN_FLIGHT_AT_END": 1})
                rows = [row for row in blktape.dump(trace) if row["process"] == "dd"]
                self.assertEqual([(row["op"], row["lba"], row["bytes"], row["complete_ns"] == "") for row in rows],
                                 [("read", str(8 * i), "4096", False) for i in range(3)] +
                                 [("read", "1600", "8192", True)])

    def test_a_completion_too_late_to_be_of_before_the_recording_is_a_loss(self):
        result = self.run_guest(EACH_IO_TAKES + """
            insmod /modules/scsi_debug.ko dev_size_mb=16 delay=0
            until [ -e /dev/sda ]; do sleep 0.1; done
            echo 120 > /sys/block/sda/device/timeout
            # The recorder takes 30 seconds for the longest there is.
            each_io_takes 40
            /usr/bin/dd if=/dev/sda of=/dev/null bs=4k count=1 skip=100 iflag=direct & before=$!
            sleep 1
            for source in bpf tracefs; do
              blktape record -d sda -d vda --source $source -o /out/$source.tape 2> /out/$source.log &
              pids="${pids:-} $!"
            done
            until grep -q recording /out/bpf.log && grep -q recording /out/tracefs.log; do sleep 0.1; done
            /usr/bin/dd if=/dev/vda of=/dev/null bs=4k count=1 iflag=direct
            wait $before
            sleep 1
            kill -TERM $pids
            for pid in $pids; do attempt end-$pid wait $pid; done
            cat /out/end-*.rc > /out/statuses
        """, modules=["sd_mod", ("scsi_debug", None)], disks=[guest.Disk("virtio", 16 << 20)])
        self.assertEqual(result.text("statuses").split(), ["3", "3"])
        for source, reason in (("bpf", "MISSING_START_TIME"), ("tracefs", "ORPHAN_COMPLETION")):
            with self.subTest(source):
                trace = result.path(source + ".tape")
                losses = {loss["reason"]: loss["count"] for loss in
                          blktape.as_json("info", trace, accept=(0, 3))["losses"]}
                self.assertEqual(losses, {reason: 1})
                # Counted, not invented.
                self.assertEqual([row["device"] for row in blktape.dump(trace, accept=(0, 3))], ["vda"])

    def test_what_keeps_a_source_from_working_is_said_and_the_next_is_taken(self):
        result = self.run_guest("""
            try() {  # NAME [OPTION...]
              name=$1
              shift
              attempt $name blktape record -d vda --settle 0s -o /out/$name.tape "$@" -- \
                /usr/bin/dd if=/dev/vda of=/dev/null bs=4k count=5 iflag=direct
            }
            mount -t tmpfs hidden /sys/kernel/btf
            try no_btf
            try no_btf_bpf --source bpf
            umount /sys/kernel/btf
            # Lockdown goes one way only.
            mount -t securityfs security /sys/kernel/security
            echo integrity > /sys/kernel/security/lockdown
            try integrity
            try integrity_tracefs --source tracefs
            try integrity_blktrace --source blktrace
            echo confidentiality > /sys/kernel/security/lockdown
            try confidentiality
            try confidentiality_tracefs --source tracefs
            mount -t tmpfs hidden /sys/kernel/btf
            try nothing_left
        """, disks=[guest.Disk("virtio", 16 << 20)], programs=["dd", "mount", "umount"])
        works = {"no_btf": "tracefs", "integrity": "bpf", "integrity_tracefs": "tracefs", "confidentiality": "bpf"}
        for name, source in works.items():
            with self.subTest(name):
                self.assertEqual(result.rc(name), 0, result.text(name + ".err"))
                self.assertIn("recording vda by %s into" % source, result.text(name + ".err"))
                rows = [row for row in blktape.dump(result.path(name + ".tape")) if row["process"] == "dd"]
                self.assertEqual([row["lba"] for row in rows], ["0", "8", "16", "24", "32"])
        said = {name: result.text(name + ".err") for name in (*works, "no_btf_bpf", "integrity_blktrace",
                                                              "confidentiality_tracefs", "nothing_left")}
        for name in ("no_btf_bpf", "integrity_blktrace", "confidentiality_tracefs", "nothing_left"):
            self.assertEqual(result.rc(name), 1, name)
        no_btf = "bpf: this kernel has no type information (/sys/kernel/btf/vmlinux)\n"
        self.assertRegex(said["no_btf"], r"\Arecording vda by .*\nnot used: " + re.escape(no_btf))
        self.assertIn("error: " + no_btf, said["no_btf_bpf"])
        self.assertRegex(said["integrity_blktrace"], r"(?s)in lockdown \(integrity\).*try:  --source=tracefs")
        self.assertRegex(said["confidentiality_tracefs"],
                         r"(?s)in lockdown \(confidentiality\).*try:  --source=bpf, or booting with lockdown=integrity")
        # Each says why, and none advises one that does not work.
        self.assertIn("error: no way to record block I/O works on this machine\n" + no_btf, said["nothing_left"])
        self.assertRegex(said["nothing_left"], r"(?s)\ntracefs: .*lockdown \(confidentiality\).*\nblktrace: ")
        self.assertNotIn("--source=tracefs", said["nothing_left"])

    def test_of_an_nvme_drive_with_paths_each_io_is_there_and_completions_not_told_of_are_counted(self):
        result = self.run_guest("""
            for source in bpf tracefs blktrace; do
              attempt $source blktape record -d nvme0n1 --source $source --settle 0s -o /out/$source.tape -- \
                /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=20 iflag=direct
            done
        """, disks=[guest.Disk("nvme-multipath", 64 << 20)])
        for source in ("bpf", "tracefs", "blktrace"):
            with self.subTest(source):
                self.assertIn("warning: nvme0n1 is an NVMe drive with several paths: completions may not be seen\n",
                              result.text(source + ".err"))
                trace = result.path(source + ".tape")
                rows = [row for row in blktape.dump(trace, accept=(0, 3)) if row["process"] == "dd"]
                self.assertEqual([int(row["lba"]) for row in rows], [8 * i for i in range(20)])
                completed = sum(row["complete_ns"] != "" for row in rows)
                # Of all or of none, by kernel: Linux 6.9 tells blktrace, as do older ones that took that change.
                # A tracepoint has them under the name of the path's hidden disk.
                self.assertIn(completed, (0, 20) if source == "blktrace" else (0,))
                losses = blktape.as_json("info", trace, accept=(0, 3))["losses"]
                self.assertEqual(sum(loss["count"] for loss in losses), 20 - completed)

    def test_auto_takes_bpf_on_a_plain_kernel_and_misses_no_completion(self):
        result = self.run_guest("""
            attempt auto blktape record -d vda --settle 0s -o /out/a.tape -- \\
              /usr/bin/dd if=/dev/vda of=/dev/null bs=512 count=40000 iflag=direct
        """)
        self.assertEqual(result.rc("auto"), 0, result.text("auto.err"))
        self.assertNotIn("not used", result.text("auto.err"))
        self.assertEqual(blktape.as_json("info", result.path("a.tape"))["header"]["source"], "bpf")
        rows = [row for row in blktape.dump(result.path("a.tape")) if row["process"] == "dd"]
        self.assertEqual([int(row["lba"]) for row in rows], list(range(40000)))
        self.assertEqual([row for row in rows if row["complete_ns"] == ""], [])

    def test_what_a_command_left_in_the_page_cache_is_waited_for_in_a_cgroup_too(self):
        # Before Linux 6.10 a device's statistics are of the root cgroup alone.
        result = self.run_guest("""
            mount -t cgroup2 none /sys/fs/cgroup
            echo +memory > /sys/fs/cgroup/cgroup.subtree_control
            mkdir /sys/fs/cgroup/session
            mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/vda
            mount -t ext4 -o noinit_itable /dev/vda /mnt
            sync
            # The kernel looks every three seconds, in place of five, and writes what is as old, in place of thirty.
            echo 300 > /proc/sys/vm/dirty_writeback_centisecs
            echo 300 > /proc/sys/vm/dirty_expire_centisecs
            for cgroup in "" /session; do
              attempt "in$(basename "$cgroup")" sh -c "echo 0 > /sys/fs/cgroup$cgroup/cgroup.procs
                exec blktape record -d vda --json -o /out/in$(basename "$cgroup").tape -- \\
                dd if=/dev/urandom of=/mnt/written$(basename "$cgroup") bs=64k count=64"
            done
        """, programs=["dd", "mkfs.ext4", "mount"], modules=["ext4"])
        for name in ("in", "insession"):
            with self.subTest(name):
                self.assertEqual(result.rc(name), 0, result.text(name + ".err"))
                self.assertIs(json.loads(result.text(name + ".out"))["settled"], True)
                written = sum(int(row["bytes"]) for row in blktape.dump(result.path(name + ".tape"))
                              if row["op"] == "write")
                self.assertGreaterEqual(written, 64 * 65536)

    def test_pages_that_the_kernel_counts_wrongly_are_not_waited_for(self):
        # With eight CPUs it adds up 32 pages of each at a time: dirtied by one CPU 128 of 140 are counted, cleaned by seven
        # others 20 each are not, unless those clean other pages, too: so more than one try.
        result = self.run_guest("""
            mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/vda
            echo 50 > /proc/sys/vm/dirty_writeback_centisecs
            stats=/sys/kernel/debug/bdi/$(cat /sys/block/vda/dev)/stats
            for try in 1 2 3 4 5 6; do
              echo 9000 > /proc/sys/vm/dirty_expire_centisecs
              mount -t ext4 -o noinit_itable /dev/vda /mnt
              for cpu in 1 2 3 4 5 6 7; do taskset 1 dd if=/dev/zero of=/mnt/$cpu bs=4k count=20; done
              for cpu in 1 2 3 4 5 6 7; do taskset -c $cpu dd if=/dev/null of=/mnt/$cpu conv=notrunc,fsync; done
              umount /mnt
              echo 50 > /proc/sys/vm/dirty_expire_centisecs
              until grep -q "b_dirty: *0$" $stats; do sleep 0.2; done
              cat $stats > /out/stats
              kib=$(awk '/^Bdi(Reclaimable|Writeback):/ { kib += $2 } END { print kib }' $stats)
              [ $kib -le 64 ] || break
            done
            attempt record blktape record -d vda --settle 9s --json -o /out/a.tape -- true
        """, programs=["dd", "awk", "mkfs.ext4", "mount", "umount", "taskset"], modules=["ext4"], cpus=8)
        stats = dict(re.findall(r"(\w+): +(\d+)", result.text("stats")))
        self.assertEqual([stats[name] for name in ("b_dirty", "b_io", "b_more_io")], ["0", "0", "0"])
        # Else this test shows nothing.
        self.assertGreater(int(stats["BdiReclaimable"]) + int(stats["BdiWriteback"]), 64)
        self.assertEqual(result.rc("record"), 0, result.text("record.err"))
        self.assertIs(json.loads(result.text("record.out"))["settled"], True)


if __name__ == "__main__":
    cases.main()
