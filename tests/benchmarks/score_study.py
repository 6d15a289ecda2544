"""What the idle cap and a budget do to the score of simulated drives: on a trace, without any device.

    bazel run -c opt //tests/benchmarks:score_study -- TRACE [--caps | --budget 5m --campaigns 50] [--drive NAME]
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

# Programs are named as Bazel lays them out, also when the script is started by hand.
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PROGRAM = "cli/blktape"

CAPS = (None, "10s", "5s", "3s", "2s", "1500ms", "1s", "500ms", "250ms", "100ms", "25ms", "1ms")


def score(trace, drive, *words):
    with tempfile.TemporaryDirectory(prefix="blktape-study.") as folder:
        done = subprocess.run([PROGRAM, "score", trace, "--target", "sim:" + drive, "--cycles", "1", "--json", "--no-db", "-o",
                               os.path.join(folder, "score"), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def study_caps(trace, drive):
    """One row a cap: by how much the score is off, and how long a cycle takes."""
    print("%-8s %10s %8s %10s %14s" % ("idle cap", "score", "off", "wait", "closed loop"))
    whole = None
    for cap in CAPS:
        report = score(trace, drive, *(["--idle-cap", cap] if cap else ["--no-idle-cap"]))
        whole = whole or report["score"]
        closed = next(run for run in report["runs"] if run["label"].endswith("closed"))
        print("%-8s %10.1f %+7.1f%% %8.2f s %10.1f min" % (cap or "none", report["score"], 100 * (report["score"] / whole - 1),
                                                          report["storage_wait_ns"] / 1e9, closed["wall_ns"] / 6e10),
              flush=True)


def study_budget(trace, drive, budget, campaigns):
    """Of so many campaigns, each with a draw of its own: whether the interval holds the score of the whole."""
    whole = score(trace, drive)["score"]
    hits, errors, told = 0, [], []
    for seed in range(1, campaigns + 1):
        report = score(trace, drive, "--budget", budget, "--seed", str(seed))
        if report["sample"] is None:
            sys.exit("the budget holds the whole trace: there is nothing to draw")
        hits += report["ci_low"] <= whole <= report["ci_high"]
        errors.append(math.log(report["score"] / whole))
        told.append(report["half_width_ln"])
    mean = sum(errors) / campaigns
    spread = math.sqrt(sum((error - mean) ** 2 for error in errors) / (campaigns - 1))
    print("%s: %d of %d windows; %d of %d intervals hold the score of the whole, %.1f; off by %+.2f %% in the mean, "
          "spread %.2f %%, half width %.2f %% in the mean" % (
              drive, report["sample"]["windows_drawn"], report["sample"]["windows"], hits, campaigns, whole, 100 * mean,
              100 * spread, 100 * sum(told) / campaigns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("--caps", action="store_true", help="the table of idle caps (default without --budget)")
    parser.add_argument("--budget", help="draw samples for cycles of this length")
    parser.add_argument("--campaigns", type=int, default=50)
    parser.add_argument("--drive", action="append", help="reference, nvme-2026, sata-2011, emmc-2018 (may be repeated)")
    arguments = parser.parse_args()
    trace = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), arguments.trace)
    for drive in arguments.drive or ["nvme-2026"]:
        if arguments.caps or not arguments.budget:
            print(drive)
            study_caps(trace, drive)
        if arguments.budget:
            study_budget(trace, drive, arguments.budget, arguments.campaigns)


if __name__ == "__main__":
    main()
