"""What the runs on Spark and on DuckDB share: the order of the queries, the answer in words, files and exit status."""

import argparse
import csv
import json
import os
import sys

import representatives

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Views and tables that later queries read, in this order, and what is printed.
STEPS = ("ios", "waits", "sequences", "figures")
OK, FAILED, DEGRADED = 0, 1, 3


class FleetError(Exception):
    """The dataset cannot be read; the message says why."""


def sql(name):
    with open(os.path.join(FOLDER, name + ".sql"), encoding="utf-8") as file:
        return file.read()


def answer(engine, count):
    """`engine` has view(name, sql), table(name, sql), which is computed once, and rows(sql), a list of dictionaries."""
    for name in STEPS[:-1]:
        engine.view(name, sql(name))
    engine.table(STEPS[-1], sql(STEPS[-1]))
    figures = engine.rows("SELECT * FROM figures")
    if not figures:
        raise FleetError("the dataset holds no trace")
    chosen, explained = representatives.choose(figures, count)
    return {
        "traces": len(figures),
        "lost_events": sum(row["lost_events"] for row in figures),
        "incomplete_traces": sum(bool(row["lost_events"] or row["lost_events_is_lower_bound"] or not row["finished_cleanly"])
                                 for row in figures),
        "size_histogram": engine.rows(sql("size_histogram")),
        "storage_wait": engine.rows(sql("storage_wait")),
        "representatives": chosen,
        "explained": explained,
    }


def _size(size_bytes):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return "%d %s" % (size_bytes // factor, unit)
    return "%d B" % size_bytes


def _mostly(rows):
    """The most frequent size of each machine, with its share."""
    sizes = {}
    for row in rows:
        sizes.setdefault(row["machine"], []).append((-row["requests"], row["bytes"]))
    return {machine: "%s %3.0f %%" % (_size(min(each)[1]), -100 * min(each)[0] / -sum(count for count, _ in each))
            for machine, each in sizes.items()}


def _clean(text):
    """Names are data: nothing in them reaches the terminal as a command."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def as_text(result, shown=20):
    waits = sorted(result["storage_wait"], key=lambda row: (-(row["storage_wait_s_per_workday"] or 0), row["machine"]))
    mostly = _mostly(result["size_histogram"])
    lines = ["%s traces of %s machines" % (format(result["traces"], ","), format(len(waits), ","))]
    if result["incomplete_traces"]:
        lines.append("Incomplete: %s traces lack %s events or more, or their end" % (
            format(result["incomplete_traces"], ","), format(result["lost_events"], ",")))
    lines += ["", "%-22s %7s %12s %16s  %s" % ("Machine", "traces", "I/Os", "wait s/workday", "most frequent size")]
    for row in waits[:shown]:
        wait = row["storage_wait_s_per_workday"]
        lines.append("%-22s %7d %12s %16s  %s" % (
            _clean(row["machine"])[:22], row["traces"], format(row["ios"], ","), "n/a" if wait is None else "%.1f" % wait,
            mostly.get(row["machine"], "no data")))
    if len(waits) > shown:
        lines.append("... and %s more that wait less; --out writes all" % format(len(waits) - shown, ","))
    explained = result["explained"]
    lines += ["", "These %d represent all%s:" % (
        len(result["representatives"]), "" if explained is None else " (%.0f %% of the spread between traces)" % (
            100 * explained)), "%-22s %-28s %10s %7s" % ("Machine", "Trace", "stands for", "share")]
    for each in result["representatives"]:
        lines.append("%-22s %-28s %10d %5.1f %%" % (_clean(each["machine"])[:22], _clean(each["trace"])[:28],
                                                   each["stands_for"], 100 * each["share"]))
    return "\n".join(lines) + "\n"


def write_csv(result, folder):
    os.makedirs(folder, exist_ok=True)
    for name in ("size_histogram", "storage_wait", "representatives"):
        with open(os.path.join(folder, name + ".csv"), "w", newline="", encoding="utf-8") as file:
            rows = result[name]
            writer = csv.DictWriter(file, list(rows[0]) if rows else ["machine"], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def main(description, start_engine, add_options=lambda parser: None):
    """`start_engine(options)` gives an engine over `options.dataset`, as a context manager."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", metavar="DATASET", help="what `python -m blktape TRACE ... --dataset` wrote")
    parser.add_argument("--representatives", type=int, default=10, metavar="N", help="how many traces shall represent all (10)")
    parser.add_argument("--json", action="store_true", help="print all of the answer as JSON")
    parser.add_argument("--out", metavar="DIR", help="write size_histogram.csv, storage_wait.csv and representatives.csv there")
    add_options(parser)
    options = parser.parse_args()
    if options.representatives < 1:
        parser.error("--representatives must be at least 1")
    try:
        with start_engine(options) as engine:
            result = answer(engine, options.representatives)
        if options.out:
            write_csv(result, options.out)
    except (FleetError, OSError) as error:
        print("error: %s" % error, file=sys.stderr)
        return FAILED
    sys.stdout.write(json.dumps(result, indent=1) + "\n" if options.json else as_text(result))
    return DEGRADED if result["incomplete_traces"] else OK
