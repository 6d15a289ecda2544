"""Traces to Parquet: python -m blktape, or blktape-parquet.

    python -m blktape monday.tape -o monday.parquet
    ssh web1 cat monday.tape | python -m blktape - -o monday.parquet
    python -m blktape traces/*.tape --dataset fleet

Exit status: 0 whole, 1 failed, 2 usage, 3 finished but data is missing.
"""

import argparse
import sys

from blktape.columns import COLUMNS, select
from blktape.dataset import add_to_dataset
from blktape.errors import TraceError
from blktape.parquet import write_parquet
from blktape.report import loss_lines, printable

OK, FAILED, USAGE, DEGRADED = 0, 1, 2, 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m blktape", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", metavar="TRACE", nargs="+", help="a .tape or .tape.partial file; - is standard input")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("-o", "--output", metavar="FILE", help="the Parquet file to write; never overwritten")
    to.add_argument("--dataset", metavar="DIR",
                    help="a folder for any number of traces: DIR/records/machine=HOST/trace=NAME/records.parquet, and "
                         "DIR/traces/... with a row on each. HOST is what the trace names, else NAME, which is its "
                         "file name without .tape. A trace that is there already stays as it is")
    parser.add_argument("--columns", metavar="NAME,...",
                        help="only these, in this order, of " + ", ".join(column.name for column in COLUMNS))
    return parser


def _convert(path: str, columns: list[str] | None, output: str | None, dataset: str | None) -> int:
    name = "standard input" if path == "-" else path
    try:
        if output is not None:
            result = write_parquet(path, output, columns=columns)
        elif (added := add_to_dataset(path, dataset or "", columns)) is not None:
            result = added
        else:
            print(printable("%s: is in %s already" % (name, dataset)))
            return OK
    except (TraceError, OSError) as error:
        said = str(error)
        if isinstance(error, OSError) and error.strerror:
            said = "%s: %s" % (error.filename or name, error.strerror)
        print("error: " + printable(said), file=sys.stderr)
        return FAILED
    for line in loss_lines(result.losses, result.loss_tally):
        print("warning: %s: %s" % (printable(name), line), file=sys.stderr)
    print("%s: %s I/Os, %s bytes" % (printable(result.path), format(result.records, ","), format(result.bytes, ",")))
    return DEGRADED if result.lost_events else OK


def main(words: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(words)
    columns = None
    if options.columns is not None:
        columns = options.columns.split(",")
        try:
            select(columns)
        except ValueError as error:
            parser.error(str(error))
    if options.output is not None and len(options.traces) > 1:
        parser.error("several traces go into a --dataset, not into one file")
    if options.dataset is not None and "-" in options.traces:
        parser.error("standard input has no name, which a --dataset needs")
    statuses = [_convert(path, columns, options.output, options.dataset) for path in options.traces]
    return FAILED if FAILED in statuses else max(statuses)


if __name__ == "__main__":
    sys.exit(main())
