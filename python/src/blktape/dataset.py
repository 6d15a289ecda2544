"""Many traces as one dataset of Parquet, which DuckDB, Spark and others read with a query.

    FOLDER/records/machine=HOST/trace=NAME/records.parquet    the records, a file a trace
    FOLDER/traces/machine=HOST/trace=NAME/trace.parquet       one row: what is known of the trace as a whole

`machine` is the host that the trace names, else the name of the trace; `trace` its file name without `.tape`.
"""

import os
from collections.abc import Iterable
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from blktape import parquet
from blktape.reader import Trace, open_trace

TRACE_SCHEMA = pa.schema([
    ("host", pa.string()),
    ("source", pa.string()),
    ("kernel", pa.string()),
    ("timezone", pa.string()),
    ("devices", pa.list_(pa.string())),
    ("is_replay", pa.bool_()),
    ("start_wall_ns", pa.int64()),  # since the Unix epoch; null: not known, as below
    ("recorded_ns", pa.int64()),  # from when recording began until it ended
    ("records", pa.int64()),
    ("lost_events", pa.int64()),
    ("lost_events_is_lower_bound", pa.bool_()),
    ("finished_cleanly", pa.bool_()),
])


def trace_name(path: str) -> str:
    """A trace's file name without what says that it is one."""
    return os.path.basename(path).removesuffix(".partial").removesuffix(".tape")


def add_to_dataset(path: str | os.PathLike[str], folder: str | os.PathLike[str],
                   columns: Iterable[str] | None = None) -> parquet.ParquetResult | None:
    """Adds the trace at `path`; None where the dataset holds one of this machine and name already, which stays."""
    path, folder = os.fspath(path), os.fspath(folder)
    name = trace_name(path)
    with open_trace(path, columns) as trace:
        place = os.path.join(*("%s=%s" % (key, quote(value, safe=" "))
                               for key, value in (("machine", trace.header.host or name), ("trace", name))))
        records = os.path.join(folder, "records", place, "records.parquet")
        row = os.path.join(folder, "traces", place, "trace.parquet")
        # The row comes last: where it is, the trace is there in full.
        if os.path.exists(row):
            return None
        if os.path.exists(records):
            os.unlink(records)
        for file in (records, row):
            os.makedirs(os.path.dirname(file), exist_ok=True)
        result = parquet.write_parquet(trace, records)
        _write_row(trace, row)
    return result


def _write_row(trace: Trace, path: str) -> None:
    header, summary = trace.header, trace.summary
    start, end = header.start, None if summary is None else summary.end
    row = {
        "host": header.host, "source": header.source, "kernel": header.kernel, "timezone": header.timezone,
        "devices": [device.name for device in header.devices], "is_replay": header.is_replay,
        "start_wall_ns": start.wall_ns if start is not None and start.wall_ns else None,
        "recorded_ns": None if start is None or end is None else end.monotonic_ns - start.monotonic_ns,
        "records": trace.received,
        "lost_events": min(trace.lost_events, 2**63 - 1),
        "lost_events_is_lower_bound": trace.lost_events_is_lower_bound,
        "finished_cleanly": summary is not None and not summary.recovered,
    }
    partial = path + ".partial"
    pq.write_table(pa.Table.from_pylist([row], TRACE_SCHEMA), partial)
    os.replace(partial, path)
