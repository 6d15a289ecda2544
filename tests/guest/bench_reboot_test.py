"""The power fails in the middle of a bench of three drives: after the reboot it goes on, and no finished run is lost
or done twice."""

import json
import os
import tempfile
import unittest

from tests.guest import guest
from tests.harness import cases

BENCH = ("blktape bench /sample.tape --target /dev/nvme0n1 --target /dev/nvme1n1 --target sim:sata-2011 --overwrite"
         " --yes --cycles 2 --to 3s --idle-cap 1ms --pause 1ms --no-db -o /mnt/bench")
MAKE = """
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/vda
mount -t ext4 /dev/vda /mnt
%s > /tmp/log 2>&1 &
looks=0
while [ "$(ls /mnt/bench/*/cycle-*.tape 2>/dev/null | wc -l)" -lt 3 ]; do
  kill -0 $! || { cat /tmp/log > /dev/console; exit 1; }
  sleep 0.05
  looks=$((looks + 1))
  if [ $((looks %% 600)) = 0 ]; then
    # What it is at, should the time not suffice.
    { tail -c 400 /tmp/log; head -n 9 /proc/$!/task/*/comm /proc/$!/task/*/stack; } > /dev/console
  fi
done
for run in $(ls /mnt/bench/*/cycle-*.tape); do
  echo "finished $run $(sha256sum < $run)" > /dev/console
done
sleep 0.1
echo power goes now > /dev/console
sleep 100
""" % BENCH
GO_ON = """
mount -t ext4 /dev/vda /mnt
for run in $(ls /mnt/bench/*/cycle-*.tape); do echo "$run $(sha256sum < $run)"; done > /out/before
attempt bench %s
for run in $(ls /mnt/bench/*/cycle-*.tape); do echo "$run $(sha256sum < $run)"; done > /out/after
for folder in /mnt/bench/*/; do cp $folder/report.json /out/$(basename $folder).json; done
ls /mnt/bench/*/ > /out/ls
""" % BENCH


def runs_of(text):
    """Digest by run."""
    return {words[0]: words[1] for words in map(str.split, text.splitlines()) if len(words) >= 2}


class BenchRebootTest(unittest.TestCase):
    def test_it_goes_on_after_a_reboot(self):
        cases.need(not guest.missing(), guest.missing())
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            disks = [guest.Disk("nvme", 2 << 30, image=os.path.join(folder, "first")),
                     guest.Disk("nvme", 2 << 30, image=os.path.join(folder, "second")),
                     guest.Disk("virtio", 256 << 20, image=os.path.join(folder, "results"))]
            machine = guest.Guest(programs=["mkfs.ext4", "mount"], modules=["ext4"], disks=disks,
                                  files={"sample.tape": "tests/data/sample.tape"})
            console = machine.run_until(MAKE, "power goes now")
            finished = runs_of("\n".join(line.partition("finished ")[2] for line in console.splitlines()
                                         if "finished /mnt" in line))
            self.assertGreaterEqual(len(finished), 3, console[-3000:])
            result = machine.run(GO_ON).check()
        before, after = runs_of(result.text("before")), runs_of(result.text("after"))
        said = result.text("bench.err")
        self.assertIn(result.rc("bench"), (0, 3), said)
        for run, digest in finished.items():
            self.assertEqual(before.get(run), digest, "lost: " + run)
        for run, digest in before.items():
            self.assertEqual(after.get(run), digest, "done twice: " + run)
        self.assertIn("done", said)
        self.assertNotIn(".partial", result.text("ls"))
        runs = 0
        for target in ("nvme0n1", "nvme1n1", "sim-sata-2011"):
            report = json.loads(result.text(target + ".json"))
            runs += len(report["runs"])
            # An emulated machine is often late: then a cycle is measured again, or the score is ended as invalid.
            self.assertTrue(report["cycles"] == 2 or report["ended_early"], said)
        self.assertEqual(len(after), runs)


if __name__ == "__main__":
    cases.main()
