"""Whether a replay tells what one would have waited on the other drive.

    bazel run -c opt //tests/benchmarks/prediction -- [--workloads desktop,overlap,...] [--pairs 1:10,memory:machine]

Each workload runs live on two disks of known speed (a FUSE file in memory under a loop device) and is
recorded there: that is the truth. Each recording is then replayed on both disks, in a closed loop (replay
--closed) and in an open loop (original times). Columns: the foreground wait that was measured live
(`wait_ns` of analyze), and by how much that of each replay is off it; the same for the mean and the 99th
percentile of response, and the length, from the first arrival to the last completion of foreground I/O of
the work itself: the kernel's threads go on when it has ended.
`ratio` is slow wait / fast wait: the live one, and by how much that of the replays of one recording is off.
The response of a flagged write is until software saw its end: with the flush that stands for FUA on a
device without. `block` is by how much the wait of the replay, too, was off by the block layer's times, of a
recording made meanwhile: that much the disk itself was another than when the work ran live.

`same` marks a recording replayed on the disk it was made on: what that is off is not the inference's but
the replayer's and the machine's. Live runs repeat (--rounds), and each one's recording is replayed: the same
work is not the same I/O twice. Medians are shown, and how far apart the live ones were. `memory:machine` are
two real disks: loop devices over a file in memory, and over one on the machine's disk by direct I/O. Last come
the medians over workloads of the figures' absolute values.

`--workloads fsync+copy --pairs 5+10:30+10` is work on two disks at once, recorded together: one program on a disk of
speed 5, the other on one of 10; and the same on 30 and 10. There is no `block` then.
"""

import argparse
import contextlib
import itertools
import os
import shlex
import statistics
import subprocess
import sys

from tests.benchmarks import common
from tests.benchmarks.prediction import block_layer, test_bed, workloads
from tests.harness import blktape, known_disk

HERE = "tests/benchmarks/prediction/"
SIZE_MIB = 2048
# By about how many times slower than the first they are: read, write, flush in us, ns a byte of a unit, units, ns a
# byte of the link that all share. The link is slower than this machine can copy: else the processor would be the disk.
SPEEDS = {"1": (120, 60, 400, 0.5, 8, 2), "2": (240, 120, 800, 1, 8, 3.2), "5": (600, 400, 2000, 2.5, 8, 8),
          "10": (1200, 1500, 4000, 5, 4, 16), "30": (3600, 1800, 12000, 15, 4, 40), "100": (12000, 6000, 40000, 50, 4, 133),
          "200": (24000, 12000, 80000, 100, 4, 266)}
MEMORY, MACHINE = "memory", "machine"
LOOPS = CLOSED, OPEN = "closed", "open"
KERNEL = ("btrfs-", "ext4lazyinit", "jbd2/", "kswapd", "kworker/", "xfsaild/")
FIGURES = ("wait", "mean", "p99", "length")
READABLE = (0, 3)  # 3: it lacks something
RECORDED = (0, 1, 3)  # 1: the command, a replay, ended with another than 0, as where its trace lacks something


def with_processes(result, recording):
    """The rows of a result, each with the process of the record that it replays."""
    recorded = blktape.dump(recording, accept=READABLE)
    rows = blktape.dump(result, "--result", accept=READABLE)
    for row in rows:
        row["process"] = recorded[int(row["ordinal"])]["process"]
    return rows


def figures(trace, recording=None):
    """Of a recording or a result of replaying `recording`: foreground wait, mean and p99 of response in s, and the
    length."""
    rows = blktape.dump(trace, accept=READABLE) if recording is None else with_processes(trace, recording)
    rows = [row for row in rows if row["complete_ns"] and (row["queue_ns"] or row["issue_ns"])]
    # A replay saw the end of a flagged write itself.
    flushes = sorted((int(row["issue_ns"] or row["queue_ns"]), int(row["complete_ns"]))
                     for row in rows if row["op"] == "flush" and recording is None)
    responses = []
    first = min(int(row["queue_ns"] or row["issue_ns"]) for row in rows if not row["process"].startswith(KERNEL))
    last = first
    for row in rows:
        flags = set(row["flags"].split("+"))
        if "derived" in flags or not (row["op"] in ("read", "flush") or
                                      (row["op"] == "write" and flags & {"sync", "fua", "preflush"})):
            continue
        end = int(row["complete_ns"])
        if row["op"] == "write" and "fua" in flags:
            end = block_layer.seen_end(end, flushes)
        responses.append(end - int(row["queue_ns"] or row["issue_ns"]))
        if not row["process"].startswith(KERNEL):
            last = max(last, end)
    wait_ns = blktape.as_json("analyze", trace, accept=READABLE)["wait_ns"]
    return {"wait": wait_ns / 1e9, "mean": statistics.mean(responses) / 1e9,
            "p99": common.percentile(responses, 0.99) / 1e9, "length": (last - first) / 1e9, "ios": len(responses)}


@contextlib.contextmanager
def mounted(bench, disk, number, file_system):
    point = bench.path("mnt%d" % number)
    os.makedirs(point, exist_ok=True)
    # It writes zeros where ext4's journal will be. Left to the device, a file below takes their place out instead, and
    # whoever writes there first, which is the live run, waits until the machine's file system has noted it.
    subprocess.run([*workloads.FILE_SYSTEMS[file_system][0], disk.device],
                   check=True, env={**os.environ, "UNIX_IO_NOZEROOUT": "1"})
    workloads.mount(file_system, disk.device, point)
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


def side_by_side(commands):
    """One command that runs them all, and fails if one does."""
    if len(commands) == 1:
        return commands[0]
    begin = "".join("%s & p%d=$!\n" % (shlex.join(command), number) for number, command in enumerate(commands))
    return ["sh", "-c", begin + " && ".join("wait $p%d" % number for number in range(len(commands)))]


def devices(disks):
    return [word for disk in disks for word in ("--device", disk.device)]


def live(bench, disks, workload, seed, trace, file_system="ext4", source=None):
    """A workload, of those joined by +, on each of the disks, side by side."""
    words = [sys.executable, HERE + "workloads.py"]
    with contextlib.ExitStack() as mounts:
        places = []
        for number, (name, disk) in enumerate(zip(workload.split("+"), disks, strict=True)):
            point = mounts.enter_context(mounted(bench, disk, number, file_system))
            places.append([name, point, disk.device, "--seed", str(seed + number), "--file-system", file_system])
            subprocess.run([*words, "prepare", *places[-1]], check=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(trace)
        works = [test_bed.beside_disks([*words, "work", *place]) for place in places]
        # Where the kernel restricts BPF, that misses a few events in a million.
        blktape.ok("record", *(("--source", source) if source else ()), *devices(disks), "--settle", "3s", "-o", trace, "--",
                   *side_by_side(works), accept=READABLE if source == "bpf" else (0,), timeout_s=900)
    return figures(trace)


def replay_words(trace, disks, result, how):
    header = blktape.as_json("info", trace, accept=READABLE)["header"]
    recorded = [device["name"] for device in header["devices"]]
    targets = ["%s=%s" % (name, disk.device) for name, disk in zip(recorded, disks, strict=True)]
    return ["replay", trace, *(word for target in targets for word in ("--map", target)), "--overwrite", "--yes",
            "--unsupported", "skip", *(["--closed"] if how == CLOSED else []), "-o", result]


def recorded_replay(trace, disks, result, how, seen):
    """Records the replay, too: what recording costs an I/O falls on both, and `seen` has the block layer's times."""
    blktape.ok("record", *devices(disks), "-o", seen, "--", os.path.abspath(blktape.PROGRAM),
               *replay_words(trace, disks, result, how), accept=RECORDED, timeout_s=900)


def replay(bench, trace, disks, how):
    result, seen = bench.path("result.tape"), bench.path("seen.tape")
    recorded_replay(trace, disks, result, how, seen)
    found = figures(result, trace)
    if len(disks) == 1:
        block_s, waits, _ = block_layer.compare(result, seen)
        found["block"] = found["wait"] * block_s / waits["as it is"]
    os.unlink(result)
    os.unlink(seen)
    return found


class RealDisk:
    """A loop device over a file of its own that is there in full: in memory, or on the machine's disk by direct I/O."""

    def __init__(self, folder, name, size_mib, direct, callback):
        path = os.path.join(folder, "blktape-prediction.%d.%s" % (os.getpid(), name))
        callback(os.unlink, path)
        with open(path, "wb") as file:
            block = os.urandom(1 << 20)
            for _ in range(size_mib):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        self.device = subprocess.check_output(
            ["losetup", "-f", "--show", "--direct-io=" + ("on" if direct else "off"), path], text=True).strip()
        callback(subprocess.run, ["losetup", "-d", self.device], check=True)
        known_disk.set_queue(self.device)


def make_disks(bench, name, speeds, options):
    """One of each of the speeds joined by +."""
    return [make_disk(bench, "%s%d" % (name, number), speed, options) for number, speed in enumerate(speeds.split("+"))]


def make_disk(bench, name, speed, options):
    if speed == MEMORY:
        return RealDisk(bench.folder, name, SIZE_MIB, False, bench.callback)
    if speed == MACHINE:
        return RealDisk(options.folder, name, SIZE_MIB, True, bench.callback)
    return known_disk.KnownDisk(bench.path(name), SIZE_MIB, SPEEDS[speed], bench.callback, test_bed.on_disks_cpu([]))


def median_of(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def off(found, truth):
    return "%+.1f %%" % (100 * (found / truth - 1))


def row(*cells):
    print("%-8s %-14s %-7s %9s %9s %9s %9s %9s %9s" % cells, flush=True)


def tell_header():
    row("workload", "run", "", *FIGURES, "ratio", "block")


def add_loops(parser):
    parser.add_argument("--loops", nargs="+", choices=LOOPS, default=LOOPS, help="by which each recording is replayed")


def crossings(loops, names):
    """How each recording is replayed: the loop, the disk it was made on, the disk it is replayed on."""
    return [crossing for crossing in itertools.product(LOOPS, names, names) if crossing[0] in loops]


def compare(label, runs, replays):
    """Tells of two disks what `runs` of the figures each had live, and by how much those of `replays` are off: of each
    of the `crossings` the figures of every replay."""
    truths = {}
    for name, live_runs in runs.items():
        truth = truths[name] = median_of(live_runs)
        waits = [run["wait"] for run in live_runs]
        row(label, "live " + name, "+-%.1f%%" % (50 * (max(waits) - min(waits)) / truth["wait"]),
            "%.3f s" % truth["wait"], "%.3f ms" % (1e3 * truth["mean"]), "%.3f ms" % (1e3 * truth["p99"]),
            "%.1f s" % truth["length"], "%.2f" % (truths["slow"]["wait"] / truths["fast"]["wait"])
            if name == "slow" else "", "")
    offs = []
    for how in dict.fromkeys(how for how, _, _ in replays):
        for source in runs:
            waits = {}
            for name, truth in truths.items():
                replayed = median_of(replays[how, source, name])
                waits[name] = replayed["wait"]
                ratio = None
                if name == "slow":
                    ratio = waits["slow"] / waits["fast"] / (truths["slow"]["wait"] / truths["fast"]["wait"]) - 1
                    offs.append((how, source, "ratio", ratio))
                if source != name:
                    offs += [(how, source, key, replayed[key] / truth[key] - 1) for key in FIGURES]
                row("", source + " on " + name, "same" if source == name and how == CLOSED else how,
                    *(off(replayed[key], truth[key]) for key in FIGURES), "" if ratio is None else off(1 + ratio, 1),
                    off(replayed["block"], truth["wait"]) if "block" in replayed else "")
    return offs


def predict(bench, workload, pair, options):
    disks = {name: make_disks(bench, name, speeds, options)
             for name, speeds in zip(("fast", "slow"), pair.split(":"))}
    runs = {name: [] for name in disks}
    replays = {crossing: [] for crossing in crossings(options.loops, disks)}
    for _ in range(options.rounds):
        # What is compared runs within minutes: a real disk is not the same all day.
        for name, those in disks.items():
            runs[name].append(live(bench, those, workload, options.seed, bench.path(name + ".tape"), options.file_system,
                                   options.source))
        for how, source, name in replays:
            replays[how, source, name] += [replay(bench, bench.path(source + ".tape"), disks[name], how)
                                           for _ in range(options.replays)]
        for name in disks:
            os.unlink(bench.path(name + ".tape"))
    return compare(workload + " " + pair, runs, replays)


def tell_medians(offs):
    """Over workloads: of the absolute values, with which sign they mostly are."""
    for how in dict.fromkeys(how for how, _, _, _ in offs):
        for source in ("fast", "slow"):
            cells = []
            for key in (*FIGURES, "ratio"):
                one = [value for a, b, c, value in offs if (a, b, c) == (how, source, key)]
                cells.append("%.1f %%" % (100 * statistics.median(abs(value) for value in one)) if one else "")
            row("median", "of " + source, how, *cells, "")


def alone():
    """Goes on in a mount namespace of its own: a sandbox that another program opens meanwhile would keep the file
    systems mounted, and their caches full."""
    if os.environ.get("BLKTAPE_ALONE") is None:
        os.environ["BLKTAPE_ALONE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="desktop,overlap,copy,fsync,mmap,pool,build")
    parser.add_argument("--pairs", default="1:10,5:30,1:2", help="FAST:SLOW of the speeds 1, 2, 5, 10, 30, 100: so many times slower; of two real disks: memory:machine")
    parser.add_argument("--folder", default="/var/tmp", help="on the machine's disk, where `machine` has its file")
    parser.add_argument("--rounds", type=int, default=3, help="live runs on each disk, each with its recording")
    parser.add_argument("--replays", type=int, default=1, help="of each recording")
    parser.add_argument("--seed", type=int, default=1)
    add_loops(parser)
    parser.add_argument("--file-system", choices=workloads.FILE_SYSTEMS, default="ext4",
                        help="in which the work is done")
    parser.add_argument("--source", choices=("bpf", "tracefs"), help="what the live runs are recorded by; default: as `record`")
    options = parser.parse_args()
    common.need_root()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    alone()
    tell_header()
    offs = []
    with common.no_halts(), test_bed.kept_memory():
        for pair in options.pairs.split(","):
            for workload in options.workloads.split(","):
                with common.Bench() as bench, test_bed.disks_first():
                    offs += predict(bench, workload, pair, options)
    tell_medians(offs)


if __name__ == "__main__":
    main()
