"""Reads blktape's traces of block I/O into Arrow, pandas and Polars, and writes Parquet.

    import blktape

    table = blktape.read_table("monday.tape")             # all of it, in memory
    with blktape.open_trace("monday.tape") as trace:      # any length, in bounded memory
        for batch in trace.batches():
            ...
        print(trace.header.host, trace.lost_events)
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from blktape.columns import COLUMNS, FLAGS, FORMAT_VERSION, Column, flag_names
from blktape.dataset import add_to_dataset
from blktape.errors import NewerFormatError, TraceError
from blktape.model import (OPS, ClockAnchor, Device, Header, Loss, LossTotal, Mark, QueuedSize, QueuedSizes, Summary)
from blktape.parquet import ParquetResult, write_parquet
from blktape.reader import Trace, open_trace

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = [
    "COLUMNS", "FLAGS", "FORMAT_VERSION", "OPS", "ClockAnchor", "Column", "Device", "Header", "Loss", "LossTotal", "Mark",
    "NewerFormatError", "ParquetResult", "QueuedSize", "QueuedSizes", "Summary", "Trace", "TraceError", "add_to_dataset",
    "flag_names",
    "open_trace", "read_pandas", "read_polars", "read_table", "to_pandas", "to_polars", "write_parquet",
]
__version__ = "0.1.0"


def read_table(trace: str | os.PathLike[str] | BinaryIO, columns: Iterable[str] | None = None) -> pa.Table:
    """All records of a trace as an Arrow table. What is missing, open_trace() tells."""
    with open_trace(trace, columns) as opened:
        return opened.read_all()


def read_pandas(trace: str | os.PathLike[str] | BinaryIO, columns: Iterable[str] | None = None) -> "pandas.DataFrame":
    """All records of a trace as a pandas DataFrame, see to_pandas()."""
    return to_pandas(read_table(trace, columns))


def read_polars(trace: str | os.PathLike[str] | BinaryIO, columns: Iterable[str] | None = None) -> "polars.DataFrame":
    """All records of a trace as a Polars DataFrame, see to_polars()."""
    return to_polars(read_table(trace, columns))


def to_pandas(records: pa.Table | pa.RecordBatch) -> "pandas.DataFrame":
    """A batch or table as a DataFrame. Integers have pandas' nullable types (Int64 ...): an absent value is NA, and a
    time in ns is never rounded by becoming a float. Names are categories."""
    import pandas

    types = {pa.int64(): pandas.Int64Dtype(), pa.uint64(): pandas.UInt64Dtype(), pa.uint32(): pandas.UInt32Dtype()}
    frame: pandas.DataFrame = records.to_pandas(types_mapper=types.get)
    return frame


def to_polars(records: pa.Table | pa.RecordBatch) -> "polars.DataFrame":
    """A batch or table as a Polars DataFrame. Names are categories, absent values null."""
    import polars

    frame = polars.from_arrow(records)
    assert isinstance(frame, polars.DataFrame)
    return frame
