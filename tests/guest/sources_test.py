"""On a plain kernel: three live sources and the blktrace program agree, on disks of several drivers."""

import collections
import json
import re
import unittest

from tests.guest import guest, workload
from tests.harness import cases

DISK = guest.Disk("nvme", 512 << 20)


def key(row):
    return row["op"], row["lba"], int(row["bytes"])


def as_blktrace_tells(row):
    """Version 7 of its format has no word for write zeroes: they are writes of that size."""
    op, lba, size = key(row)
    return ("write" if op == "write_zeroes" else op), lba, size


def kernel_of(result):
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", result.text("release")).groups()))


def has_version_8(result):
    """Whether the guest's kernel has version 8 of blktrace's format, which names write zeroes."""
    return kernel_of(result) >= (6, 19)


def may_move(result):
    """Whether a thread may be moved to another CPU after one source has seen an event and before another does."""
    return kernel_of(result) >= (7, 0)


def numbered(rows, key):
    """((what, the how many-th of its kind), CPU) of every request, in the order of issue."""
    seen = collections.Counter()
    requests = []
    for row in sorted(rows, key=lambda row: int(row["issue_ns"])):
        what = key(row)
        seen[what] += 1
        requests.append(((what, seen[what]), row["cpu"]))
    return requests


class SourcesTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def run_guest(self, script, modules=("ext4",), programs=()):
        return guest.Guest(programs=[*workload.PROGRAMS, *programs],
                           modules=list(modules), disks=[DISK]).run(workload.SCRIPT + script).check()

    def check_same_records(self, first, second, key=key, at_least=300, moves=False):
        differences = collections.Counter(map(key, first))
        differences.subtract(map(key, second))
        self.assertEqual({what: count for what, count in differences.items() if count}, {})
        # Requests that one CPU issued are in one order in both; across CPUs stamps of one moment may tie.
        sides = [numbered(side, key) for side in (first, second)]
        cpus = [dict(side) for side in sides]
        moved = {request for request, cpu in cpus[0].items() if cpus[1][request] != cpu}
        self.assertLessEqual(len(moved), len(first) // 20 if moves else 0, moved)
        for cpu in sorted(set(cpus[0].values())):
            issued = [[request for request, on in side if on == cpu and request not in moved] for side in sides]
            self.assertEqual(issued[0], issued[1], "CPU " + cpu)
        self.assertGreater(len(first), at_least)

    def test_all_three_sources_at_once_give_the_same_records(self):
        result = self.run_guest(r"""
            blktape record --device nvme0n1 --settle 0s --source tracefs -o /tmp/second.tape -- \
              blktape record --device nvme0n1 --settle 0s --source tracefs -o /tmp/tracefs.tape -- \
              blktape record --device nvme0n1 --settle 0s --source bpf -o /tmp/bpf.tape -- \
              blktape record --device nvme0n1 --settle 0s --source blktrace -o /tmp/blktrace.tape -- sh /workload
            for source in second tracefs bpf blktrace; do
              blktape dump --csv /tmp/$source.tape > /out/$source.csv
            done
            uname -r > /out/release
        """)
        tracefs, bpf, blktrace = (result.rows(name + ".csv") for name in ("tracefs", "bpf", "blktrace"))
        self.check_same_records(tracefs, blktrace, key if has_version_8(result) else as_blktrace_tells,
                                moves=may_move(result))
        self.check_same_records(tracefs, bpf, moves=may_move(result))
        self.check_same_records(tracefs, result.rows("second.csv"), moves=may_move(result))
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
            if records is blktrace and not has_version_8(result):
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
            blktape record --device nvme0n1 --settle 0s -o /tmp/auto.tape -- \
              dd if=/dev/nvme0n1 of=/dev/null bs=8k count=20 iflag=direct
            blktape info /tmp/auto.tape > /out/auto.info
            blktape dump --csv /tmp/auto.tape > /out/auto.csv
            uname -r > /out/release
        """, programs=["blktrace", "blkparse"])
        # Without a source named it takes one that works, and says which.
        self.assertRegex(result.text("auto.info"), r"source +(bpf|tracefs)\b")
        self.assertEqual([key(row) for row in result.rows("auto.csv") if row["process"] == "dd"],
                         [("read", str(16 * i), 8192) for i in range(20)])
        ours = result.rows("ours.csv")
        if has_version_8(result):
            # The program asks for version 7, and there these kernels leave out what has FUA and write zeroes
            # (kernel/trace/blktrace.c: categories beyond BLK_TC_END_V1, which is the bit of FUA itself).
            ours = [row for row in ours if row["op"] != "write_zeroes" and "fua" not in row["flags"].split("+")]
        imported = result.rows("imported.csv")
        self.check_same_records(ours, imported, as_blktrace_tells)
        issued = [line.split() for line in result.text("blkparse.txt").splitlines()]
        data = [(int(sector), int(size)) for action, kind, sector, size in issued
                if action == "D" and int(size) > 0 and re.search("[RW]", kind) and "D" not in kind]
        mine = [(int(row["lba"]), int(row["bytes"])) for row in ours if row["op"] in ("read", "write")]
        zeroed = [(int(row["lba"]), int(row["bytes"])) for row in ours if row["op"] == "write_zeroes"]
        # blkparse 6.1 has no letter for write zeroes and shows them as writes.
        self.assertEqual(sorted(data), sorted(mine + zeroed))

    def test_disks_of_other_drivers_are_recorded_alike(self):
        result = guest.Guest(
            programs=["dd", "blkdiscard"], modules=["sd_mod", ("scsi_debug", None), ("null_blk", None)],
            disks=[guest.Disk("virtio", 64 << 20)]).run(r"""
                insmod /modules/scsi_debug.ko dev_size_mb=64 lbpu=1 lbpws=1 delay=0
                insmod /modules/null_blk.ko nr_devices=1 gb=1 memory_backed=1 discard=1 cache_size=8
                until [ -e /dev/sda ] && [ -e /dev/nullb0 ]; do sleep 0.1; done
                cat > /work <<'END'
                set -eu
                for disk in vda sda nullb0; do
                  dd if=/dev/urandom of=/dev/$disk bs=4k count=64 seek=100 oflag=direct 2> /dev/null
                  dd if=/dev/urandom of=/dev/$disk bs=8k count=16 seek=200 oflag=direct,dsync 2> /dev/null
                  dd if=/dev/$disk of=/dev/null bs=64k count=50 iflag=direct 2> /dev/null
                  dd if=/dev/urandom of=/dev/$disk bs=64k count=40 seek=100 conv=fsync 2> /dev/null
                  blkdiscard -o 16M -l 4M /dev/$disk
                  blkdiscard -z -o 32M -l 2M /dev/$disk
                done
                sync
END
                uname -r > /out/release
                disks="--device vda --device sda --device nullb0"
                blktape record $disks --settle 0s --source tracefs -o /tmp/tracefs.tape -- \
                  blktape record $disks --settle 0s --source bpf -o /tmp/bpf.tape -- \
                  blktape record $disks --settle 0s --source blktrace -o /tmp/blktrace.tape -- sh /work
                for source in tracefs bpf blktrace; do
                  blktape dump --csv /tmp/$source.tape > /out/$source.csv
                done
                for disk in vda sda nullb0; do
                  for what in fua write_cache write_zeroes_max_bytes discard_max_bytes; do
                    echo $disk $what $(cat /sys/block/$disk/queue/$what | tr ' ' _) >> /out/abilities
                  done
                done
            """).check()
        abilities = dict((tuple(line.split()[:2]), line.split()[2]) for line in result.text("abilities").splitlines())
        recorded = {source: result.rows(source + ".csv") for source in ("tracefs", "bpf", "blktrace")}
        for disk in ("vda", "sda", "nullb0"):
            of = {source: [row for row in records if row["device"] == disk] for source, records in recorded.items()}
            with self.subTest(disk):
                self.check_same_records(of["tracefs"], of["bpf"], at_least=150, moves=may_move(result))
                self.check_same_records(of["tracefs"], of["blktrace"],
                                        key if has_version_8(result) else as_blktrace_tells, at_least=150,
                                        moves=may_move(result))
            for source, records in of.items():
                with self.subTest(disk=disk, source=source):
                    self.check_work(records, {name: abilities[disk, name] for _, name in abilities},
                                    names_zeroes=source != "blktrace" or has_version_8(result))

    def check_work(self, records, abilities, names_zeroes):
        """By the arguments of dd and blkdiscard, in sectors of 512 bytes."""
        def of(op, first, end):
            return [row for row in records if row["op"] == op and first <= int(row["lba"] or 0) < end]

        self.assertEqual([key(row) for row in of("write", 800, 800 + 512)],
                         [("write", str(800 + 8 * i), 4096) for i in range(64)])
        durable = of("write", 3200, 3200 + 256)
        self.assertEqual([key(row) for row in durable], [("write", str(3200 + 16 * i), 8192) for i in range(16)])
        self.assertTrue(all("fua" in row["flags"].split("+") for row in durable))
        direct = [row for row in records if row["op"] == "read" and row["flags"] == "sync"]
        self.assertEqual([key(row) for row in direct], [("read", str(128 * i), 65536) for i in range(50)])
        self.assertEqual(sum(int(row["bytes"]) for row in of("write", 12800, 12800 + 5120)), 40 << 16)
        self.assertEqual([key(row) for row in records if row["op"] == "discard"], [("discard", "32768", 4 << 20)])
        zeroes = "write_zeroes" if abilities["write_zeroes_max_bytes"] != "0" and names_zeroes else "write"
        self.assertEqual(sum(int(row["bytes"]) for row in of(zeroes, 65536, 65536 + 4096)), 2 << 20)
        # One after each block that dd wrote with dsync, one for its fsync; and where the disk has no
        # FUA, one that the kernel puts behind each such write.
        flushes = collections.Counter("derived" in row["flags"] for row in records if row["op"] == "flush")
        self.assertEqual(flushes[False], 17)
        self.assertEqual(flushes[True], 16 if abilities["fua"] == "0" else 0)

    def test_what_the_driver_gave_back_and_took_again_is_one_record(self):
        result = guest.Guest(
            programs=["dd"], modules=["sd_mod", "mq-deadline", ("scsi_debug", None)]).run(r"""
                insmod /modules/scsi_debug.ko dev_size_mb=64 delay=1 max_queue=8
                until [ -e /dev/sda ]; do sleep 0.1; done
                count=/sys/kernel/tracing/instances/count
                mkdir $count
                echo 1 > $count/events/block/block_rq_requeue/enable
                cat > /work <<'END'
                set -eu
                for i in 0 1 2 3; do
                  dd if=/dev/urandom of=/dev/sda bs=4k count=100 seek=$((i * 2000)) oflag=direct 2> /dev/null &
                done
                wait
END
                # The host is busy (opts) for every seventh command.
                echo 0x8000 > /sys/bus/pseudo/drivers/scsi_debug/opts
                echo 7 > /sys/bus/pseudo/drivers/scsi_debug/every_nth
                for scheduler in mq-deadline none; do
                  echo $scheduler > /sys/block/sda/queue/scheduler
                  echo > $count/trace
                  attempt record-$scheduler blktape record --device sda --settle 0s --source tracefs -o /tmp/tracefs.tape -- \
                    blktape record --device sda --settle 0s --source bpf -o /tmp/bpf.tape -- sh /work
                  grep -c block_rq_requeue $count/trace > /out/requeues-$scheduler
                  for source in tracefs bpf; do
                    attempt $source-$scheduler blktape dump --csv /tmp/$source.tape
                    rm /tmp/$source.tape
                  done
                done
            """).check()
        for scheduler in ("mq-deadline", "none"):
            self.assertGreater(int(result.text("requeues-" + scheduler)), 20, scheduler)
            self.assertEqual(result.rc("record-" + scheduler), 0, result.text("record-%s.err" % scheduler))
            for source in ("tracefs", "bpf"):
                with self.subTest(scheduler=scheduler, source=source):
                    name = "%s-%s" % (source, scheduler)
                    # Nothing is missing, nothing is counted as lost.
                    self.assertEqual(result.rc(name), 0, result.text(name + ".err"))
                    written = [row for row in result.rows(name + ".out")
                               if row["op"] == "write" and row["process"] == "dd"]
                    self.assertEqual(sorted(int(row["lba"]) for row in written),
                                     sorted(8 * (2000 * i + block) for i in range(4) for block in range(100)))
                    self.assertEqual([row for row in written if row["complete_ns"] == ""], [])

    def test_a_recording_that_begins_and_ends_amid_io_loses_none(self):
        result = guest.Guest(programs=["dd", "nice"], disks=[guest.Disk("nvme", 64 << 20)]).run(r"""
            # They take what the recorder leaves: else most of the time goes by until it has started.
            for i in 1 2 3; do
              (while [ ! -e /tmp/enough ]; do
                nice -n 19 dd if=/dev/nvme0n1 of=/dev/null bs=4k count=4000 iflag=direct 2> /dev/null
              done) &
            done
            for source in bpf tracefs; do
              for round in 1 2 3; do
                attempt $source$round blktape record --device nvme0n1 --settle 0s --source $source -o /tmp/a.tape --duration 1s
                attempt info-$source$round blktape info --json /tmp/a.tape
                rm /tmp/a.tape
              done
            done
            touch /tmp/enough
            wait
        """).check()
        for source in ("bpf", "tracefs"):
            for name in ("%s%d" % (source, i) for i in range(1, 4)):
                info = result.text("info-%s.out" % name)
                # 3 would say that something is missing; what was in flight is not.
                self.assertEqual(result.rc(name), 0, "%s: %s%s" % (name, result.text(name + ".err"), info))
                # How many, the guest's speed decides: each of the three has read for many times what is in flight.
                self.assertGreater(json.loads(info)["records"], 30, name)

    def test_a_threads_io_tells_who_woke_it(self):
        result = guest.Guest(programs=["dd"], disks=[guest.Disk("nvme", 64 << 20)]).run(r"""
            mkfifo /tmp/answer
            cat > /tmp/both << 'END'
              disk=/dev/nvme0n1
              (read x < /tmp/answer; exec dd if=$disk of=/dev/null bs=8k count=1 skip=3 iflag=direct) &
              (sleep 1; exec dd if=$disk of=/dev/null bs=16k count=1 iflag=direct) &
              sleep 0.3
              dd if=$disk of=/dev/null bs=4k count=1 skip=9 iflag=direct
              echo > /tmp/answer
              wait
END
            blktape record --source bpf --device /dev/nvme0n1 -o /out/woken.tape -- sh /tmp/both
            blktape export /out/woken.tape --to csv -o /out/woken.csv
        """).check()
        asks, waits, sleeps = (next(row for row in result.rows("woken.csv") if row["bytes"] == size)
                               for size in ("4096", "8192", "16384"))
        # That dd ended, which woke its shell, which wrote the answer.
        self.assertEqual(waits["waker"], asks["pid"])
        woken = int(waits["queue_ns"]) - int(waits["since_wake_ns"])
        self.assertTrue(int(asks["complete_ns"]) < woken < int(waits["queue_ns"]), (asks, waits))
        # A clock woke it, and nobody before that had done any I/O.
        self.assertEqual(sleeps["waker"], "")

    def test_an_encrypted_volume_is_recorded_on_its_disk(self):
        result = guest.Guest(
            programs=["addpart", "cryptsetup", "dd", "dmsetup", "mkfs.ext4", "mount", "umount"],
            modules=["ext4", "dm_mod", "dm_crypt", "xts", "ecb"], disks=[guest.Disk("virtio", 64 << 20)]).run(r"""
                # As an installer does it: a logical volume on an encrypted one on a partition.
                addpart /dev/vda 1 2048 129024
                printf 'open sesame' > /tmp/key
                cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \
                  --key-file /tmp/key /dev/vda1
                cryptsetup luksOpen --key-file /tmp/key /dev/vda1 vault
                begin=$((2048 + $(dmsetup table vault | cut -d' ' -f8)))
                echo "0 $(cat /sys/block/dm-0/size) linear /dev/mapper/vault 0" | dmsetup create volume
                mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/mapper/volume
                mount -t ext4 /dev/mapper/volume /mnt
                sync
                head -c 1048576 /dev/urandom > /tmp/content
                echo $begin > /out/begin
                for source in bpf tracefs; do
                  blktape record --mount /mnt --source $source --settle 0s -o /tmp/$source.tape -- \
                    dd if=/tmp/content of=/mnt/$source bs=64k oflag=direct conv=fsync
                  blktape dump --csv /tmp/$source.tape > /out/$source.csv
                  # What lies in the volume where the recording says that its disk was written.
                  awk -F, '$5 == "write" && $8 == 65536 { print $7 }' /out/$source.csv | while read -r lba; do
                    dd if=/dev/mapper/vault bs=512 skip=$((lba - begin)) count=128 iflag=direct
                  done > /tmp/written 2> /dev/null
                  cmp /tmp/content /tmp/written
                done
                umount /mnt
                dmsetup remove volume
                cryptsetup luksClose vault
            """).check()
        # Behind the partition's beginning and the header of the volume, which LUKS2 makes 16 MiB long.
        self.assertEqual(int(result.text("begin")), 2048 + 32768)
        for source in ("bpf", "tracefs"):
            with self.subTest(source):
                records = result.rows(source + ".csv")
                self.assertEqual({row["device"] for row in records}, {"vda"})
                written = [row for row in records if row["op"] == "write" and row["bytes"] == "65536"]
                self.assertEqual(len(written), 16)
                self.assertGreaterEqual(min(int(row["lba"]) for row in records if row["lba"]), 2048 + 32768)
                # Submitted by dm-crypt's thread, whoever wrote it.
                self.assertEqual({row["process"] for row in written}, {"dd"})
                self.assertEqual(len({row["pid"] for row in written}), 1)
                # The journal's thread writes the last block of a commit with PREFLUSH and FUA. The mapper sends an
                # empty bio with both ahead, of which the disk, having no FUA, makes two flushes.
                commits = [row for row in records if row["process"].startswith("jbd2/") and "preflush" in row["flags"]]
                self.assertTrue(commits)
                for row in commits:
                    self.assertEqual(row["flags"], "sync+fua+preflush+meta+mapped")
                    within = [flush for flush in records if flush["op"] == "flush" and
                              int(row["queue_ns"]) <= int(flush["issue_ns"]) <= int(row["issue_ns"])]
                    self.assertEqual(["derived" in flush["flags"] for flush in within], [True, True], row)

    def test_what_lies_on_the_device_mapper_is_recorded_on_the_disk_and_a_pulled_disk_ends_its_part(self):
        result = guest.Guest(
            programs=["dd", "dmsetup", "mkfs.ext4", "mount", "umount"],
            modules=["ext4", "dm_mod", "dm_crypt", "xts", "ecb"],
            disks=[guest.Disk("nvme", 64 << 20), guest.Disk("virtio", 64 << 20)]).run(r"""
                echo "0 61440 linear /dev/nvme0n1 8192" | dmsetup create below
                head -c 1048576 /dev/urandom > /tmp/content
                echo 'dd if=/tmp/content of=/mnt/file bs=64k oflag=direct' > /write

                mkfs.ext4 -q /dev/mapper/below
                mount -t ext4 /dev/mapper/below /mnt
                blktape record --mount /mnt --settle 0s -o /tmp/linear.tape -- sh /write
                sync
                blktape dump --csv /tmp/linear.tape > /out/linear.csv
                # What lies on the disk itself where the recording says it was written.
                awk -F, '$5 == "write" && $11 == "dd" { print $7, $8 }' /out/linear.csv | while read -r lba bytes; do
                  dd if=/dev/nvme0n1 bs=512 skip=$lba count=$((bytes / 512)) iflag=direct
                done > /tmp/written 2> /dev/null
                cmp /tmp/content /tmp/written
                umount /mnt

                echo "0 61440 crypt aes-xts-plain64 $(printf %064d 7) 0 /dev/mapper/below 0" | dmsetup create secret
                mkfs.ext4 -q /dev/mapper/secret
                mount -t ext4 /dev/mapper/secret /mnt
                sync
                blktape record --mount /mnt --settle 0s -o /tmp/crypt.tape -- sh /write
                blktape dump --csv /tmp/crypt.tape > /out/crypt.csv
                umount /mnt
                dmsetup remove secret
                dmsetup remove below

                cat > /pull <<'END'
                dd if=/dev/nvme0n1 of=/dev/null bs=64k count=200 iflag=direct
                echo 1 > /sys/block/nvme0n1/device/device/remove
                dd if=/dev/vda of=/dev/null bs=64k count=100 iflag=direct
END
                attempt pulled blktape record --device nvme0n1 --device vda --settle 0s --source bpf -o /tmp/two.tape -- sh /pull
                attempt info blktape info /tmp/two.tape
                attempt two blktape dump --csv /tmp/two.tape
            """).check()
        for name in ("linear", "crypt"):
            with self.subTest(name):
                records = result.rows(name + ".csv")
                self.assertEqual({row["device"] for row in records}, {"nvme0n1"})
                placed = [row for row in records if row["lba"] != ""]
                self.assertGreaterEqual(sum(int(row["bytes"]) for row in placed if row["op"] == "write"), 1 << 20)
                # The volume begins 4 MiB into the disk and is 30 MiB long.
                for row in placed:
                    end = int(row["lba"]) + int(row["bytes"]) // 512
                    self.assertTrue(8192 <= int(row["lba"]) and end <= 8192 + 61440, row)
        with self.subTest("pulled"):
            # Finished, and what is missing is named.
            self.assertEqual((result.rc("pulled"), result.rc("two")), (3, 3))
            self.assertIn("device removed", result.text("info.out"))
            reads = collections.Counter(
                (row["device"], row["bytes"]) for row in result.rows("two.out")
                if row["op"] == "read" and row["process"] == "dd")
            self.assertEqual(reads, {("nvme0n1", "65536"): 200, ("vda", "65536"): 100})


if __name__ == "__main__":
    cases.main()
