"""blktrace -k ends everybody's tracing of a disk, a recorder's too: the trace says from when on it lacks the disk."""

import unittest

from tests.guest import guest
from tests.harness import blktape, cases

SCRIPT = r"""
work() { for disk in nvme0n1 vda; do /usr/bin/dd if=/dev/$disk of=/dev/null bs=4k count=10 iflag=direct; done; }
record() {  # NAME DEVICE...
  name=$1
  shift
  blktape record --source blktrace "$@" -o /out/$name.tape > /out/$name.said 2> /out/$name.log & recorder=$!
  until grep -q recording /out/$name.log; do sleep 0.1; done
}
# What the kernel still holds then is gone with it.
kept() {  # NAME READS
  until [ "$(blktape dump /out/$1.tape.partial --csv 2> /dev/null | grep -c ',dd,')" -ge $2 ]; do sleep 0.2; done
}

record one -d nvme0n1 -d vda
work
kept one 20
blktrace -k -d /dev/nvme0n1
until grep -q 'nvme0n1 is recorded no more' /out/one.log; do sleep 0.1; done
# Whoever ended it may begin one of his own.
blktrace -d /dev/nvme0n1 -o - > /dev/null & other=$!
until [ -e /sys/kernel/debug/block/nvme0n1/trace0 ]; do sleep 0.1; done
work
sleep 1
kill -TERM $recorder
attempt one_end wait $recorder
ls /sys/kernel/debug/block/nvme0n1 > /out/other
kill -INT $other
wait $other || true

record all -d nvme0n1
work
kept all 10
blktrace -k -d /dev/nvme0n1
attempt all_end wait $recorder
"""


class TakenAwayTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())

    def reads(self, result, name):
        """By disk, those of dd."""
        rows = [row for row in blktape.dump(result.path(name), accept=(3,)) if row["process"] == "dd"]
        return {disk: sum(row["device"] == disk for row in rows) for disk in ("nvme0n1", "vda")}

    def test_the_part_of_the_disk_ends_there(self):
        result = guest.Guest(programs=["dd", "blktrace"], disks=[
            guest.Disk("nvme", 64 << 20), guest.Disk("virtio", 64 << 20)]).run(SCRIPT).check()
        with self.subTest("one of two disks"):
            self.assertEqual(result.rc("one_end"), 3)
            self.assertEqual(self.reads(result, "one.tape"), {"nvme0n1": 10, "vda": 20})
            info = blktape.as_json("info", result.path("one.tape"), accept=(3,))
            [loss] = [loss for loss in info["losses"] if loss["reason"] == "TRACING_ENDED"]
            self.assertIn("nvme0n1", blktape.run("info", result.path("one.tape")).stdout)
            self.assertIn("trace0", result.text("other"))
        with self.subTest("all there are"):
            # It ends by itself, and says why.
            self.assertEqual(result.rc("all_end"), 3)
            self.assertIn("nvme0n1 is recorded no more", result.text("all.log"))
            self.assertIn("LOST", result.text("all.said"))
            self.assertEqual(self.reads(result, "all.tape"), {"nvme0n1": 10, "vda": 0})
            self.assertIn("tracing ended by others", blktape.run("info", result.path("all.tape")).stdout)


if __name__ == "__main__":
    cases.main()
