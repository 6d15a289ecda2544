"""How fast a replay at full speed is: blktape against the least a program can do, and against fio.

    bazel run -c opt //tests/benchmarks:rate -- [--depths 1,32] [--rounds 5] [--seconds 2] [--targets null,zram,loop]

4 KiB random reads at a queue depth on a zram device, on a loop device over memory, and on nothing (our null engine;
a loop of io_uring NOPs; fio's null engine, and its io_uring writing to /dev/null). Every program runs once a round;
ratios are medians over the rounds. CPU is user and system time an I/O of the program's threads, kernel workers of
its ring included, during the run (of fio from start to end). `fio replay` is fio with --read_iolog of the same
I/Os.
blktape keeps idle CPUs from halting where it may (see replay/issue/realtime.h), which speeds up whatever wakes
them; `loop, no halts` is the io_uring loop while that is so for it too.
"""

import argparse
import json
import resource
import subprocess

from tests.benchmarks import common
from tests.harness import blktape

LOOP = "tests/benchmarks/uring_loop"
SPAN = 256 << 20


def figure(ios, wall_ns, cpu_ns):
    return {"iops": ios / (wall_ns / 1e9), "cpu_ns": cpu_ns / ios}


def run_blktape(trace, target, depth, seconds, words):
    figures = blktape.as_json("replay", trace, "--repeat", "--duration", "%gs" % seconds, "--queue-depth", depth,
                              *(["--target", target, "--overwrite", "--yes"] if target else ["--engine", "null"]),
                              *words)
    return figure(figures["completed"], figures["wall_ns"], figures["cpu_ns"])


def run_loop(target, depth, seconds):
    said = subprocess.check_output([LOOP, target or "nop", str(depth), str(seconds)], text=True)
    figures = json.loads(said)
    return figure(figures["ios"], figures["wall_ns"], figures["cpu_ns"])


def run_loop_without_halts(target, depth, seconds):
    with common.no_halts():
        return run_loop(target, depth, seconds)


def run_fio(target, depth, words):
    common_words = ["--ioengine=io_uring", "--fixedbufs", "--filename=" + target, "--direct=1"]
    if not target:
        common_words = ["--ioengine=null", "--size=%d" % SPAN]
    elif target == "/dev/null":
        common_words = ["--ioengine=io_uring", "--fixedbufs", "--filename=" + target, "--size=%d" % SPAN]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.check_output(
        ["fio", "--name=rate", "--bs=4k", "--iodepth=%d" % depth, "--output-format=json", "--eta=never", "--thread",
         *common_words, *words], text=True)
    job = json.loads(said[said.index("{"):])["jobs"][0]
    did = job["read"] if job["read"]["total_ios"] else job["write"]
    wall_ns = did["runtime"] * 1e6
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return figure(did["total_ios"], wall_ns, cpu_s * 1e9)


def write_iolog(trace, target, path, count):
    """Of the trace's first `count` I/Os, as fio takes them."""
    with open(path, "w", encoding="ascii") as file:
        target = target or "nothing"  # the null engine opens no file
        file.write("fio version 2 iolog\n%s add\n%s open\n" % (target, target))
        for row in blktape.dump(trace)[:count]:
            file.write("%s read %d %s\n" % (target, int(row["lba"]) * 512, row["bytes"]))
        file.write("%s close\n" % target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", default="1,32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--targets", default="null,zram,loop")
    options = parser.parse_args()
    common.need_root()
    with common.Bench() as bench:
        trace = bench.make_trace("rate.tape", 300_000, 100_000, SPAN >> 20, "random-read")
        print("%-5s %5s  %-24s %10s %9s %12s %12s" % (
            "on", "depth", "program", "IOPS", "CPU/IO", "IOPS blktape", "CPU blktape"))
        print("%-5s %5s  %-24s %10s %9s %12s %12s" % ("", "", "", "", "ns", "/ program", "/ program"))
        for name in options.targets.split(","):
            target = {"null": lambda: "", "zram": lambda: bench.zram(SPAN), "loop": lambda: bench.loop(SPAN)}[name]()
            if target is None:
                print("%-5s the kernel has no zram" % name)
                continue
            for depth in map(int, options.depths.split(",")):
                measure(bench, trace, name, target, depth, options)


def measure(bench, trace, name, target, depth, options):
    seconds = options.seconds
    contestants = {"blktape": lambda: run_blktape(trace, target, depth, seconds, []),
                   "io_uring loop": lambda: run_loop(target, depth, seconds)}
    if target:
        contestants["loop, no halts"] = lambda: run_loop_without_halts(target, depth, seconds)
        for engine in ("io_uring", "libaio"):
            words = ["--engine", engine]
            contestants["blktape " + engine] = lambda words=words: run_blktape(trace, target, depth, seconds, words)
    if depth > 1:
        contestants["blktape --threads 2"] = lambda: run_blktape(trace, target, depth, seconds, ["--threads", 2])
    if common.have("fio"):
        timed = ["--norandommap", "--time_based", "--runtime=%g" % seconds]
        reads = ["--rw=randread", *(["--registerfiles"] if target else []), *timed]
        contestants["fio"] = lambda: run_fio(target, depth, reads)
        if not target:
            contestants["fio to /dev/null"] = lambda: run_fio("/dev/null", depth, ["--rw=randwrite", *timed])
        log = bench.path("iolog-" + name)
        write_iolog(trace, target, log, 200_000)
        contestants["fio replay"] = lambda: run_fio(target, depth, ["--read_iolog=" + log, "--replay_no_stall=1"])
    results = common.interleaved(options.rounds, contestants)
    ours = results["blktape"]
    for program, theirs in results.items():
        def column(rows, key):
            return [row[key] for row in rows]
        print("%-5s %5d  %-24s %10.0f %9.0f %12.3f %12.3f" % (
            name, depth, program, common.percentile(column(theirs, "iops"), 0.5),
            common.percentile(column(theirs, "cpu_ns"), 0.5),
            common.paired_ratio(column(ours, "iops"), column(theirs, "iops")),
            common.paired_ratio(column(ours, "cpu_ns"), column(theirs, "cpu_ns"))), flush=True)


if __name__ == "__main__":
    main()
