"""How punctual a replay is: blktape, btreplay and fio replay one trace, and tracefs records each.

    bazel run -c opt //tests/benchmarks:timing -- [--rounds 3] [--seconds 15] [--rate 600] [--cases 1x,4x,burst]

The trace: reads of 4 KiB at random places of a loop device over memory; in `burst` 32 of them, 5 us
apart, arrive together. btreplay and fio get it as the file that blktrace would have written. The
error of an I/O is when it was queued, less when the plan wanted it; the plan begins where the median
of all errors is 0, which favours whoever drifts. `total` is by how much the time from the first I/O to
the last was off. Medians over the rounds; the last columns divide a peer's figure by ours.
"""

import argparse
import os
import statistics
import struct
import subprocess

from tests.benchmarks import common
from tests.harness import blktape

SPAN = 256 << 20
QUEUE, ISSUE, COMPLETE = 1, 7, 8
CATEGORY = {QUEUE: 1 << 4, ISSUE: 1 << 6, COMPLETE: 1 << 7}
READ = 1 << 0


def plan_of(trace):
    """(time in ns, sector, bytes) of every I/O, in order."""
    return [(int(row["queue_ns"]), int(row["lba"]), int(row["bytes"])) for row in blktape.dump(trace)]


def write_blktrace(plan, device, folder):
    """One file as blktrace writes them, version 7: every I/O queued, issued, and complete."""
    number = os.stat(device).st_rdev
    device_number = os.major(number) << 20 | os.minor(number)
    events = []
    for at_ns, sector, size in plan:
        for after_ns, action in ((0, QUEUE), (1000, ISSUE), (21000, COMPLETE)):
            events.append((at_ns + after_ns, sector, size, action))
    events.sort(key=lambda event: event[0])
    path = os.path.join(folder, os.path.basename(device) + ".blktrace.0")
    with open(path, "wb") as file:
        for sequence, (at_ns, sector, size, action) in enumerate(events, 1):
            file.write(struct.pack("<IIQQIIIIIHH", 0x65617407, sequence, at_ns, sector, size,
                                   action | (CATEGORY[action] | READ) << 16, 1, device_number, 0, 0, 0))
    return path


def errors_of(plan, speed, recorded):
    """Errors in ns of the I/Os found, how many are missing, and the error of the total time."""
    places = {}
    for row in recorded:
        if row["op"] == "read":
            places.setdefault((int(row["lba"]), int(row["bytes"])), []).append(int(row["queue_ns"] or row["issue_ns"]))
    wanted = {}
    for at_ns, sector, size in plan:
        wanted.setdefault((sector, size), []).append((at_ns - plan[0][0]) / speed)
    found = []
    for place, times in wanted.items():
        # Programs that look at the device first read some of it: the last ones are the replay's.
        found += zip(times, places.get(place, [])[-len(times):])
    if not found:
        return [], len(plan), 0
    begin = statistics.median(at - due for due, at in found)
    found.sort()
    total = (found[-1][1] - found[0][1]) - (found[-1][0] - found[0][0])
    return [at - due - begin for due, at in found], len(plan) - len(found), total


def contestants_of(trace, blk_file, target, folder, speed, plan):
    name = os.path.basename(target)
    # btreplay has been seen to wait for ever; what it has not issued by then is missing.
    bounded = ["timeout", "-k", "5", "%d" % (30 + 2 * (plan[-1][0] - plan[0][0]) / 1e9)]
    runs = {"blktape": ["cli/blktape", "replay", trace, "--target", target, "--overwrite", "--yes", "--speed",
                        "%g" % speed]}
    if common.have("fio"):
        runs["fio"] = [*bounded, "fio", "--name=replay", "--read_iolog=" + blk_file, "--replay_redirect=" + target,
                       "--replay_time_scale=%d" % (100 * speed), "--ioengine=libaio", "--direct=1", "--iodepth=64",
                       "--eta=never"]
    if common.have("btreplay"):
        subprocess.run(["btrecord", "-d", folder, "-D", folder, name], check=True, stdout=subprocess.DEVNULL)
        runs["btreplay"] = [*bounded, "btreplay", "-d", folder, "-x", "%d" % speed, name]
    return runs


def measure(bench, plan, speed, target, command):
    again = bench.path("again.tape")
    # 1: the command failed, as one does that ran out of time.
    blktape.ok("record", "--source", "tracefs", "--device", target, "--settle", "0s", "-o", again, "--", *command,
               accept=(0, 1) if command[0] == "timeout" else (0,))
    recorded = blktape.dump(again)
    os.unlink(again)
    errors, missing, total = errors_of(plan, speed, recorded)
    sizes = [abs(error) for error in errors] or [float("nan")]
    return {"p50": common.percentile(sizes, 0.50), "p99": common.percentile(sizes, 0.99), "max": max(sizes),
            "total": abs(total) / ((plan[-1][0] - plan[0][0]) / speed), "missing": missing}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rate", type=float, default=600)
    parser.add_argument("--cases", default="1x,4x,burst")
    options = parser.parse_args()
    common.need_root()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    print("%-6s %-9s %10s %10s %10s %9s %8s %8s %8s" % ("case", "program", "p50", "p99", "max", "total", "missing",
                                                       "p50", "p99"))
    print("%-6s %-9s %10s %10s %10s %9s %8s %8s %8s" % ("", "", "us", "us", "us", "%", "I/Os", "/ ours", "/ ours"))
    for case in options.cases.split(","):
        speed = 4 if case == "4x" else 1
        with common.Bench() as bench:
            target = bench.loop(SPAN)
            count = int(options.seconds * options.rate * speed)
            trace = bench.make_trace("plan.tape", count, options.rate, SPAN >> 20, "random-read",
                                     32 if case == "burst" else 1)
            plan = plan_of(trace)
            blk_file = write_blktrace(plan, target, bench.folder)
            runs = contestants_of(trace, blk_file, target, bench.folder, speed, plan)
            results = common.interleaved(options.rounds, {
                name: lambda command=command: measure(bench, plan, speed, target, command)
                for name, command in runs.items()})
            ours = results["blktape"]
            for name, rows in results.items():
                def middle(key, rows=rows):
                    return statistics.median(row[key] for row in rows)
                print("%-6s %-9s %10.1f %10.1f %10.1f %9.4f %8d %8.1f %8.1f" % (
                    case, name, middle("p50") / 1e3, middle("p99") / 1e3, middle("max") / 1e3, middle("total") * 100,
                    middle("missing"), *(common.paired_ratio([row[key] for row in rows], [row[key] for row in ours])
                                         for key in ("p50", "p99"))), flush=True)


if __name__ == "__main__":
    main()
