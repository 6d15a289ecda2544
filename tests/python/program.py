"""What `blktape dump --csv` says of a trace, said by the Python package."""

import io

import blktape
from blktape.report import loss_lines

CSV = ["queue_ns", "issue_ns", "complete_ns", "device", "op", "flags", "lba", "bytes", "error", "pid", "process", "cpu"]
RESULT = ["ordinal", "backlog_ns"]  # of `dump --csv --result`


def _text(value):
    return "" if value is None else str(value)


def _name(value):
    if value and any(sign in value for sign in ',"\r\n'):
        return '"%s"' % value.replace('"', '""')
    return value or ""


def csv_rows(records, names=CSV):
    columns = [records.column(name).to_pylist() for name in names]
    texts = {"device": _name, "process": _name, "flags": blktape.flag_names}
    for i, name in enumerate(names):
        columns[i] = map(texts.get(name, _text), columns[i])
    return "".join(",".join(row) + "\n" for row in zip(*columns))


def dump(path, result=False):
    """Exit status, standard output, warnings."""
    names = CSV + RESULT if result else CSV
    out = io.StringIO()
    try:
        with blktape.open_trace(path) as trace:
            out.write(",".join(names) + "\n")
            for records in trace.batches():
                out.write(csv_rows(records, names))
    except blktape.TraceError as error:
        return 1, "", "error: %s\n" % error
    warnings = "".join("warning: %s: %s\n" % (path, line) for line in loss_lines(trace.losses, trace.loss_tally))
    return (3 if trace.lost_events else 0), out.getvalue(), warnings
