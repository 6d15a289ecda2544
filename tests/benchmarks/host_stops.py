"""What stops of the host do to a score: the same work on the same disk, with and without a thread that takes a CPU.

    bazel run -c opt //tests/benchmarks:host_stops -- [TRACE] [--rounds 3] [--cycles 3] [--stop-ms 20] [--every-ms 1000]

The disk's speed is known (a FUSE file in memory under a loop device: 600 us a read, 400 us a write, 2 ms a flush,
2.5 ns a byte, 8 at once); its threads have a CPU of their own. The other CPU, on which the replay issues, is taken
by a real-time thread above it: --stop-ms of every --every-ms. Rounds of both in turns; per round the two scores,
`off` by how much the disturbed one differs, whether both are valid, and the foreground wait. Without TRACE: the
repository's sample of a desktop.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

from tests.benchmarks import common
from tests.harness import blktape, known_disk

SAMPLE = "tests/data/sample.tape"
SPEED = (600, 400, 2000, 2.5, 8)
SIZE_MIB = 4096
# The replay's thread is at 10; the disk's is at 50 on the other CPU.
HOG = """
import os, sys, time
stop_ns, every_ns = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {int(sys.argv[3])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
while os.getppid() == int(sys.argv[4]):
    end_ns = time.monotonic_ns() + stop_ns
    while time.monotonic_ns() < end_ns:
        pass
    time.sleep((every_ns - stop_ns) / 1e9)
"""


def score(trace, device, folder, cycles):
    """Of one campaign."""
    blktape.ok("score", trace, "--target", device, "--overwrite", "--yes", "--cycles", cycles, "--no-db", "-o", folder,
               accept=(0, 3), timeout_s=3600)
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        return json.load(file)


def stopped(work, stop_ms, every_ms, cpu):
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(int(stop_ms * 1e6)), str(int(every_ms * 1e6)), str(cpu),
                            str(os.getpid())])
    try:
        return work()
    finally:
        hog.kill()
        hog.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", default=SAMPLE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cycles", type=int, default=3)
    parser.add_argument("--stop-ms", type=float, default=20)
    parser.add_argument("--every-ms", type=float, default=1000)
    flags = parser.parse_args()
    common.need_root()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        sys.exit("error: needs two CPUs")
    with common.Bench() as bench:
        # The replay takes the first CPU that it may.
        os.sched_setaffinity(0, cpus[1:])
        device = known_disk.KnownDisk(bench.path("known"), SIZE_MIB, SPEED, bench.callback).device
        os.sched_setaffinity(0, cpus)
        numbers = iter(range(1000))

        def quiet():
            return score(flags.trace, device, bench.path("score%d" % next(numbers)), flags.cycles)

        def disturbed():
            return stopped(quiet, flags.stop_ms, flags.every_ms, cpus[0])

        results = common.interleaved(flags.rounds, {"quiet": quiet, "stopped": disturbed})
        print("%8s %8s %8s   %-14s %10s %10s" % ("quiet", "stopped", "off", "valid", "wait", "stopped"))
        offs = []
        for still, taken in zip(results["quiet"], results["stopped"]):
            offs.append(taken["score"] / still["score"] - 1)
            print("%8.1f %8.1f %+7.2f%%   %-14s %8.3f s %8.3f s" % (
                still["score"], taken["score"], 100 * offs[-1], "both" if still["valid"] and taken["valid"] else
                "quiet only" if still["valid"] else "not quiet", still["storage_wait_ns"] / 1e9,
                taken["storage_wait_ns"] / 1e9))
            for report in (still, taken):
                for reason in report["invalid_reasons"]:
                    print("    " + reason)
        print("off by %+.2f %% (median)" % (100 * statistics.median(offs)))


if __name__ == "__main__":
    main()
