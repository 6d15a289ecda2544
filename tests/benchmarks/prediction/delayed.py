"""Whether a replay tells what one would have waited on the other drive: on disks that the kernel delays, in a guest.

    BLKTAPE_GUEST_KERNEL=FOLDER bazel run -c opt //tests/benchmarks/prediction:delayed -- [--pairs 24/24/36:120/120/180]

As prediction.py, with a test bed that has nothing in common with it: another kernel (FOLDER holds it: see
tools/setup), device-mapper's `delay` over null_blk in memory under a loop device, and other programs. The
processor is emulated, and the delays, in whole ms of READ/WRITE/FLUSH, are so long that it does not matter
much. The kernel rounds them to its clock, which ticks every 4 ms.
"""

import argparse
import os
import random

from tests.benchmarks import common
from tests.benchmarks.prediction import prediction
from tests.guest import guest
from tests.harness import blktape

PROGRAMS = ["chrt", "dd", "dmsetup", "fio", "losetup", "mkfs.ext4", "mount", "sqlite3", "umount"]
MODULES = ["dm_crypt", "dm_delay", "ecb", "ext4", "loop", ("null_blk", None)]

# What lies between the disk and its file system; the disk is recorded and replayed on. Without a cipher, which would keep
# the emulated processor from serving the disks.
LAYERS = {"none": "", "lvm": "linear DISK 0", "luks": "crypt cipher_null-ecb - 0 DISK 0"}

SCRIPT = r"""
echo 1 > /sys/devices/virtual/workqueue/writeback/nice
disks_first() {  # as test_bed.py has it; the delays' own workers, too
  while sleep 0.5; do
    for folder in /proc/[0-9]*; do
      read -r name < $folder/comm || continue
      read -r stat < $folder/stat || continue
      set -- ${stat##*) }
      # nice is 0, and the policy not yet that of real time
      case $name,${17},${39} in kworker/*,0,0) chrt -f -p 40 ${folder#/proc/} ;; esac
    done
  done
}
disks_first 2> /dev/null &
insmod /modules/null_blk.ko nr_devices=2 gb=1 memory_backed=1 queue_mode=2 irqmode=0
disk() {  # NAME NUMBER READ WRITE FLUSH: delays in ms
  below=/dev/nullb$2
  echo "0 $(cat /sys/block/nullb$2/size) delay $below 0 $3 $below 0 $4 $below 0 $5" | dmsetup create $1
  losetup --direct-io=on /dev/loop$2 /dev/mapper/$1
}
fresh() {  # DEVICE: a new file system with what the work needs
  mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard $1
  again $1
  (cd /mnt && sh -eu /prepare)
  sync
  umount /mnt
  again $1
}
again() { mount -t ext4 -o noatime,noinit_itable $1 /mnt; }
live() {  # DEVICE TRACE
  volume=$1
  if [ "$LAYER" ]; then
    echo "0 $(cat /sys/block/${1#/dev/}/size) $LAYER" | sed "s,DISK,$1," | dmsetup create volume
    volume=/dev/mapper/volume
  fi
  fresh $volume
  (cd /mnt && blktape record --device $1 --settle 3s -o $2 -- sh -eu /workload)
  umount /mnt
  [ -z "$LAYER" ] || dmsetup remove volume
}
replay() {  # DEVICE TRACE RESULT OPTION ...: 3 is what a result is worth that came late, as here some do
  attempt replay blktape replay $2 --target $1 --overwrite --yes --unsupported skip $4 -o $3
  case $(cat /out/replay.rc) in 0 | 3) ;; *) cat /out/replay.err >&2; exit 1 ;; esac
}
"""


def sqlite_work(rng):
    """A program that keeps what it knows in a data base: looks up, changes, commits."""
    work = ["PRAGMA cache_size = 50;"]
    for _ in range(50):
        work += ["SELECT sum(length(body)) FROM item WHERE id = %d;" % rng.randrange(1, 4000) for _ in range(6)]
        work += ["BEGIN;"]
        work += ["UPDATE item SET body = zeroblob(%d) WHERE id = %d;" % (rng.randrange(100, 2000), rng.randrange(1, 4000))
                 for _ in range(3)]
        work += ["COMMIT;"]
    fill = ("CREATE TABLE item (id INTEGER PRIMARY KEY, body BLOB); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
            "i + 1 FROM n WHERE i < 4000) INSERT INTO item SELECT i, zeroblob(2000) FROM n;")
    return ("echo '%s' | sqlite3 base" % fill, "cat /queries | sqlite3 base > /dev/null", {"queries": "\n".join(work) + "\n"})


def fio_work(rng):
    """Three programs side by side: two read at random and think, one saves."""
    words = "--size=32m --bsrange=4k-32k --ioengine=psync --invalidate=0 --output=/dev/null"
    work = ["fio --name=read%d --filename=read%d --rw=randread --number_ios=300 --fadvise_hint=random --thinktime=%d "
            "--randseed=%d %s &" % (number, number, rng.randrange(2000, 9000), rng.randrange(1 << 30), words)
            for number in range(2)]
    work += ["fio --name=save --filename=save --rw=randwrite --number_ios=60 --fsync=1 --thinktime=20000 --randseed=%d "
             "%s &" % (rng.randrange(1 << 30), words), "wait"]
    prepare = ["dd if=/dev/urandom of=%s bs=1M count=32 2> /dev/null" % name for name in ("read0", "read1", "save")]
    return "\n".join(prepare), "\n".join(work), {}


def shell_work(rng):
    """Documents are opened and saved while a large file is copied behind."""
    prepare = ["dd if=/dev/urandom of=film bs=1M count=48 2> /dev/null"]
    prepare += ["dd if=/dev/urandom of=document%d bs=1k count=%d 2> /dev/null" % (number, rng.choice((3, 9, 30, 120)))
                for number in range(120)]
    work = ["dd if=film of=copy bs=1M conv=fsync 2> /dev/null &"]
    for number in rng.sample(range(120), 80):
        work.append("cat document%d > /tmp/seen" % number)
        work.append("sleep 0.0%d" % rng.randrange(1, 4))
        if number % 3 == 0:
            work.append("dd if=/tmp/seen of=new bs=1M conv=fsync 2> /dev/null; mv new document%d" % number)
    return "\n".join(prepare), "\n".join([*work, "wait"]), {}


WORKLOADS = {"sqlite": sqlite_work, "fio": fio_work, "shell": shell_work}


def predict(bench, workload, pair, options):
    prepare, work, more = WORKLOADS[workload](random.Random(options.seed))
    files = {}
    for name, text in {"prepare": prepare, "workload": work, **more}.items():
        files[name] = bench.path(name)
        with open(files[name], "w", encoding="ascii") as file:
            file.write(text + "\n")
    names = ("fast", "slow")
    script = [SCRIPT, "LAYER='%s'" % LAYERS[options.layer]]
    script += ["disk %s %d %s" % (name, number, delays.replace("/", " "))
               for number, (name, delays) in enumerate(zip(names, pair.split(":")))]
    rounds = range(options.rounds)
    numbers = {name: number for number, name in enumerate(names)}
    for run in rounds:
        script += ["live /dev/loop%d /out/%s-%d.tape" % (numbers[name], name, run) for name in names]
        script += ["replay /dev/loop%d /out/%s-%d.tape /out/%s-%s-%s-%d.tape %s" % (
            numbers[name], source, run, how, source, name, run, "--closed" if how == prediction.CLOSED else "--timed")
                   for how, source, name in prediction.crossings(options.loops, names)]
    result = guest.Guest(programs=PROGRAMS, modules=MODULES, files=files, memory_mib=2048, timeout_s=3600).run(
        "\n".join(script)).check()
    runs = {name: [prediction.figures(result.path("%s-%d.tape" % (name, run))) for run in rounds] for name in names}
    replays = {(how, source, name): [prediction.figures(result.path("%s-%s-%s-%d.tape" % (how, source, name, run)),
                                                        result.path("%s-%d.tape" % (source, run))) for run in rounds]
               for how, source, name in prediction.crossings(options.loops, names)}
    return prediction.compare(workload, runs, replays)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--pairs", default="24/24/36:120/120/180", help="FAST:SLOW, each READ/WRITE/FLUSH in ms")
    parser.add_argument("--layer", default="none", choices=LAYERS, help="between the disk and the file system")
    prediction.add_loops(parser)
    parser.add_argument("--rounds", type=int, default=3, help="live runs on each disk, each with its recording")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if guest.missing():
        parser.error(guest.missing())
    prediction.tell_header()
    offs = []
    for pair in options.pairs.split(","):
        print(pair)
        for workload in options.workloads.split(","):
            with common.Bench() as bench:
                offs += predict(bench, workload, pair, options)
    prediction.tell_medians(offs)


if __name__ == "__main__":
    main()
