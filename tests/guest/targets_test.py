"""Targets that a machine under test rarely offers: holders, faults, a disk that vanishes mid-replay."""

import json
import unittest

from tests.guest import guest
from tests.harness import cases

DISK = guest.Disk("nvme", 1 << 30, "candidate")
FILES = {"sample.tape": "tests/data/sample.tape"}


class TargetsTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def run_guest(self, script, modules=(), programs=(), disks=(DISK,)):
        return guest.Guest(programs=["dmsetup", "sha256sum", "blockdev", *programs], modules=list(modules),
                           disks=list(disks), files=FILES, timeout_s=300).run(script).check()

    def test_a_disk_that_anything_stands_on_is_refused_unharmed(self):
        result = self.run_guest(r"""
            disk=/dev/nvme0n1
            before=$(sha256sum < $disk)
            refused() {
              attempt $1 blktape replay /sample.tape --target $disk --overwrite --yes
              [ "$(sha256sum < $disk)" = "$before" ]
            }
            echo "0 65536 linear $disk 0" | dmsetup create below
            refused linear
            dmsetup remove below
            echo "0 65536 crypt aes-xts-plain64 $(printf %064d 7) 0 $disk 0" | dmsetup create secret
            refused crypt
            dmsetup remove secret
            # A file system on a device-mapper device on the disk.
            echo "0 131072 linear $disk 2048" | dmsetup create below
            mkfs.ext4 -q /dev/mapper/below
            mount -t ext4 /dev/mapper/below /mnt
            sync
            before=$(sha256sum < $disk)
            refused mounted_above
            umount /mnt
            dmsetup remove below
            # Open exclusively by somebody in user space.
            dd if=/dev/zero of=/tmp/md.img bs=1M count=4 2> /dev/null
        """, modules=["dm_mod", "dm_crypt", "xts", "ecb", "ext4"], programs=["mkfs.ext4", "dd"])
        for name in ("linear", "crypt", "mounted_above"):
            self.assertEqual(result.rc(name), 1, name)
            self.assertIn("/dev/nvme0n1", result.text(name + ".err"))
        self.assertRegex(result.text("linear.err"), "below|dm-0")
        self.assertRegex(result.text("crypt.err"), "secret|crypt|dm-0")
        self.assertIn("/mnt", result.text("mounted_above.err"))

    def test_an_lvm_member_is_refused(self):
        result = self.run_guest(r"""
            # What pvcreate writes into the second sector: enough for every tool to call it a member.
            printf 'LABELONE\001\000\000\000\000\000\000\000' | dd of=/dev/nvme0n1 bs=512 seek=1 conv=notrunc 2> /dev/null
            printf 'LVM2 001' | dd of=/dev/nvme0n1 bs=1 seek=536 conv=notrunc 2> /dev/null
            sync
            before=$(sha256sum < /dev/nvme0n1)
            attempt unnamed blktape replay /sample.tape --target /dev/nvme0n1 --yes
            [ "$(sha256sum < /dev/nvme0n1)" = "$before" ]
        """, programs=["dd"])
        self.assertEqual(result.rc("unnamed"), 1)
        self.assertIn("/dev/nvme0n1", result.text("unnamed.err"))

    def figures(self, result, name):
        return json.loads(result.text(name + ".out"))

    def test_faults_of_the_drive_are_counted_and_the_result_stays_readable(self):
        result = self.run_guest(r"""
            sectors=$(blockdev --getsz /dev/nvme0n1)
            # The first quarter works, the rest answers every request with an error.
            quarter=$((sectors / 4))
            printf '0 %d linear /dev/nvme0n1 0\n%d %d error\n' $quarter $quarter $((sectors - quarter)) | dmsetup create faulty
            attempt continue blktape replay /sample.tape --target /dev/mapper/faulty --overwrite --yes --max \
              --on-error continue -o /tmp/faulty.tape --json
            attempt analyzed blktape analyze /tmp/faulty.tape --json
            dmsetup remove faulty
            # Up for a second, then refusing writes for a second, and so on.
            echo "0 $sectors flakey /dev/nvme0n1 0 1 1 1 error_writes" | dmsetup create flakey
            attempt flakey blktape replay /sample.tape --target /dev/mapper/flakey --overwrite --yes \
              --idle-cap 5ms --on-error continue --json
            dmsetup remove flakey
        """, modules=["dm_mod", "dm_flakey"])
        figures = self.figures(result, "continue")
        self.assertEqual(result.rc("continue"), 3)
        self.assertGreater(figures["errors"], 0)
        self.assertEqual(figures["issued"], figures["completed"])
        self.assertIn(result.rc("analyzed"), (0, 3))
        self.assertEqual(json.loads(result.text("analyzed.out"))["ios"], figures["issued"])
        self.assertGreater(self.figures(result, "flakey")["errors"], 0)
        self.assertEqual(result.rc("flakey"), 3)

    def test_a_disk_removed_mid_replay_ends_it_with_a_reason(self):
        result = self.run_guest(r"""
            blktape replay /sample.tape --target /dev/nvme0n1 --overwrite --yes -o /tmp/cut.tape \
              > /out/removed.out 2> /out/removed.err &
            pid=$!
            sleep 3
            echo 1 > /sys/block/nvme0n1/device/device/remove
            rc=0
            wait $pid || rc=$?
            echo $rc > /out/removed.rc
            attempt analyzed blktape analyze /tmp/cut.tape --json
        """)
        self.assertIn(result.rc("removed"), (1, 3))
        self.assertNotEqual(result.text("removed.err") + result.text("removed.out"), "")
        self.assertIn(result.rc("analyzed"), (0, 3))
        self.assertGreater(json.loads(result.text("analyzed.out"))["ios"], 0)

    def test_a_disk_removed_mid_recording_ends_its_part_alone(self):
        result = self.run_guest(r"""
            cat > /work <<'END'
            dd if=/dev/nvme0n1 of=/dev/null bs=64k count=200 iflag=direct
            echo 1 > /sys/block/nvme0n1/device/device/remove
            sleep 1
            dd if=/dev/vda of=/dev/null bs=64k count=100 iflag=direct
END
            attempt recorded blktape record --device nvme0n1 --device vda --settle 0s -o /tmp/two.tape -- sh /work
            attempt info blktape info /tmp/two.tape
            attempt two blktape dump --csv /tmp/two.tape
        """, programs=["dd"], disks=(DISK, guest.Disk("virtio", 64 << 20)))
        # Finished, and what is missing is named.
        self.assertEqual((result.rc("recorded"), result.rc("two")), (3, 3))
        self.assertIn("device removed", result.text("info.out"))
        text = result.text("two.out")
        self.assertEqual(text.count(",nvme0n1,read,"), 200)
        self.assertEqual(text.count(",vda,read,"), 100)


if __name__ == "__main__":
    cases.main()
