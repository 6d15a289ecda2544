"""On a machine where nothing else runs: recording the disk under the trace, which may be encrypted.

BLKTAPE_OWN_DISK_SECONDS=600 makes it ten minutes:
  bazel test --test_env=BLKTAPE_OWN_DISK_SECONDS=600 --test_env=BLKTAPE_GUEST_KERNEL --test_timeout=1500 \\
    --test_output=all //tests/live:own_disk_guest_test
"""

import os
import unittest

from tests.guest import guest
from tests.harness import blktape, cases

SECONDS = int(os.environ.get("BLKTAPE_OWN_DISK_SECONDS", "10"))

SCRIPT = r"""
begin() {  # NAME DEVICE
  mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $2
  mkdir /tmp/$1
  # Else a kernel thread reads ahead and initializes whenever it finds the time.
  mount -o noinit_itable,no_prefetch_block_bitmaps $2 /tmp/$1
}
crypt() {  # NAME DISK
  echo "0 $(blockdev --getsz $2) crypt aes-xts-plain64 $(printf %064d 7) 0 $2 0" | dmsetup create $1
}
crypt crypt-tracefs /dev/vda
crypt crypt-bpf /dev/vdb
begin plain-tracefs /dev/nvme0n1
begin plain-bpf /dev/nvme1n1
begin crypt-tracefs /dev/mapper/crypt-tracefs
begin crypt-bpf /dev/mapper/crypt-bpf
# What mkfs and mount left is somebody else's.
sync
sleep 2
for name in plain-tracefs plain-bpf crypt-tracefs crypt-bpf; do
  blktape record --mount /tmp/$name --source ${name#*-} -o /tmp/$name/a.tape > /out/$name.log 2>&1 &
  pids="${pids:-} $!"
  until grep -q recording /out/$name.log; do sleep 0.1; done
done
sleep SECONDS
kill -TERM $pids
wait $pids
for name in plain-tracefs plain-bpf crypt-tracefs crypt-bpf; do cp /tmp/$name/a.tape /out/$name.tape; done
"""


class OwnDiskGuestTest(unittest.TestCase):
    def test_an_idle_disk_under_the_trace_gives_an_empty_trace(self):
        cases.need(not guest.missing(), guest.missing())
        disks = [guest.Disk(kind, 64 << 20) for kind in ("nvme", "nvme", "virtio", "virtio")]
        result = guest.Guest(programs=["mkfs.ext4", "dmsetup", "blockdev"],
                             modules=["ext4", "dm_mod", "dm_crypt", "xts", "ecb"], disks=disks,
                             timeout_s=200 + 2 * SECONDS).run(SCRIPT.replace("SECONDS", str(SECONDS))).check()
        for name, disk in (("plain-tracefs", "nvme0n1"), ("plain-bpf", "nvme1n1"), ("crypt-tracefs", "vda"),
                           ("crypt-bpf", "vdb")):
            with self.subTest(name):
                trace = result.path(name + ".tape")
                info = blktape.as_json("info", trace)
                self.assertEqual([device["name"] for device in info["header"]["devices"]], [disk])
                rows = blktape.dump(trace)
                own = int(info["summary"].get("own_excluded", 0))
                print("%s: %d I/Os of its own left out in %d s, %d recorded" % (name, own, SECONDS, len(rows)), flush=True)
                self.assertEqual(rows, [], "\n".join(",".join(row.values()) for row in rows))
                self.assertEqual(info["losses"], [])
                # There was something to leave out: the trace itself is on that disk.
                self.assertGreater(own, 0)


if __name__ == "__main__":
    cases.main()
