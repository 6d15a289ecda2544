"""Which disks `record --mount` takes on real stacks, and whether what they are told to hold lies there.

Each 64 KiB that dd wrote is looked for on the bare disk at the place that the recording tells.
"""

import collections
import hashlib
import json
import unittest

from tests.guest import guest
from tests.harness import cases

BLOCK_BYTES = 65536
BLOCKS = 16
SOURCES = ("tracefs", "bpf")

SCRIPT = r"""
head -c $((16 * 65536)) /dev/urandom > /out/content
check() {  # NAME DISKS DD_WORD...: what both sources tell of this dd, and what lies on the disks there
  name=$1
  disks=$2
  shift 2
  sync
  echo 3 > /proc/sys/vm/drop_caches
  attempt $name blktape record $disks --settle 0s --source tracefs -o /tmp/$name.tracefs.tape -- \
    blktape record $disks --settle 0s --source bpf -o /tmp/$name.bpf.tape -- dd bs=64k count=16 "$@"
  for source in tracefs bpf; do
    blktape info /tmp/$name.$source.tape --json > /out/$name.$source.json
    blktape dump --csv /tmp/$name.$source.tape |
      awk -F, '$8 == 65536 && ($5 == "write" || $5 == "read") { print $4, $5, $7 }' |
      /block_digests > /out/$name.$source.found
  done
}
write() {  # NAME FOLDER
  check $1 "--mount $2" if=/out/content of=$2/written oflag=direct
}
mkfs_ext4() { mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $1; }
# Else an array writes its superblocks once more when it has been idle for a while, also as a recording begins or ends.
stay_active() { echo 0 > /sys/block/$1/md/safe_mode_delay; }
for name in raid linear thin btrfs parted logged plain hidden/below bind merged; do mkdir -p /x/$name; done

mdadm --quiet --create /dev/md0 --run --level=1 --raid-devices=2 --metadata=1.2 --assume-clean /dev/vda /dev/vdb
stay_active md0
mkfs_ext4 /dev/md0
mount /dev/md0 /x/raid
write raid /x/raid

# In chunks of 64 KiB: each on one disk, with a parity for two of them (RAID 5), or on two disks (RAID 10).
for level in 5 10; do
  mdadm --quiet --create /dev/md$level --run --level=$level --chunk=64 --raid-devices=3 --metadata=1.2 --assume-clean \
    /dev/vdj /dev/vdk /dev/vdl < /dev/null
  stay_active md$level
  check raid$level "--device /dev/md$level" if=/out/content of=/dev/md$level oflag=direct
  mdadm --quiet --stop /dev/md$level
  mdadm --quiet --zero-superblock /dev/vdj /dev/vdk /dev/vdl
done

# 31 extents of 4 MiB lie on the first, behind the 1 MiB of LVM's own.
pvcreate -qq /dev/vdc /dev/vdd
vgcreate -qq attic /dev/vdc /dev/vdd
lvcreate -qq --zero n --wipesignatures n -l 40 -n box attic 2> /dev/null
check across "--device /dev/mapper/attic-box" if=/out/content of=/dev/mapper/attic-box oflag=direct \
  seek=$((31 * 64 - 8))
mkfs_ext4 /dev/mapper/attic-box
mount /dev/mapper/attic-box /x/linear
write linear /x/linear
lvcreate -qq --config 'global { thin_check_executable = "" }' --zero n -T -L 16M -V 64M -n light attic/pool
mkfs_ext4 /dev/mapper/attic-light
mount /dev/mapper/attic-light /x/thin
write thin /x/thin

# Each block on both; the mount is told only one of them.
mkfs.btrfs -q -d raid1 -m raid1 /dev/vde /dev/vdf > /dev/null
mount -t btrfs -o device=/dev/vde,device=/dev/vdf /dev/vde /x/btrfs
btrfs -q subvolume create /x/btrfs/sub
mount -t btrfs -o subvol=sub,device=/dev/vde,device=/dev/vdf /dev/vdf /x/bind
write btrfs /x/btrfs
write subvolume /x/bind
umount /x/bind

addpart /dev/vdg 1 8192 716800
mkfs.xfs -q /dev/vdg1
mount -t xfs /dev/vdg1 /x/parted
write parted /x/parted
mkdir "/x/parted/up, per" /x/parted/work
mount --bind "/x/parted/up, per" /x/bind
write bind /x/bind

mkfs.xfs -q -l logdev=/dev/vdi /dev/vdh
mount -t xfs -o logdev=/dev/vdi /dev/vdh /x/logged
write logged /x/logged

# A folder of a mount is not that of an earlier mount of the same name.
mkfs_ext4 /dev/nvme0n1
mount /dev/nvme0n1 /x/hidden/below
mount --bind /x/parted /x/hidden
mkdir /x/hidden/below
write hidden /x/hidden/below
umount /x/hidden

mkdir /x/hidden/below/lower
cp /out/content /x/hidden/below/lower/read
mount -t overlay -o 'lowerdir=/x/hidden/below/lower,upperdir=/x/parted/up\, per,workdir=/x/parted/work' \
  overlay /x/merged
write merged /x/merged
check lower "--mount /x/merged" if=/x/merged/read of=/dev/null iflag=direct
"""


class MountsGuestTest(unittest.TestCase):
    def test_a_mount_leads_to_the_disks_that_hold_it(self):
        cases.need(not guest.missing(), guest.missing())
        result = guest.Guest(
            programs=["dd", "awk", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "btrfs", "mount", "umount", "mdadm",
                      "pvcreate", "vgcreate", "lvcreate", "addpart"],
            modules=["ext4", "xfs", "btrfs", "raid1", "raid456", "raid10", "dm_mod", "dm_thin_pool", "overlay"],
            disks=[guest.Disk("virtio", 128 << 20) for _ in range(4)] +
                  [guest.Disk("virtio", 400 << 20) for _ in range(5)] +
                  [guest.Disk("virtio", 48 << 20) for _ in range(3)] + [guest.Disk("nvme", 64 << 20)],
            files={"block_digests": "tests/guest/block_digests"}, memory_mib=1536).run(SCRIPT).check()
        with open(result.path("content"), "rb") as file:
            content = [hashlib.sha256(file.read(BLOCK_BYTES)).hexdigest() for _ in range(BLOCKS)]
        whole = collections.Counter(content)
        # Name to the disks recorded and what is found on each of those that were written or read.
        expected = {
            "raid": {"vda": whole, "vdb": whole},
            # Of three disks with two copies, chunk n is on those of number 2n and 2n + 1 (md(4): near copies).
            "raid10": {disk: collections.Counter(content[n] for n in range(BLOCKS) if at in (2 * n % 3, (2 * n + 1) % 3))
                       for at, disk in enumerate(("vdj", "vdk", "vdl"))},
            "across": {"vdc": collections.Counter(content[:8]), "vdd": collections.Counter(content[8:])},
            "btrfs": {"vde": whole, "vdf": whole},
            "subvolume": {"vde": whole, "vdf": whole},
            "parted": {"vdg": whole},
            "bind": {"vdg": whole},
            "logged": {"vdh": whole, "vdi": None},
            "hidden": {"vdg": whole},
            "merged": {"nvme0n1": None, "vdg": whole},
            "lower": {"nvme0n1": whole, "vdg": None},
            # Where LVM and the file system place it is theirs to choose.
            "linear": {"vdc": ..., "vdd": ...},
            # Nothing is left of the first.
            "thin": {"vdd": whole},
        }
        for source in SOURCES:
            with self.subTest("raid5", source=source):
                self.check_raid5(result, source, content)
        for name, disks in expected.items():
            for source in SOURCES:
                with self.subTest(name, source=source):
                    self.check(result, name, source, disks, whole)

    def check_whole(self, result, name, source, disks):
        self.assertEqual(result.rc(name), 0, result.text(name + ".err"))
        info = json.loads(result.text("%s.%s.json" % (name, source)))
        self.assertEqual([device["name"] for device in info["header"]["devices"]], sorted(disks))
        self.assertEqual(info["losses"], [])

    def check_raid5(self, result, source, content):
        """Beside the chunks there are their parities, and what is read to make those."""
        self.check_whole(result, "raid5", source, ("vdj", "vdk", "vdl"))
        lines = [line.split() for line in result.text("raid5.%s.found" % source).splitlines()]
        written = {(disk, int(lba), digest) for disk, op, lba, digest in lines if op == "write" and digest in content}
        # The parity goes from the last disk to the first, data begin on the one behind it (md(4), mdadm(8):
        # left-symmetric).
        begin = min(lba for _, lba, _ in written)
        expected = set()
        for n, digest in enumerate(content):
            stripe, place = divmod(n, 2)
            parity = 2 - stripe % 3
            expected.add((("vdj", "vdk", "vdl")[(parity + 1 + place) % 3], begin + 128 * stripe, digest))
        self.assertEqual(written, expected)

    def check(self, result, name, source, disks, whole):
        self.check_whole(result, name, source, disks)
        found = collections.defaultdict(collections.Counter)
        for line in result.text("%s.%s.found" % (name, source)).splitlines():
            disk, op, _, digest = line.split()
            self.assertEqual(op, "read" if name == "lower" else "write")
            found[disk][digest] += 1
        if ... in disks.values():
            self.assertEqual(sum(found.values(), collections.Counter()), whole)
        else:
            self.assertEqual(dict(found), {disk: blocks for disk, blocks in disks.items() if blocks})
        if name == "across":
            places = [line.split()[:3] for line in result.text("across.%s.found" % source).splitlines()]
            first = 2048 + 31 * 8192 - 8 * 128  # behind 1 MiB, eight blocks before the end of 31 extents
            self.assertEqual(places, [["vdc", "write", str(first + 128 * i)] for i in range(8)] +
                             [["vdd", "write", str(2048 + 128 * i)] for i in range(8)])


if __name__ == "__main__":
    cases.main()
