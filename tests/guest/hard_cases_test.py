"""All three sources at once, where it is hard: requests of which the events do not tell where they work (discards
of several ranges, appends to zones), and the three times of those that wait for a tag."""

import collections
import re
import unittest

from tests.guest import guest
from tests.harness import cases

WAIT_NS = 20_000_000  # half of what the slow disk takes for a request
SOURCES = ("tracefs", "bpf", "blktrace")

# What the kernel says of bios as they are queued, by a tracing instance of its own, is what a drive is asked to do.
SCRIPT = r"""
insmod /modules/null_blk.ko nr_devices=1 gb=1 memory_backed=1 zoned=1 zone_size=16 zone_nr_conv=1
until [ -e /dev/nullb0 ]; do sleep 0.1; done
mkfs.xfs -q /dev/nvme0n1
mount -t xfs -o discard /dev/nvme0n1 /mnt
for i in $(seq 1 60); do dd if=/dev/urandom of=/mnt/file$i bs=16k count=$((i % 7 + 1)) conv=fsync 2> /dev/null; done
sync
mkfs.btrfs -q -f -O zoned -d single -m single /dev/nullb0
mkdir /zones
mount -t btrfs /dev/nullb0 /zones
# A disk that takes four requests at a time, each for 40 milliseconds.
mount -t configfs config /sys/kernel/config
slow=/sys/kernel/config/nullb/slow
mkdir $slow
for setting in size=64 blocksize=512 irqmode=2 completion_nsec=40000000 hw_queue_depth=4 submit_queues=1 power=1; do
  echo ${setting#*=} > $slow/${setting%=*}
done
# By the folder's name, or by a number on older kernels.
name=nullb$(cat $slow/index)
if [ -e /sys/block/slow ]; then name=slow; fi
[ -e /sys/block/$name ]
echo none > /sys/block/$name/queue/scheduler
echo $name > /out/slow
cat > /work.sh <<'END'
set -eu
name=$(cat /out/slow)
for i in $(seq 1 24); do
  dd if=/dev/$name of=/dev/null bs=64k skip=$((i * 10)) count=10 iflag=direct 2> /dev/null &
done
wait
for i in $(seq 1 2 60); do rm /mnt/file$i; done
sync
sleep 1
sync
for i in $(seq 1 20); do dd if=/dev/urandom of=/zones/file$i bs=4k count=$i conv=fsync 2> /dev/null; done
END
count=/sys/kernel/tracing/instances/count
mkdir $count
echo mono > $count/trace_clock
for event in block_bio_queue block_rq_issue; do
  echo 1 > $count/events/block/$event/enable
done
cat /sys/block/nvme0n1/queue/max_discard_segments > /out/segments
set -- --device nvme0n1 --device nullb0 --device $name --settle 0s
for source in tracefs bpf blktrace; do command="$command blktape record $* --source $source -o /tmp/$source.tape --"; done
$command sh /work.sh
cat $count/trace > /out/events
for source in tracefs bpf blktrace; do attempt $source blktape dump --csv /tmp/$source.tape; done
"""


def joined(ranges):
    """What touches is one: a request may have it as one."""
    whole = []
    for at, size in sorted(ranges):
        if whole and sum(whole[-1]) == at:
            whole[-1] = (whole[-1][0], whole[-1][1] + size)
        else:
            whole.append((at, size))
    return whole


class HardCasesTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def test_every_source_tells_what_was_asked_for(self):
        result = guest.Guest(
            programs=["mkfs.xfs", "mkfs.btrfs", "dd", "mount"], modules=["xfs", "btrfs", ("null_blk", None)],
            disks=[guest.Disk("nvme", 512 << 20)]).run("command=\n" + SCRIPT).check()
        self.assertGreater(int(result.text("segments")), 1)
        events = re.findall(r"(block_\w+): \d+,\d+ D\w* (?:\d+ \(\) )?(\d+) \+ (\d+)", result.text("events"))
        asked = sorted((int(at), int(size)) for event, at, size in events if event == "block_bio_queue")
        issued = [event for event, _, _ in events if event == "block_rq_issue"]
        self.assertGreater(len(asked), 10)
        self.assertLess(len(issued), len(asked) // 2, "nothing was gathered")
        rows = {}
        for source in SOURCES:
            with self.subTest(source):
                self.assertEqual(result.rc(source), 0, result.text(source + ".err"))
                rows[source] = result.rows(source + ".out")
                discards = sorted((int(row["lba"]), int(row["bytes"]) // 512)
                                  for row in rows[source] if row["op"] == "discard")
                self.assertEqual(joined(discards), joined(asked))
                self.assertEqual(sum(size for _, size in discards), sum(size for _, size in asked))
                self.assertEqual([row for row in rows[source] if row["complete_ns"] == ""], [])
        with self.subTest("times"):
            self.check_times(rows, result.text("slow").strip())
        # BPF knows the operation by its number.
        appends = {source: collections.Counter((row["lba"], row["bytes"]) for row in rows[source]
                                               if row["device"] == "nullb0" and row["op"] == "zone_append")
                   for source in SOURCES}
        self.assertGreater(sum(appends["bpf"].values()), 10)
        self.assertEqual(appends["tracefs"], appends["bpf"])
        # To blktrace the first of a zone that was empty is a write.
        missing = appends["bpf"] - appends["blktrace"]
        self.assertEqual(appends["blktrace"] - appends["bpf"], collections.Counter())
        writes = collections.Counter((row["lba"], row["bytes"]) for row in rows["blktrace"]
                                     if row["device"] == "nullb0" and row["op"] == "write")
        self.assertEqual(missing - writes, collections.Counter())
        self.assertLess(sum(missing.values()), 4)


    def check_times(self, rows, disk):
        """Each place is read once: by it the records of the sources are told to be of one request."""
        reads = {source: {row["lba"]: row for row in rows[source] if row["device"] == disk and row["op"] == "read" and
                          row["bytes"] == "65536"} for source in SOURCES}
        self.assertEqual(len(reads["tracefs"]), 240)
        waited = [place for place, row in reads["tracefs"].items()
                  if int(row["issue_ns"]) - int(row["queue_ns"]) > WAIT_NS]
        self.assertGreater(len(waited), 20, "hardly anybody waited for a tag")
        for source in ("bpf", "blktrace"):
            for stamp in ("queue_ns", "issue_ns", "complete_ns"):
                apart = sorted(abs(int(reads["tracefs"][place][stamp]) - int(reads[source][place][stamp]))
                               for place in waited)
                # Three recorders stamp one event one after the other, on an emulated processor.
                self.assertLess(apart[len(apart) // 2], WAIT_NS / 10, (source, stamp))


if __name__ == "__main__":
    cases.main()
