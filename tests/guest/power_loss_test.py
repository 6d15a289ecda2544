"""The power fails while a recorder writes: what had been flushed is on the disk of the trace, nothing written later."""

import os
import tempfile
import unittest

from tests.guest import guest
from tests.harness import cases

SECOND_NS = 1_000_000_000
WRITES = 1500

MAKE = """
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/vda
mount -t ext4 /dev/vda /mnt
blktape record --device nvme0n1 --source SOURCE -o /mnt/a.tape 2> /tmp/log &
until grep -q recording /tmp/log; do sleep 0.1; done
/timed_writes /dev/nvme0n1 100000 > /dev/console
"""
LOOK = """
mount -t ext4 /dev/vda /mnt
attempt info blktape info --json /mnt/a.tape.partial
attempt recover blktape recover /mnt/a.tape.partial
ls /mnt > /out/ls
attempt dump blktape dump --csv /mnt/a.tape
"""


class PowerLossTest(unittest.TestCase):
    def setUp(self):
        cases.need(not guest.missing(), guest.missing())
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def check_source(self, source):
        disks = [guest.Disk("nvme", 64 << 20),
                 guest.Disk("virtio", 64 << 20, image=os.path.join(self.folder, source))]
        machine = guest.Guest(programs=["mkfs.ext4", "mount"], modules=["ext4"], disks=disks,
                              files={"timed_writes": "tests/guest/timed_writes"})
        console = machine.run_until(MAKE.replace("SOURCE", source), "\nio %d " % (8 * WRITES))
        done = [tuple(map(int, words[1:])) for words in map(str.split, console.splitlines())
                if len(words) == 4 and words[0] == "io"]
        self.assertGreaterEqual(len(done), WRITES)
        last_ns = done[-1][2]

        result = machine.run(LOOK).check()
        self.assertEqual(result.rc("info"), 3)
        self.assertIn('"being_written": false', result.text("info.out"))
        self.assertEqual(result.rc("recover"), 3, result.text("recover.err"))
        self.assertEqual(set(result.text("ls").split()), {"a.tape", "lost+found"})
        rows = [row for row in result.rows("dump.out") if row["process"] == "timed_writes"]
        kept = len(rows)
        self.assertLessEqual(kept, len(done) + 1)
        for row, (lba, begin_ns, end_ns) in zip(rows, done):
            self.assertEqual((row["op"], int(row["lba"]), row["bytes"]), ("write", lba, "4096"))
            stamps = [begin_ns, *(int(row[name]) for name in ("queue_ns", "issue_ns", "complete_ns")), end_ns]
            self.assertEqual(stamps, sorted(stamps))
        # The last one said was done before the power went.
        due = sum(end_ns < last_ns - SECOND_NS for _, _, end_ns in done)
        self.assertGreater(due, 0)
        self.assertGreaterEqual(kept, due, "of %d" % len(done))
        print("%s: %d of %d I/Os are in the trace; at most the last %.0f ms are missing" % (
            source, kept, len(done), (last_ns - done[kept - 1][2]) / 1e6), flush=True)

    def test_it_costs_at_most_the_last_second(self):
        for source in ("bpf", "tracefs"):
            with self.subTest(source):
                self.check_source(source)


if __name__ == "__main__":
    cases.main()
