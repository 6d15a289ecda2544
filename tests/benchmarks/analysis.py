"""How fast `blktape analyze` is, beside DuckDB on the same I/Os as Parquet, and beside an earlier blktape.

    bazel run -c opt //tests/benchmarks:analysis -- [--ios 5000000] [--rounds 5] [--kind desktop] [--before PROGRAM]

Makes a trace of so many I/Os in memory and, in turns:
  analyze             the whole profile, on all CPUs
  analyze, one CPU    the same, bound to one
  before, one CPU     likewise by the program that --before names
  DuckDB              on as many threads as there are CPUs, from Parquet: sizes by operation, percentiles of D2C,
                      sequential share, depth over time and busy time. Its figures have to be those of analyze.
Prints million I/Os a second and a CPU second, medians, memory, and how much faster analyze is than each in the same round.
The Python is that of `tools/setup test`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time

# The folder that Bazel lays out, whichever Python it is.
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
ENTERED = "BLKTAPE_PYTHON_ENTERED"
PROGRAM = "cli/blktape"

# Of data requests with all times, as those of the loads are; `number` tells the order of the trace.
QUERIES = {
    "sizes": "SELECT op, bytes, COUNT(*) FROM ios GROUP BY op, bytes ORDER BY op, bytes",
    "d2c": """SELECT op, quantile_disc(complete_ns - issue_ns, [0.5, 0.95, 0.99, 0.999]) FROM ios GROUP BY op""",
    "sequential": """SELECT COUNT(*) FILTER (lba = end_before) FROM (
        SELECT lba, LAG(lba + bytes // 512) OVER (PARTITION BY device ORDER BY issue_ns, number) AS end_before
        FROM ios)""",
    "depth": """SELECT SUM(depth * (next_ns - at_ns)) FROM (
        SELECT at_ns, LEAD(at_ns) OVER moments AS next_ns, SUM(change) OVER moments AS depth FROM (
          SELECT issue_ns AS at_ns, 1 AS change FROM ios UNION ALL SELECT complete_ns, -1 FROM ios)
        WINDOW moments AS (ORDER BY at_ns, change ROWS UNBOUNDED PRECEDING))""",
    "busy": """SELECT SUM(GREATEST(0, complete_ns - GREATEST(issue_ns, COALESCE(busy_until_ns, issue_ns)))) FROM (
        SELECT issue_ns, complete_ns, MAX(complete_ns) OVER (
          ORDER BY issue_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until_ns
        FROM ios)""",
}
IOS = """CREATE VIEW ios AS SELECT CAST(op AS VARCHAR) AS op, CAST(device AS VARCHAR) AS device, CAST(bytes AS BIGINT) AS bytes,
    CAST(lba AS BIGINT) AS lba, issue_ns, complete_ns, file_row_number AS number
    FROM read_parquet('%s', file_row_number = true)
    WHERE op IN ('read', 'write') AND bytes > 0 AND issue_ns IS NOT NULL AND complete_ns IS NOT NULL"""


def enter():
    """Goes on in the Python that has the packages."""
    python = os.environ.get("BLKTAPE_PYTHON") or subprocess.check_output(["tools/setup", "python"], text=True).strip()
    if not os.access(python, os.X_OK):
        sys.exit("error: the packages of tests/python/requirements.txt are not there\n  try:  tools/setup test")
    if os.environ.get(ENTERED) != python:
        os.environ.update({ENTERED: python, "PYTHONPATH": os.pathsep.join([os.path.abspath("python/src"), os.getcwd()])})
        os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:]])


def measured(words, cpus):
    """Runs a program on these CPUs: seconds, CPU seconds, MiB at most, what it said."""
    memory = [0]

    def watch(pid):
        # Not ru_maxrss, which begins with what this Python holds.
        while True:
            try:
                with open("/proc/%d/status" % pid, encoding="ascii") as file:
                    peaks = [int(line.split()[1]) for line in file if line.startswith("VmHWM:")]
            except OSError:
                return
            if not peaks:  # it has ended
                return
            memory[0] = peaks[0] / 1024
            time.sleep(0.02)

    begin = time.perf_counter()
    with subprocess.Popen(["taskset", "-c", ",".join(map(str, sorted(cpus))), *words], stdout=subprocess.PIPE) as child:
        watcher = threading.Thread(target=watch, args=(child.pid,))
        watcher.start()
        said = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        watcher.join()
    if child.returncode:
        sys.exit("error: %s ended with %d" % (" ".join(words), child.returncode))
    return seconds, usage.ru_utime + usage.ru_stime, memory[0], said


def duckdb_figures(parquet, threads):
    import duckdb
    database = duckdb.connect(config={"threads": threads})
    database.execute(IOS % parquet)
    return {name: database.execute(query).fetchall() for name, query in QUERIES.items()}


def compare(figures, profile):
    """DuckDB's figures are those of analyze, or this stops."""
    sizes = {}
    for op, size, count in figures["sizes"]:
        sizes[size, op + "s"] = count
    for row in profile["size_histogram"]:
        for op in ("reads", "writes"):
            assert sizes.pop((row["bytes"], op), 0) == row[op], row
    assert not sizes, sizes
    for op, quantiles in figures["d2c"]:
        latency = profile["by_op"][op]["d2c_ns"]
        for key, value in zip(("p50", "p95", "p99", "p999"), quantiles):
            assert abs(latency[key] - value) <= value / 256, (op, key, latency[key], value)
    assert figures["sequential"][0][0] == profile["sequential"]["same_device"], (figures["sequential"], profile["sequential"])
    depth = float(figures["depth"][0][0]) / profile["observed_ns"]
    assert abs(depth - profile["queue_depth"]["mean"]) < 1e-6 * depth, (depth, profile["queue_depth"]["mean"])
    if profile["ios"] == profile["data_requests"]:  # busy time is that of all operations
        assert int(figures["busy"][0][0]) == profile["busy_ns"], (figures["busy"], profile["busy_ns"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ios", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kind", default="desktop", help="of tests/support/make_trace: desktop, mixed or random-read")
    parser.add_argument("--before", metavar="PROGRAM", help="an earlier blktape to compare with")
    parser.add_argument("--duckdb", metavar="PARQUET", help=argparse.SUPPRESS)  # the child that measures it
    options = parser.parse_args()
    enter()
    cpus = os.sched_getaffinity(0)
    if options.duckdb:
        print(json.dumps(duckdb_figures(options.duckdb, len(cpus)), default=str))
        return

    import blktape
    from tests.benchmarks import common

    one = {max(cpus)}
    with common.Bench() as bench:
        trace, parquet = bench.path("a.tape"), bench.path("a.parquet")
        subprocess.run([common.MAKE_TRACE, trace, str(options.ios), "20000", "kind=" + options.kind], check=True)
        blktape.write_parquet(trace, parquet)
        analyze = ["analyze", "--json", trace]
        contestants = {
            "analyze": lambda: measured([PROGRAM, *analyze], cpus),
            "analyze, one CPU": lambda: measured([PROGRAM, *analyze], one),
            "DuckDB": lambda: measured([sys.executable, os.path.abspath(__file__), "--duckdb", parquet], cpus),
        }
        if options.before:
            contestants["before, one CPU"] = lambda: measured([options.before, *analyze], one)
        # Its start, which loads modules, is no part of its rate.
        start_s = statistics.median(measured([sys.executable, "-c", "import duckdb; duckdb.connect()"], cpus)[0] for _ in range(3))
        profile = json.loads(measured([PROGRAM, *analyze], cpus)[3])
        compare(duckdb_figures(parquet, len(cpus)), profile)
        results = common.interleaved(options.rounds, contestants)
    print("%s I/Os, %s, %d CPUs; DuckDB without the %.2f s of its start" % (
        format(options.ios, ","), options.kind, len(cpus), start_s))
    print("%-20s %10s %14s %10s %22s" % ("", "M I/Os/s", "per CPU second", "MiB", "analyze is faster by"))
    ours = [seconds for seconds, *_ in results["analyze"]]
    for name, rounds in results.items():
        seconds, cpu, memory, _ = zip(*rounds)
        if name == "DuckDB":
            seconds = [each - start_s for each in seconds]
        print("%-20s %10.2f %14.2f %10.0f %21.2fx" % (
            name, *(options.ios / statistics.median(each) / 1e6 for each in (seconds, cpu)), max(memory),
            common.paired_ratio(seconds, ours)))


if __name__ == "__main__":
    main()
