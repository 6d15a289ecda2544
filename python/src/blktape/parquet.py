"""Writes a trace as Parquet, in bounded memory."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import json_format

from blktape import model
from blktape.reader import Trace, open_trace

ROW_GROUP_ROWS = 1 << 19


@dataclass(frozen=True)
class ParquetResult:
    """What was written, and what is missing in it."""

    path: str
    records: int
    bytes: int
    lost_events: int
    losses: list[model.Loss] = field(repr=False)
    loss_totals: dict[str, model.LossTotal]
    loss_tally: dict[int, model.LossTotal] = field(repr=False)


def write_parquet(trace: str | os.PathLike[str] | BinaryIO | Trace, path: str | os.PathLike[str], *,
                  columns: Iterable[str] | None = None, row_group_rows: int = ROW_GROUP_ROWS) -> ParquetResult:
    """Writes the records of a trace to the new file `path`, which is never overwritten: FileExistsError.

    Header, marks and losses go into the file's metadata as JSON, under "blktape.header", "blktape.marks" and
    "blktape.losses". The file gets its name when it is whole. `columns` as of open_trace(); a Trace has its own.
    """
    path = os.fspath(path)
    if os.path.lexists(path):
        raise FileExistsError("%s: exists, and is not overwritten" % path)
    if isinstance(trace, Trace):
        if columns is not None:
            raise ValueError("an open trace has its columns already")
        return _write(trace, path, row_group_rows)
    with open_trace(trace, columns) as opened:
        return _write(opened, path, row_group_rows)


def _write(trace: Trace, path: str, row_group_rows: int) -> ParquetResult:
    partial = "%s.%d.partial" % (path, os.getpid())
    # Whatever has that name already is not ours to remove.
    with open(partial, "xb") as file:
        try:
            records = _write_records(trace, file, row_group_rows)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
            _name(partial, path)
        finally:
            if os.path.lexists(partial):
                os.unlink(partial)
    return ParquetResult(path, records, size, trace.lost_events, list(trace.losses), trace.loss_totals,
                         dict(trace.loss_tally))


def _write_records(trace: Trace, file: BinaryIO, row_group_rows: int) -> int:
    """Writes the records and what is said of them; returns how many there are."""
    records = 0
    with pq.ParquetWriter(file, trace.schema, **_encoding(trace.schema)) as writer:
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in trace.batches():
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= row_group_rows:
                _write_rows(writer, waiting, trace.schema)
                records, rows, waiting = records + rows, 0, []
        if waiting:
            _write_rows(writer, waiting, trace.schema)
            records += rows
        writer.add_key_value_metadata(_metadata(trace))
    return records


def _name(partial: str, path: str) -> None:
    """Fails rather than replace what is there."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise FileExistsError("%s: exists, and is not overwritten" % path) from None
    except OSError:
        # A file system without hard links.
        os.rename(partial, path)


def _write_rows(writer: pq.ParquetWriter, batches: list[pa.RecordBatch], schema: pa.Schema) -> None:
    table = pa.Table.from_batches(batches, schema)
    writer.write_table(table, row_group_size=table.num_rows)


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    """Differences, bit-packed, for what grows or is spread; dictionaries for names and for the few values of others."""
    packed = [name for name in ("queue_ns", "issue_ns", "complete_ns", "lba", "ordinal", "backlog_ns")
              if name in schema.names]
    return {"compression": "zstd", "column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
            "use_dictionary": [name for name in schema.names if name not in packed]}


def _metadata(trace: Trace) -> dict[str, str]:
    def plain(item: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(item).items() if value not in (None, "")}

    return {
        "blktape.header": json.dumps(json_format.MessageToDict(trace.header.message, preserving_proto_field_name=True)),
        "blktape.marks": json.dumps([{**plain(mark), "kind": mark.kind_name} for mark in trace.marks]),
        "blktape.losses": json.dumps([{**plain(loss), "reason": loss.reason_name} for loss in trace.losses]),
        "blktape.lost_events": str(trace.lost_events),
    }
