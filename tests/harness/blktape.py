"""Runs our program in a test and reads what it says."""

import csv
import io
import json
import os
import subprocess
import tempfile

PROGRAM = "cli/blktape"
# Results that the program keeps by itself are a test's own, never a user's.
os.environ["XDG_DATA_HOME"] = os.path.join(os.environ.get("TEST_TMPDIR") or tempfile.gettempdir(), "blktape-data")

# What `blktape dump --csv` promises, in this order.
COLUMNS = ["queue_ns", "issue_ns", "complete_ns", "device", "op", "flags", "lba", "bytes", "error", "pid", "process",
           "cpu"]


def run(*words, timeout_s=240, **options):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=timeout_s, check=False, **options)


def ok(*words, accept=(0,), **options):
    """Runs it, and fails the test with all it said unless the exit status is one of `accept`."""
    result = run(*words, **options)
    if result.returncode not in accept:
        raise AssertionError("blktape %s\nended with %d\n--- stdout\n%s\n--- stderr\n%s" % (
            " ".join(map(str, words)), result.returncode, result.stdout[-4000:], result.stderr[-4000:]))
    return result


def as_json(*words, **options):
    return json.loads(ok(*words, "--json", **options).stdout)


def rows(text):
    """The records in what `blktape dump --csv` said, each a dictionary of text."""
    return list(csv.DictReader(io.StringIO(text)))


def dump(trace, *words, **options):
    """The records of a trace."""
    return rows(ok("dump", trace, "--csv", *words, **options).stdout)


def size(path):
    return os.path.getsize(path)
