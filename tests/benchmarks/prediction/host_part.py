"""How much of the host's part a closed replay takes out of its completions (docs/score.md, "The host's part").

    bazel run -c opt //tests/benchmarks/prediction:host_part -- [--workloads overlap,fsync,...] [--replays 4]

Each workload runs live on a loop device in memory and is recorded; its replays on that device are recorded
too. So each replayed I/O has two pairs of times: those of the replay, and those of the block layer. Columns:
the foreground wait by the block layer's times, and by how much that of the result is longer: with nothing
taken out, with the part that is measured without pauses, and as it is in the result. Last come the medians
of the absolute values.
"""

import argparse
import bisect
import collections
import os
import statistics

from tests.benchmarks import common
from tests.benchmarks.prediction import prediction
from tests.harness import blktape

PAUSE_NS = 5_000_000
SLACK_NS = 2_000  # between two readings of one clock
RECENT = 200      # I/Os among which one that is still out is looked for
MODELS = ("nothing", "no pauses", "as it is")


def wait_s(spans):
    """Length of the union of (from, to)."""
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total / 1e9


def begins_with_flush(row):
    return row["op"] == "flush" or "preflush" in row["flags"]


def is_foreground(row):
    return row["op"] in ("read", "flush") or bool(set(row["flags"].split("+")) & {"sync", "fua", "preflush"})


class BlockLayer:
    """What the kernel saw of a replay."""

    def __init__(self, trace, from_ns):
        self.flushes, self.others = [], collections.defaultdict(collections.deque)
        for row in blktape.dump(trace):
            if not row["complete_ns"] or int(row["issue_ns"]) < from_ns or "derived" in row["flags"]:
                continue
            span = int(row["queue_ns"] or row["issue_ns"]), int(row["complete_ns"])
            if row["op"] == "flush":
                self.flushes.append(span)
            else:
                self.others[row["op"], row["lba"], row["bytes"]].append(span)
        self.flushes.sort()

    def span_of(self, row, seen_ns):
        """Of a row of the result, whose end was seen at `seen_ns`; None if it cannot be told."""
        issue_ns = int(row["issue_ns"])
        flush = None
        if begins_with_flush(row):
            at = bisect.bisect_left(self.flushes, (issue_ns - SLACK_NS, 0))
            flush = self.flushes[at] if at < len(self.flushes) else None
        if row["op"] == "flush":
            return flush if flush and flush[1] <= seen_ns + SLACK_NS else None
        same = self.others[row["op"], row["lba"], row["bytes"]]
        span = same.popleft() if same else None
        if span is None or span[0] < issue_ns - SLACK_NS or span[1] > seen_ns + SLACK_NS:
            return None
        return (flush[0], span[1]) if flush and flush[1] <= span[0] + SLACK_NS else span


def host_part(result):
    """(without pause, after one) of a transfer and of what begins with a flush."""
    part = blktape.as_json("info", result)["summary"]["replay"]["host_parts"][0]
    return {begins: tuple(int(part.get(kind + key, 0)) for key in ("_ns", "_after_pause_ns"))
            for begins, kind in ((False, "transfer"), (True, "flush"))}


def compare(result, recorded):
    """Foreground wait in s: by the block layer, and by each model; and how many I/Os could not be compared."""
    parts = host_part(result)
    rows = sorted((row for row in blktape.dump(result) if row["complete_ns"]), key=lambda row: int(row["queue_ns"]))
    layer = BlockLayer(recorded, min(int(row["issue_ns"]) for row in rows) - SLACK_NS)
    seen = {False: collections.deque(maxlen=RECENT), True: collections.deque(maxlen=RECENT)}
    block, spans, unknown = [], {model: [] for model in MODELS}, 0
    for row in rows:
        due_ns, complete_ns, flushes = int(row["queue_ns"]), int(row["complete_ns"]), begins_with_flush(row)
        at_once_ns, after_pause_ns = parts[flushes]
        last_ns = max(seen[flushes], default=due_ns - PAUSE_NS)
        pause_ns = min(max(0, due_ns - last_ns), PAUSE_NS)
        taken_ns = at_once_ns + (after_pause_ns - at_once_ns) * pause_ns // PAUSE_NS
        if flushes and row["op"] == "write":
            taken_ns += parts[False][0]
        seen_ns = complete_ns + taken_ns
        seen[flushes].append(seen_ns)
        if not is_foreground(row):
            continue
        span = layer.span_of(row, seen_ns)
        if span is None:
            unknown += 1
            continue
        block.append(span)
        for model, end_ns in zip(MODELS, (seen_ns, seen_ns - at_once_ns, complete_ns)):
            spans[model].append((due_ns, end_ns))
    return wait_s(block), {model: wait_s(spans[model]) for model in MODELS}, unknown


def row_of(*cells):
    print("%-10s %10s %10s %10s %10s %9s" % cells, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="overlap,copy,fsync,mmap,build")
    parser.add_argument("--replays", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    common.need_root()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    prediction.alone()
    row_of("workload", "block", *MODELS, "unknown")
    offs = {model: [] for model in MODELS}
    with common.no_halts():
        for workload in options.workloads.split(","):
            with common.Bench() as bench:
                disk = prediction.make_disk(bench, "memory", prediction.MEMORY, options)
                trace, result, seen = (bench.path(name) for name in ("live.tape", "result.tape", "seen.tape"))
                prediction.live(bench, disk, workload, options.seed, trace)
                for _ in range(options.replays):
                    blktape.ok("record", "--device", disk.device, "-o", seen, "--", os.path.abspath(blktape.PROGRAM),
                               *prediction.replay_words(trace, disk, result, prediction.CLOSED),
                               accept=(0, 3), timeout_s=900)
                    block_s, waits, unknown = compare(result, seen)
                    for model, value in waits.items():
                        offs[model].append(value / block_s - 1)
                    row_of(workload, "%.4f s" % block_s,
                           *(prediction.off(waits[model], block_s) for model in MODELS), unknown)
                    os.unlink(result)
                    os.unlink(seen)
    row_of("median", "", *("%.1f %%" % (100 * statistics.median(map(abs, offs[model]))) for model in MODELS), "")


if __name__ == "__main__":
    main()
