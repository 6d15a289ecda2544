"""Whether a replay tells what one would have waited on the other drive.

    bazel run -c opt //tests/benchmarks/prediction -- [--workloads desktop,overlap,...] [--pairs 10,2]

Each workload runs live on two disks of known speed (a FUSE file in memory under a loop device) and is
recorded there: that is the truth. The fast disk's recording is then replayed on the slow disk and back,
in a closed loop (think time kept) and in an open loop (original times). Columns: the foreground wait that
was measured live, and by how much each replay is off it; the same for the mean and the 99th percentile of
response, and the length. `ratio` is slow wait / fast wait: the live one, and by how much that of the
replays of one recording is off. Foreground wait is the union of [queued or due, completed] of reads,
flagged writes and flushes.

Live runs repeat (--rounds); medians are shown, and how far apart the live ones were.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys

from tests.benchmarks import common
from tests.harness import blktape, known_disk

HERE = "tests/benchmarks/prediction/"
SIZE_MIB = 2048
# read, write, flush in us, ns a byte, units. The slow ones are so many times slower.
FAST = (120, 60, 400, 0.5, 8)
SLOWER = {"2": (240, 120, 800, 1, 8), "10": (1200, 1500, 4000, 5, 4), "30": (3600, 1800, 12000, 15, 4)}
# Who works goes before what else the machine does, and the disk before both.
NICE = ("nice", "-n", "-10")
CLOSED, OPEN = "closed", "open"


def figures(trace):
    """Of a recording or a result: foreground wait, mean and p99 of response in s, and the length."""
    intervals = []
    first = last = None
    for row in blktape.dump(trace):
        begin = row["queue_ns"] or row["issue_ns"]
        if not begin or not row["complete_ns"]:
            continue
        begin, end = int(begin), int(row["complete_ns"])
        first = begin if first is None else min(first, begin)
        last = end if last is None else max(last, end)
        flags = set(row["flags"].split("+"))
        if row["op"] in ("read", "flush") or (row["op"] == "write" and flags & {"sync", "fua", "preflush"}):
            intervals.append((begin, end))
    intervals.sort()
    wait = reached = 0
    for begin, end in intervals:
        wait += max(0, end - max(begin, reached))
        reached = max(reached, end)
    responses = [end - begin for begin, end in intervals]
    return {"wait": wait / 1e9, "mean": statistics.mean(responses) / 1e9,
            "p99": common.percentile(responses, 0.99) / 1e9, "length": (last - first) / 1e9, "ios": len(responses)}


def live(bench, disk, workload, seed, trace):
    point = bench.path("mnt")
    os.makedirs(point, exist_ok=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", disk.device],
                   check=True)
    subprocess.run(["mount", "-o", "noatime", disk.device, point], check=True)
    try:
        words = [sys.executable, HERE + "workloads.py"]
        place = [workload, point, disk.device, "--seed", str(seed)]
        subprocess.run([*words, "prepare", *place], check=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(trace)
        blktape.ok("record", "--device", disk.device, "-o", trace, "--", *NICE, *words, "work", *place, timeout_s=900)
    finally:
        subprocess.run(["umount", point], check=True)
    return figures(trace)


def replay(bench, trace, disk, how):
    result = bench.path("result.tape")
    words = ["--max", "--think", "keep"] if how == CLOSED else []
    blktape.ok("replay", trace, "--target", disk.device, "--overwrite", "--yes", "--unsupported", "skip", *words,
               "-o", result, accept=(0, 3), timeout_s=900)
    found = figures(result)
    os.unlink(result)
    return found


def median_of(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def off(found, truth):
    return "%+.1f %%" % (100 * (found / truth - 1))


def row(*cells):
    print("%-8s %-14s %-7s %9s %9s %9s %9s %9s" % cells, flush=True)


def compare(bench, workload, pair, options):
    disks = {name: known_disk.KnownDisk(bench.path(name), SIZE_MIB, speed, bench.callback)
             for name, speed in (("fast", FAST), ("slow", SLOWER[pair]))}
    truths, traces, runs = {}, {}, {name: [] for name in disks}
    for number in range(options.rounds):
        for name, disk in disks.items():
            traces[name] = bench.path(name + ".tape")
            runs[name].append(live(bench, disk, workload, options.seed, traces[name]))
    for name in disks:
        truths[name] = median_of(runs[name])
        waits = [run["wait"] for run in runs[name]]
        truth = truths[name]
        row(workload + " " + pair, "live " + name, "+-%.1f%%" % (50 * (max(waits) - min(waits)) / truth["wait"]),
            "%.3f s" % truth["wait"], "%.3f ms" % (1e3 * truth["mean"]), "%.3f ms" % (1e3 * truth["p99"]),
            "%.1f s" % truth["length"], "%.2f" % (truths["slow"]["wait"] / truths["fast"]["wait"])
            if name == "slow" else "")
    for how in (CLOSED, OPEN):
        for source in disks:
            waits = {}
            for name, disk in disks.items():
                found = median_of([replay(bench, traces[source], disk, how) for _ in range(options.replays)])
                truth = truths[name]
                waits[name] = found["wait"]
                row("", source + " on " + name, how, *(off(found[key], truth[key])
                                                       for key in ("wait", "mean", "p99", "length")),
                    off(waits["slow"] / waits["fast"], truths["slow"]["wait"] / truths["fast"]["wait"])
                    if name == "slow" else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="desktop,overlap,copy,fsync,mmap,build")
    parser.add_argument("--pairs", default="10", help="how many times slower: of 2, 10, 30")
    parser.add_argument("--rounds", type=int, default=2, help="live runs on each disk")
    parser.add_argument("--replays", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    common.need_root()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    row("workload", "run", "", "wait", "mean", "p99", "length", "ratio")
    with common.no_halts():
        for pair in options.pairs.split(","):
            for workload in options.workloads.split(","):
                with common.Bench() as bench:
                    compare(bench, workload, pair, options)


if __name__ == "__main__":
    main()
