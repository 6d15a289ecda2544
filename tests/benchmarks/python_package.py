"""How fast the Python package decodes, beside others that read the same I/Os.

    bazel run -c opt //tests/benchmarks:python_package -- [--ios 5000000] [--rounds 5] [--kind desktop]

Makes a trace of so many I/Os in memory, prints it as CSV (`blktape dump --csv`), and reads both on one core, in turns:
the trace into Arrow batches, into one pandas DataFrame, and as Parquet; the CSV with pyarrow.csv on one thread and with
pandas.read_csv, without the time that printing it took; and Parquet with pyarrow.parquet on one thread. Prints million
I/Os a second and a CPU second, medians, and the ratio to decoding of each in the same round. The Python is that of `tools/setup test`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

# The folder that Bazel lays out, whichever Python it is.
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
ENTERED = "BLKTAPE_PYTHON_ENTERED"


def enter():
    """Goes on in the Python that has the packages."""
    python = os.environ.get("BLKTAPE_PYTHON") or subprocess.check_output(["tools/setup", "python"], text=True).strip()
    if not os.access(python, os.X_OK):
        sys.exit("error: the packages of tests/python/requirements.txt are not there\n  try:  tools/setup test")
    if os.environ.get(ENTERED) != python:
        os.environ.update({ENTERED: python, "PYTHONPATH": os.pathsep.join([os.path.abspath("python/src"), os.getcwd()])})
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])


def timed(work):
    def run():
        begin, begin_cpu = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - begin, time.process_time() - begin_cpu
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ios", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kind", default="desktop", help="of tests/support/make_trace: desktop, mixed or random-read")
    options = parser.parse_args()
    enter()

    import pandas
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    import blktape
    from tests.benchmarks import common

    pa.set_cpu_count(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with common.Bench() as bench:
        trace, csv, parquet = (bench.path(name) for name in ("a.tape", "a.csv", "a.parquet"))
        subprocess.run([common.MAKE_TRACE, trace, str(options.ios), "20000", "kind=" + options.kind], check=True)
        with open(csv, "wb") as file:
            subprocess.run(["cli/blktape", "dump", "--csv", trace], stdout=file, check=True)
        blktape.write_parquet(trace, parquet)

        def batches():
            with blktape.open_trace(trace) as opened:
                records = sum(batch.num_rows for batch in opened.batches())
            assert records == options.ios, records

        def to_parquet():
            path = bench.path("again.parquet")
            blktape.write_parquet(trace, path)
            os.unlink(path)

        one_thread = pyarrow.csv.ReadOptions(use_threads=False)
        contestants = {
            "trace: Arrow batches": batches,
            "trace: pandas DataFrame": lambda: blktape.read_pandas(trace),
            "trace: Parquet written": to_parquet,
            "CSV: pyarrow.csv": lambda: pyarrow.csv.read_csv(csv, read_options=one_thread),
            "CSV: pandas.read_csv": lambda: pandas.read_csv(csv),
            "Parquet: pyarrow.parquet": lambda: pyarrow.parquet.read_table(parquet, use_threads=False),
        }
        batches()  # what is loaded and built once
        results = common.interleaved(options.rounds, {name: timed(work) for name, work in contestants.items()})
        sizes = {name: os.path.getsize(path) for name, path in (("trace", trace), ("CSV", csv), ("Parquet", parquet))}
    print("%s I/Os, %s; %s" % (format(options.ios, ","), options.kind, ", ".join(
        "%s %.0f MB" % (name, size / 1e6) for name, size in sizes.items())))
    print("%-26s %10s %14s %22s" % ("", "M I/Os/s", "per CPU second", "decoding is faster by"))
    ours = [seconds for seconds, _ in results["trace: Arrow batches"]]
    for name, rounds in results.items():
        seconds, cpu = zip(*rounds)
        print("%-26s %10.2f %14.2f %21.1fx" % (name, *(options.ios / statistics.median(each) / 1e6 for each in (seconds, cpu)),
                                              common.paired_ratio(seconds, ours)))


if __name__ == "__main__":
    main()
