"""How much of the host's part a closed replay takes out of its completions (docs/score.md, "The host's part").

    bazel run -c opt //tests/benchmarks/prediction:host_part -- [--workloads overlap,fsync,...] [--replays 4]

Each workload runs live on a loop device in memory and is recorded; its replays on that device are recorded
too. So each replayed I/O has two pairs of times: those of the replay, and those of the block layer. Columns:
the foreground wait by the block layer's times, and by how much that of the result is longer: with nothing
taken out, with the part that is measured without pauses, and as it is in the result. Last come the medians
of the absolute values.
"""

import argparse
import os
import statistics

from tests.benchmarks import common
from tests.benchmarks.prediction import block_layer, prediction

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
    row_of("workload", "block", *block_layer.MODELS, "unknown")
    offs = {model: [] for model in block_layer.MODELS}
    with common.no_halts():
        for workload in options.workloads.split(","):
            with common.Bench() as bench:
                disks = prediction.make_disks(bench, "memory", prediction.MEMORY, options)
                trace, result, seen = (bench.path(name) for name in ("live.tape", "result.tape", "seen.tape"))
                prediction.live(bench, disks, workload, options.seed, trace)
                for _ in range(options.replays):
                    prediction.recorded_replay(trace, disks, result, prediction.CLOSED, seen)
                    block_s, waits, unknown = block_layer.compare(result, seen)
                    for model, value in waits.items():
                        offs[model].append(value / block_s - 1)
                    row_of(workload, "%.4f s" % block_s,
                           *(prediction.off(waits[model], block_s) for model in block_layer.MODELS), unknown)
                    os.unlink(result)
                    os.unlink(seen)
    row_of("median", "", *("%.1f %%" % (100 * statistics.median(map(abs, offs[model]))) for model in block_layer.MODELS), "")


if __name__ == "__main__":
    main()
