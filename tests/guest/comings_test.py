"""Disks that come, go, come back or are exchanged while `record --all` runs; a full disk of the traces; a recorder in a
PID namespace of its own."""

import os
import unittest

from tests.guest import guest
from tests.harness import blktape, cases

SCRIPT = r"""
read_disk() { /usr/bin/dd if=/dev/$1 of=/dev/null bs=4k count=$2 iflag=direct 2> /dev/null; }
await() { i=0; until grep -q "$1" /out/$2.log; do sleep 0.1; i=$((i + 1)); [ $i -lt 200 ]; done; }
host() { echo $1 > /sys/bus/pseudo/drivers/scsi_debug/add_host; }

insmod /modules/scsi_debug.ko dev_size_mb=16 delay=0 num_tgts=0 add_host=0
echo 1 > /sys/bus/pseudo/drivers/scsi_debug/num_tgts
for source in bpf tracefs; do
  mkdir /out/$source
  blktape record --all --source $source -o /out/$source 2> /out/$source.log & recorder=$!
  await ^recording $source
  read_disk nvme0n1 10
  host 1
  until [ -e /dev/sda ]; do sleep 0.1; done
  await "sda has come: recorded" $source
  read_disk sda 20
  host -1
  while [ -e /sys/block/sda ]; do sleep 0.1; done
  await "sda is gone" $source
  host 1
  until [ -e /dev/sda ]; do sleep 0.1; done
  i=0; until [ $(grep -c "sda has come: recorded" /out/$source.log) = 2 ]; do sleep 0.1; i=$((i + 1)); [ $i -lt 200 ]; done
  read_disk sda 30
  # Exchanged, faster than anybody looks.
  host -1
  host 1
  i=0; until [ $(grep -c "sda has come: recorded" /out/$source.log) = 3 ]; do sleep 0.1; i=$((i + 1)); [ $i -lt 200 ]; done
  read_disk sda 40
  sleep 1
  kill -TERM $recorder
  attempt $source wait $recorder
  host -1
  while [ -e /sys/block/sda ]; do sleep 0.1; done
done

# The disk of the traces runs full, of which others wrote the last part.
mkdir /small
mount -t tmpfs -o size=30m small /small
# The oldest is another recorder's.
for name in vda_2026-10-20 nvme0n1_2026-10-21 nvme0n1_2026-10-22 nvme0n1_2026-10-23; do
  /usr/bin/dd if=/dev/zero of=/small/${name}T00-00-00.tape bs=1M count=6 2> /dev/null
  touch -d "${name#*_} 00:00" /small/${name}T00-00-00.tape
done
blktape record --device nvme0n1 --rotate 1d --keep 1G -o /small 2> /out/small.log & recorder=$!
await ^recording small
/usr/bin/dd if=/dev/zero of=/small/other bs=64k count=$(($(df -k /small | tail -1 | awk '{print $4}') / 64)) 2> /dev/null || true
await "nearly full" small
read_disk nvme0n1 10
sleep 1
kill -TERM $recorder
attempt small wait $recorder
ls /small > /out/small.left
umount /small

# What it writes itself is left out by the ids of its threads, which are others inside than outside.
mkfs.ext4 -q /dev/nvme0n1
mount -t ext4 /dev/nvme0n1 /mnt
sync
# Processes outside that have the numbers which the recorder's threads have inside are not the recorder.
for source in bpf tracefs blktrace; do
  attempt inside_$source unshare -p -f --mount-proc sh -c "echo 30000 > /proc/sys/kernel/ns_last_pid
    blktape record --device nvme0n1 --source $source --duration 8s -o /mnt/$source.tape" & inside=$!
  sleep 4
  echo 30000 > /proc/sys/kernel/ns_last_pid
  for i in 1 2 3 4 5 6 7 8; do
    /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=1 skip=$i iflag=direct 2> /dev/null
  done
  wait $inside
  cp /mnt/$source.tape /out/inside_$source.tape
done
"""


class ComingsTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def test_disks_come_and_go(self):
        result = guest.Guest(programs=["dd", "mkfs.ext4", "mount", "unshare"], modules=["ext4", "sd_mod", ("scsi_debug", None)],
                             disks=[guest.Disk("nvme", 64 << 20)]).run(SCRIPT).check()
        for source in ("bpf", "tracefs"):
            with self.subTest(source):
                # That a disk went is a loss of what it did later.
                self.assertEqual(result.rc(source), 3, result.text(source + ".log"))
                names = sorted(os.listdir(result.path(source)))
                self.assertEqual([name for name in names if not name.endswith(".tape")], [])
                self.assertEqual(len(names), 4, names)
                rows = [[row for row in blktape.dump(result.path(source + "/" + name), accept=(0, 3))
                         if row["process"] == "dd"] for name in sorted(names, key=len)]
                told = [[(row["device"], int(row["lba"])) for row in one] for one in rows]
                reads = [[("nvme0n1", 8 * i) for i in range(10)]] + [
                    [("sda", 8 * i) for i in range(count)] for count in (20, 30, 40)]
                self.assertEqual([read for one in told for read in one], [read for one in reads for read in one])
                # Each has a place of its own in the last one's list.
                info = blktape.as_json("info", result.path(source + "/" + sorted(names, key=len)[-1]), accept=(0, 3))
                self.assertEqual([device["name"] for device in info["header"]["devices"]].count("sda"), 3)
        with self.subTest("a full disk"):
            self.assertEqual(result.rc("small"), 0, result.text("small.log"))
            self.assertIn("the disk is nearly full: removed /small/nvme0n1_2026-10-21", result.text("small.log"))
            self.assertNotIn("waiting for space", result.text("small.log"))
            left = result.text("small.left").split()
            self.assertNotIn("nvme0n1_2026-10-21T00-00-00.tape", left)
            self.assertIn("nvme0n1_2026-10-23T00-00-00.tape", left)
            self.assertIn("vda_2026-10-20T00-00-00.tape", left)
            self.assertIn("other", left)
        for source in ("bpf", "tracefs", "blktrace"):
            with self.subTest("inside", source=source):
                self.assertEqual(result.rc("inside_" + source), 0, result.text("inside_%s.err" % source))
                rows = blktape.dump(result.path("inside_%s.tape" % source))
                self.assertEqual([row for row in rows if row["process"] == "blktape"], [])
                # Only dd reads there. blktrace is told a name once, at a thread's first event: the shell's, where
                # an I/O of the recorder completes on its CPU before it has become dd.
                reads = [(int(row["pid"]), int(row["lba"]), row["process"]) for row in rows
                         if row["op"] == "read" and row["lba"] in [str(8 * i) for i in range(1, 9)]]
                self.assertEqual([lba for _, lba, _ in reads], [8 * i for i in range(1, 9)])
                names = {name for _, _, name in reads}
                self.assertLessEqual(names, {"dd", "dash"} if source == "blktrace" else {"dd"})
                self.assertIn(reads[0][0], (30001, 30002), "a number of one of the recorder's first threads")


if __name__ == "__main__":
    cases.main()
