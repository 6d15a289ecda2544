"""What a long trace costs: memory, and time until the first I/O.

    bazel run -c opt //tests/benchmarks:memory -- [--ios 50000000] [--folder /tmp]

Makes a trace of so many I/Os (about 7 bytes each, in --folder), replays it at full speed on the null
engine with its result kept, and prints the peak resident memory of the process, and the time from its
start to the first issue: once at once, and once with the trace dropped from the page cache.
"""

import argparse
import os
import subprocess
import tempfile
import time

from tests.benchmarks import common
from tests.harness import blktape

MIB = 1 << 20


def first_issue_ns(result):
    with subprocess.Popen([blktape.PROGRAM, "dump", result, "--csv"], stdout=subprocess.PIPE, text=True) as dump:
        dump.stdout.readline()
        issue_ns = int(dump.stdout.readline().split(",")[1])
        dump.kill()
    return issue_ns


def replay(trace, result, ios):
    begin_ns = time.monotonic_ns()
    with subprocess.Popen([blktape.PROGRAM, "replay", trace, "--engine", "null", "--queue-depth", "32", "-o", result],
                          stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit("error: the replay ended with %d" % process.returncode)
    end_ns = time.monotonic_ns()
    figures = {"peak": usage.ru_maxrss * 1024, "start_s": (first_issue_ns(result) - begin_ns) / 1e9,
               "all_s": (end_ns - begin_ns) / 1e9, "rate": ios / ((end_ns - begin_ns) / 1e9)}
    os.unlink(result)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ios", type=int, default=50_000_000)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="blktape-bench.", dir=options.folder) as folder:
        trace = os.path.join(folder, "long.tape")
        subprocess.run([common.MAKE_TRACE, trace, str(options.ios), "100000"], check=True)
        print("%d I/Os, %.0f MiB" % (options.ios, os.path.getsize(trace) / MIB))
        print("%-12s %10s %10s %10s" % ("page cache", "peak MiB", "start s", "in all s"))
        for cold in (False, True):
            if cold:
                with open(trace, "rb") as file:
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            figures = replay(trace, os.path.join(folder, "result.tape"), options.ios)
            print("%-12s %10.1f %10.2f %10.1f" % ("cold" if cold else "warm", figures["peak"] / MIB,
                                                figures["start_s"], figures["all_s"]), flush=True)


if __name__ == "__main__":
    main()
