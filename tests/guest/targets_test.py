"""Targets that a machine under test rarely offers: holders of every kind, drives that fail or vanish."""

import errno
import json
import unittest

from tests.guest import guest
from tests.harness import cases

FILES = {"sample.tape": "tests/data/sample.tape"}


class TargetsTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def run_guest(self, script, modules=(), programs=(), disks=()):
        return guest.Guest(programs=["dd", "dmsetup", "blockdev", *programs], modules=list(modules), disks=list(disks),
                           files=FILES).run(script).check()

    def test_a_disk_that_anything_stands_on_is_refused_unharmed(self):
        result = self.run_guest(r"""
            disk=/dev/nvme0n1
            # Of the disk itself: what lies in the page cache may be old.
            content() { dd if=$disk bs=1M iflag=direct 2> /dev/null; }
            try() {  # NAME [OPTION...]
              name=$1
              shift
              attempt $name blktape replay /sample.tape --target $disk --max --to 12s --skip-discards --yes "$@"
            }
            refused() {  # NAME [OPTION...]: not one byte of the disk may change
              content > /tmp/before
              try "$@"
              content | cmp - /tmp/before
            }
            held() { refused $1 --overwrite --remap wrap; }

            refused small --overwrite
            echo "0 20480 linear $disk 4096" | dmsetup create below
            held linear
            mkfs.ext4 -q /dev/mapper/below
            mount -t ext4 -o ro /dev/mapper/below /mnt
            held mounted_above
            umount /mnt
            dmsetup remove below
            addpart $disk 1 4096 20480
            mount -t ext4 -o ro ${disk}p1 /mnt
            held mounted_partition
            umount /mnt
            delpart $disk 1

            printf '%032d' 7 > /tmp/key
            cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --key-file /tmp/key $disk secret
            held crypt
            cryptsetup close secret

            mkswap $disk > /dev/null
            swapon $disk
            held swap
            swapoff $disk
            wipefs -qa $disk

            pvcreate -qq $disk
            refused lvm_signature --remap wrap
            vgcreate -qq attic $disk
            lvcreate -qq --zero n -l 2 -n box attic
            held lvm
            vgchange -qq -an attic
            wipefs -qa $disk

            mdadm --create /dev/md7 --run --level=1 --raid-devices=2 --metadata=1.2 $disk missing 2> /dev/null
            held md
            mdadm --stop /dev/md7 2> /dev/null
            refused md_signature --remap wrap

            blockdev --setro $disk
            held read_only
            blockdev --setrw $disk
            # Nothing is in the way any more: the same command replays.
            content > /tmp/before
            try free --overwrite --remap wrap
            # Not `! ...`, which ends no script.
            if content | cmp -s - /tmp/before; then
              echo "it replayed and changed nothing" >&2
              exit 1
            fi
        """, modules=["dm_mod", "dm_crypt", "xts", "ecb", "ext4", "raid1"],
            programs=["cmp", "mkfs.ext4", "addpart", "delpart", "mount", "umount", "mkswap", "swapon", "swapoff",
                      "wipefs", "cryptsetup", "pvcreate", "vgcreate", "lvcreate", "vgchange", "mdadm"],
            disks=[guest.Disk("nvme", 16 << 20)])
        reasons = {
            "small": "/dev/nvme0n1 is too small: the trace reaches up to",
            "linear": r"/dev/nvme0n1 is held by dm-0 \(below\), a device-mapper device",
            "mounted_above": r"/dev/nvme0n1: dm-0 \(below\) on it is mounted on /mnt",
            "mounted_partition": "/dev/nvme0n1: its partition nvme0n1p1 is mounted on /mnt",
            "crypt": r"/dev/nvme0n1 is held by dm-0 \(secret\), an encrypted volume",
            "swap": "/dev/nvme0n1 is swap",
            "lvm_signature": "/dev/nvme0n1 .*would lose what it holds: an LVM2_member",
            "lvm": r"/dev/nvme0n1 is held by dm-0 \(attic-box\), an LVM volume",
            "md": r"/dev/nvme0n1 is held by md7, an array \(raid1\)",
            "md_signature": "/dev/nvme0n1 .*would lose what it holds: a linux_raid_member",
            "read_only": "/dev/nvme0n1 is read-only",
        }
        for name, reason in reasons.items():
            with self.subTest(name):
                self.assertEqual(result.rc(name), 1)
                self.assertRegex(result.text(name + ".err"), reason)
        self.assertEqual(result.rc("free"), 0, result.text("free.err"))

    def test_the_same_sectors_by_another_way_are_refused_and_neighbours_are_not(self):
        result = self.run_guest(r"""
            disk=/dev/nvme0n1
            try() {  # NAME TARGET
              attempt $1 blktape replay /sample.tape --target $2 --max --to 12s --skip-discards --yes --overwrite \
                --remap wrap
            }
            mounted() {  # DEVICE COMMAND ...: runs it while the device is mounted
              mount -t ext4 -o ro $1 /mnt
              shift
              "$@"
              umount /mnt
            }
            map() { echo "0 32768 linear $disk $2" | dmsetup create $1; }
            map target 0
            map beside 32768
            map across 16384
            mkfs.ext4 -q /dev/mapper/beside
            mounted /dev/mapper/beside try beside /dev/mapper/target
            mkfs.ext4 -q /dev/mapper/across
            mounted /dev/mapper/across try across /dev/mapper/target
            dmsetup remove target
            dmsetup remove beside
            dmsetup remove across
            wipefs -qa $disk

            pvcreate -qq $disk
            vgcreate -qq attic $disk
            lvcreate -qq --zero n -l 4 -n scratch attic
            lvcreate -qq --zero n -l 4 -n home attic
            mkfs.ext4 -q /dev/mapper/attic-home
            mounted /dev/mapper/attic-home try volume /dev/mapper/attic-scratch
            vgchange -qq -an attic

            # Two hosts with the same drive behind them, as the identifier in its vital product data says.
            insmod /modules/scsi_debug.ko dev_size_mb=32 add_host=2 vpd_use_hostno=0
            until [ -e /dev/sdb ]; do sleep 0.1; done
            cat /sys/block/sda/device/wwid /sys/block/sdb/device/wwid > /out/wwids
            mkfs.ext4 -q /dev/sda
            mounted /dev/sda try path /dev/sdb
        """, modules=["dm_mod", "ext4", "sd_mod", ("scsi_debug", None)],
            programs=["mkfs.ext4", "mount", "umount", "wipefs", "pvcreate", "vgcreate", "lvcreate", "vgchange"],
            disks=[guest.Disk("nvme", 64 << 20)])
        self.assertEqual(result.rc("beside"), 0, result.text("beside.err"))
        self.assertEqual(result.rc("volume"), 0, result.text("volume.err"))
        self.assertEqual(result.rc("across"), 1)
        self.assertRegex(result.text("across.err"),
                         r"/dev/mapper/target: dm-2 \(across\) on the same sectors is mounted on /mnt")
        wwids = result.text("wwids").split("\n")
        self.assertEqual(wwids[0], wwids[1])
        self.assertEqual(result.rc("path"), 1)
        self.assertRegex(result.text("path.err"),
                         r"/dev/sdb: sda, the same drive by another path \(.*\), is mounted on /mnt")

    def figures(self, result, name):
        return json.loads(result.text(name + ".out"))

    def check_partial(self, result, name, reason):
        """Ended early, says why, and what was done until then is there to be analyzed."""
        figures = self.figures(result, name)
        self.assertEqual(result.rc(name), 3, result.text(name + ".err"))
        self.assertTrue(figures["stopped_early"])
        self.assertRegex(figures["stop_reason"], reason)
        self.assertEqual(figures["issued"], figures["completed"])
        self.assertGreater(figures["issued"], figures["errors"])
        analyzed = self.figures(result, name + "_analyzed")
        self.assertEqual(analyzed["ios"], figures["issued"])
        return figures

    def test_faults_of_a_drive_end_in_figures(self):
        result = self.run_guest(r"""
            written() { awk '{print $5}' /sys/block/$1/stat; }  # requests
            analyzed() { attempt $1_analyzed blktape analyze /tmp/$1.tape --json; }
            replay() {  # NAME TARGET OPTION...
              name=$1
              target=$2
              shift 2
              attempt $name blktape replay /sample.tape --target $target --overwrite --yes --json -o /tmp/$name.tape "$@"
              analyzed $name
            }
            # NAME DISK TARGET OPTION...: in the background, and returns when it has written for a while.
            begin() {
              name=$1
              disk=$2
              target=$3
              shift 3
              goal=$(($(written $disk) + 300))
              blktape replay /sample.tape --target $target --overwrite --yes --json -o /tmp/$name.tape --speed 3 "$@" \
                > /out/$name.out 2> /out/$name.err &
              replay=$!
              until [ $(written $disk) -ge $goal ]; do sleep 0.2; done
            }
            ended() {  # NAME: waits for it
              rc=0
              wait $replay || rc=$?
              echo $rc > /out/$1.rc
              analyzed $1
            }
            nvme=/dev/nvme0n1
            sectors=$(blockdev --getsz $nvme)

            # The first eighth works, the rest answers every request with an error.
            good=$((sectors / 8))
            printf '0 %d linear %s 0\n%d %d error\n' $good $nvme $good $((sectors - good)) | dmsetup create faulty
            replay error /dev/mapper/faulty --max --skip-discards --on-error continue
            attempt error_dump blktape dump --csv /tmp/error.tape
            replay stop /dev/mapper/faulty --max --skip-discards
            dmsetup remove faulty

            # Up for a second, then refusing writes for a second, and so on. The sample's third to
            # fifth second are reads, the tenth to fourteenth writes.
            echo "0 $sectors flakey $nvme 0 1 1 1 error_writes" | dmsetup create flakey
            replay flakey /dev/mapper/flakey --from 3s --to 14s --speed 2 --on-error continue
            attempt flakey_dump blktape dump --csv /tmp/flakey.tape
            dmsetup remove flakey

            # A file that loses its second half under the replay.
            mkfs.ext4 -q -E lazy_itable_init=1,nodiscard /dev/vda
            mount -t ext4 /dev/vda /mnt
            truncate -s 1G /mnt/file
            begin truncated vda /mnt/file --verify --on-error continue
            truncate -s 1M /mnt/file
            ended truncated

            begin interrupted nvme0n1 $nvme
            kill -INT $replay
            ended interrupted

            begin removed nvme0n1 $nvme
            echo 1 > /sys/block/nvme0n1/device/device/remove
            ended removed

            begin verified nvme1n1 /dev/nvme1n1 --engine libaio --verify --on-error continue
            echo 1 > /sys/block/nvme1n1/device/device/remove
            ended verified
            attempt verified_dump blktape dump --csv /tmp/verified.tape
        """, modules=["dm_mod", "dm_flakey", "ext4"], programs=["mkfs.ext4", "mount", "truncate"],
            disks=[guest.Disk("nvme", 1 << 30), guest.Disk("nvme", 1 << 30), guest.Disk("virtio", 1100 << 20)])

        with self.subTest("a part of the disk answers with errors"):
            figures = self.figures(result, "error")
            self.assertEqual(result.rc("error"), 3)
            # By the table of the device: what reaches beyond the good part fails with EIO, nothing else.
            end = (1 << 30) // 8 // 512
            transfers = [row for row in result.rows("error_dump.out") if row["op"] in ("read", "write")]
            beyond = [row for row in transfers if int(row["lba"]) + int(row["bytes"]) // 512 > end]
            self.assertGreater(len(beyond), 100)
            self.assertGreater(len(transfers), len(beyond) + 100)
            self.assertEqual([row for row in transfers if (row["error"] != "0") != (row in beyond)], [])
            self.assertEqual(figures["errors_by_errno"], {str(errno.EIO): len(beyond)})
            self.assertEqual(figures["errors"], len(beyond))
            self.assertEqual(figures["issued"], figures["planned"])
            self.assertEqual(self.figures(result, "error_analyzed")["ios"], figures["issued"])

        with self.subTest("the first error ends the replay"):
            self.check_partial(result, "stop", "(read|write) of .* failed: Input/output error")

        with self.subTest("a disk that fails now and then"):
            figures = self.figures(result, "flakey")
            self.assertEqual(result.rc("flakey"), 3)
            failed = [row for row in result.rows("flakey_dump.out") if row["error"] not in ("", "0")]
            self.assertEqual(figures["errors_by_errno"], {str(errno.EIO): len(failed)})
            self.assertIn("write", {row["op"] for row in failed})
            self.assertNotIn("read", {row["op"] for row in failed})
            self.assertIn("read", {row["op"] for row in result.rows("flakey_dump.out")})
            self.assertEqual(figures["issued"], figures["completed"])

        with self.subTest("a file is cut short"):
            figures = self.figures(result, "truncated")
            self.assertEqual(result.rc("truncated"), 3)
            self.assertEqual(figures["issued"], figures["planned"])
            self.assertEqual(figures["errors"], 0)
            # What had been written beyond the new end is gone.
            self.assertGreater(figures["verify_mismatches"], 0)
            self.assertEqual(self.figures(result, "truncated_analyzed")["ios"], figures["issued"])

        with self.subTest("interrupted"):
            figures = self.check_partial(result, "interrupted", "^interrupted$")
            self.assertEqual(figures["errors"], 0)

        with self.subTest("the disk is removed"):
            figures = self.check_partial(result, "removed", "failed: ")
            self.assertGreater(figures["errors"], 0)

        with self.subTest("the disk is removed under a replay that verifies and goes on"):
            figures = self.figures(result, "verified")
            self.assertEqual(result.rc("verified"), 3)
            self.assertEqual(figures["issued"], figures["planned"])
            self.assertGreater(figures["issued"], figures["errors"])
            self.assertGreater(figures["errors"], 0)
            # Not one of the sectors that hold a write can be read any more.
            written = set()
            for row in result.rows("verified_dump.out"):
                sectors = range(int(row["lba"] or 0), int(row["lba"] or 0) + int(row["bytes"] or 0) // 512)
                if row["op"] == "write" and row["error"] in ("", "0"):
                    written.update(sectors)
                elif row["op"] in ("write", "discard"):
                    written.difference_update(sectors)
            self.assertGreater(len(written), 0)
            self.assertEqual(figures["verify_mismatches"], len(written))
            self.assertRegex(figures["first_mismatch"],
                             "^final sweep: sector %d of target 0 cannot be read" % min(written))
            self.assertEqual(self.figures(result, "verified_analyzed")["ios"], figures["issued"])


if __name__ == "__main__":
    cases.main()
