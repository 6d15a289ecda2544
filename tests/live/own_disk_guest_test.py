"""On a machine where nothing else runs: recording the disk under the trace, which may be encrypted or mirrored.

BLKTAPE_OWN_DISK_SECONDS=600 makes it ten minutes:
  bazel test --test_env=BLKTAPE_OWN_DISK_SECONDS=600 --test_env=BLKTAPE_GUEST_KERNEL --test_timeout=1500 \\
    --test_output=all //tests/live:own_disk_guest_test
"""

import os
import unittest

from tests.guest import guest
from tests.harness import blktape, cases

SECONDS = int(os.environ.get("BLKTAPE_OWN_DISK_SECONDS", "25"))

# Stack and file system; each is recorded by both sources at once, on disks of its own. Not ext4
# on a mirror: capture/session/own_io.h says why.
STACKS = ("plain-ext4", "plain-xfs", "plain-btrfs", "crypt-ext4", "crypt-xfs", "crypt-btrfs", "mirror-xfs")
SOURCES = ("tracefs", "bpf")

SCRIPT = r"""
crypt() {  # NAME DISK
  echo "0 $(blockdev --getsz $2) crypt aes-xts-plain64 $(printf %064d 7) 0 $2 0" | dmsetup create $1
}
mirror() {  # ARRAY DISK DISK
  mdadm --quiet --create $1 --run --level=1 --raid-devices=2 --metadata=1.2 --assume-clean $2 $3
}
begin() {  # NAME FILE_SYSTEM DEVICE
  case $2 in
    # Else a kernel thread reads ahead and initializes whenever it finds the time.
    ext4) mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $3
          options=noinit_itable,no_prefetch_block_bitmaps ;;
    xfs) mkfs.xfs -q $3
         options=rw ;;
    # A commit every 5 s in place of 30.
    btrfs) mkfs.btrfs -q $3 > /dev/null
           options=commit=5 ;;
  esac
  mkdir /tmp/$1
  mount -t $2 -o $options $3 /tmp/$1
}
# xfs likewise.
echo 500 > /proc/sys/fs/xfs/xfssyncd_centisecs
SETUP
# What mkfs and mount left is somebody else's.
sync
sleep 5
sync
sleep 5
for name in NAMES; do
  blktape record --mount /tmp/$name --source ${name##*-} -o /tmp/$name/a.tape > /out/$name.log 2>&1 &
  pids="${pids:-} $!"
  until grep -q recording /out/$name.log; do sleep 0.1; done
done
sleep SECONDS
kill -TERM $pids
wait $pids
for name in NAMES; do cp /tmp/$name/a.tape /out/$name.tape; done
"""


class OwnDiskGuestTest(unittest.TestCase):
    def test_an_idle_disk_under_the_trace_gives_an_empty_trace(self):
        cases.need(not guest.missing(), guest.missing())
        setup, disks_of = [], {}
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        for stack in STACKS:
            kind, file_system = stack.split("-")
            for source in SOURCES:
                name = "%s-%s" % (stack, source)
                disks = ["vd" + next(letters) for _ in range(2 if kind == "mirror" else 1)]
                disks_of[name] = disks
                paths = ["/dev/" + disk for disk in disks]
                device = {"plain": paths[0], "crypt": "/dev/mapper/" + name, "mirror": "/dev/md%d" % len(setup)}[kind]
                if kind != "plain":
                    setup.append(" ".join([kind, name if kind == "crypt" else device, *paths]))
                setup.append("begin %s %s %s" % (name, file_system, device))
        script = SCRIPT.replace("SETUP", "\n".join(setup)).replace("NAMES", " ".join(disks_of))
        result = guest.Guest(
            programs=["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mount", "mdadm", "dmsetup", "blockdev"],
            modules=["ext4", "xfs", "btrfs", "raid1", "dm_mod", "dm_crypt", "xts", "ecb"],
            disks=[guest.Disk("virtio", 320 << 20) for disks in disks_of.values() for _ in disks], memory_mib=2048,
            timeout_s=200 + 2 * SECONDS).run(script.replace("SECONDS", str(SECONDS))).check()
        for name, disks in disks_of.items():
            with self.subTest(name):
                trace = result.path(name + ".tape")
                info = blktape.as_json("info", trace)
                self.assertEqual([device["name"] for device in info["header"]["devices"]], disks)
                rows = blktape.dump(trace)
                own = int(info["summary"].get("own_excluded", 0))
                print("%s: %d I/Os of its own left out in %d s, %d recorded" % (name, own, SECONDS, len(rows)), flush=True)
                self.assertEqual(rows, [], "\n".join(",".join(row.values()) for row in rows))
                self.assertEqual(info["losses"], [])
                # There was something to leave out: the trace itself is on that disk.
                self.assertGreater(own, 0)


if __name__ == "__main__":
    cases.main()
