"""Batches of records: a RecordBatch message in, an Arrow record batch out, a column at a time.

docs/trace_format.md, "Columns", is the specification. COLUMNS is the one description of what a batch holds: a column
that is new there is a new line here, and needs code only where its coding is new. Nothing here loops over records.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blktape.errors import BatchError
from blktape.model import OPS

Array = npt.NDArray[Any]

FORMAT_VERSION = 2  # the highest that is read
MAX_BATCH_RECORDS = 262_144
SECTOR_BYTES = 512

# Names of the bits of `flags`, lowest first.
FLAGS = ("sync", "fua", "preflush", "meta", "readahead", "derived", "atomic", "emulated", "backlog",
         "mapped")
SYNC, FUA, PREFLUSH, META, READAHEAD, DERIVED, ATOMIC, EMULATED, BACKLOG, MAPPED = (1 << bit for bit in range(len(FLAGS)))


class Coding(enum.Enum):
    """How the values of a column are stored."""

    PLAIN = 1
    ADDRESS = 2  # zigzag, from the end of the record before of the same device and op
    TIME = 3  # zigzag, from another time
    ORDINAL = 4  # zigzag, from the ordinal before + 1


@dataclass(frozen=True)
class Column:
    name: str  # in Arrow and Parquet
    field: str  # of RecordBatch in trace.proto
    width_bytes: int
    coding: Coding
    type: pa.DataType
    required: bool = False  # every record has one
    names: str = ""  # the values are ids of names: "devices", "ops" or "processes"


_TEXT = pa.dictionary(pa.int32(), pa.string())

# In the order of an Arrow batch, which begins with that of `blktape dump --csv`.
COLUMNS = (
    Column("queue_ns", "queue", 8, Coding.TIME, pa.int64()),
    Column("issue_ns", "issue", 8, Coding.TIME, pa.int64()),
    Column("complete_ns", "complete", 8, Coding.TIME, pa.int64()),
    Column("device", "device", 4, Coding.PLAIN, _TEXT, required=True, names="devices"),
    Column("op", "op", 1, Coding.PLAIN, _TEXT, required=True, names="ops"),
    Column("flags", "flags", 4, Coding.PLAIN, pa.uint32(), required=True),
    Column("lba", "lba", 8, Coding.ADDRESS, pa.uint64()),
    Column("bytes", "bytes", 8, Coding.PLAIN, pa.uint64(), required=True),
    Column("error", "error", 4, Coding.PLAIN, pa.uint32()),
    Column("pid", "pid", 4, Coding.PLAIN, pa.uint32()),
    Column("process", "process", 4, Coding.PLAIN, _TEXT, names="processes"),
    Column("cpu", "cpu", 4, Coding.PLAIN, pa.uint32()),
    Column("merged_bios", "merged_bios", 4, Coding.PLAIN, pa.uint32()),
    Column("prio", "prio", 4, Coding.PLAIN, pa.uint32()),
    Column("ordinal", "ordinal", 8, Coding.ORDINAL, pa.uint64()),
    Column("backlog_ns", "backlog", 8, Coding.PLAIN, pa.uint64()),
    Column("waker", "waker", 4, Coding.PLAIN, pa.uint32()),
    Column("since_wake_ns", "since_wake", 8, Coding.PLAIN, pa.uint64()),
)
_BY_NAME = {column.name: column for column in COLUMNS}
_TIMES = ("queue_ns", "issue_ns", "complete_ns")


def select(names: Iterable[str] | None) -> tuple[Column, ...]:
    """The columns of these names, in the order asked for; all of them for None. ValueError names one there is not."""
    if names is None:
        return COLUMNS
    names = list(names)
    unknown = [name for name in names if name not in _BY_NAME]
    if unknown:
        raise ValueError("a trace has no column %s; it has %s" % (", ".join(unknown), ", ".join(_BY_NAME)))
    return tuple(_BY_NAME[name] for name in names)


def schema(columns: Sequence[Column] = COLUMNS) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type, nullable=not column.required) for column in columns])


def flag_names(flags: int) -> str:
    """"sync+fua" as `blktape dump --csv` has it; bits without a name as one hexadecimal number."""
    words = [name for bit, name in enumerate(FLAGS) if flags >> bit & 1]
    rest = flags >> len(FLAGS) << len(FLAGS)
    return "+".join(words + (["0x%x" % rest] if rest else []))


class Names:
    """Names by id, as Arrow wants them: each once, in an array that values index."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._ids: dict[int, str] = {}
        self._built: tuple[pa.Array, Array] | None = None
        for id, name in enumerate(names):
            self.set(id, name)

    def __len__(self) -> int:
        return len(self._ids)

    def as_dict(self) -> dict[int, str]:
        return dict(self._ids)

    def set(self, id: int, name: str) -> None:
        if self._ids.get(id) != name:
            self._ids[id] = name
            self._built = None

    def encode(self, ids: Array) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """The names, and for each of `ids` the index among them; -1 where it has no name."""
        if self._built is None:
            unique = {name: index for index, name in enumerate(dict.fromkeys(self._ids.values()))}
            table = np.full(max(self._ids, default=-1) + 2, -1, np.int32)  # the last: for ids beyond
            for id, name in self._ids.items():
                table[id] = unique[name]
            self._built = pa.array(list(unique), pa.string()), table
        names, table = self._built
        return names, table[np.minimum(ids, np.uint32(len(table) - 1))]


OP_NAMES = Names(OPS)

_CONTRADICTS = "a batch of records that contradicts itself: "


def _contradiction(column: Column, what: str) -> BatchError:
    return BatchError("%scolumn %s: %s" % (_CONTRADICTS, column.field, what))


@dataclass
class _Stored:
    """A column as the batch has it."""

    values: Array  # unsigned, of the records that have one; of the smallest type that holds their planes
    present: bytes = b""  # Arrow's own form of validity; empty: every record has a value
    mask: npt.NDArray[np.bool_] | None = None  # the same, a byte a record


class BatchDecoder:
    """Turns batches of one trace into Arrow. `devices` and `processes` may grow between batches."""

    def __init__(self, devices: Names, processes: Names, columns: Sequence[Column] = COLUMNS) -> None:
        self._names = {"devices": devices, "processes": processes, "ops": OP_NAMES}
        self._columns = columns
        self._schema = schema(columns)

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def decode(self, batch: Any) -> pa.RecordBatch:
        """Without the records of ops that only a newer version knows, of which `batch.count` has more than this gives.
        BatchError where the batch contradicts itself or the header."""
        return _Batch(batch, self._names).arrow(self._columns, self._schema)


class _Batch:
    def __init__(self, batch: Any, names: dict[str, Names]) -> None:
        self._batch = batch
        self._names = names
        self._count = int(batch.count)
        if self._count > MAX_BATCH_RECORDS:
            raise BatchError("%sa batch of %d records: more than the format allows" % (_CONTRADICTS, self._count))
        # All columns, wanted or not: whether a batch is believed must not depend on what is asked for.
        self._stored = {column.name: self._read(column) for column in COLUMNS}
        self._times: dict[str, Array | None] | None = None
        device = self._stored["device"]
        if device is not None and self._count and int(device.values.max()) >= len(names["devices"]):
            raise BatchError("a record of a device that the header does not have")

    def arrow(self, columns: Sequence[Column], schema: pa.Schema) -> pa.RecordBatch:
        records = pa.RecordBatch.from_arrays([self._arrow(column) for column in columns], schema=schema)
        op = self._stored["op"]
        # Only now: times and addresses of others count from theirs.
        if op is not None and self._count and int(op.values.max()) >= len(OPS):
            records = records.filter(pa.array(op.values < len(OPS)))
        return records

    def _read(self, column: Column) -> _Stored | None:
        there = self._batch.HasField(column.field)
        stored = getattr(self._batch, column.field)
        present: bytes = stored.present
        if column.required and (not there or present):
            if self._count == 0:
                return None
            raise _contradiction(column, "not there for every record")
        if not there:
            return None
        mask = None
        count = self._count
        if present:
            if len(present) != (count + 7) // 8:
                raise _contradiction(column, "bitmap of a wrong size")
            if count % 8 and present[-1] >> count % 8:
                raise _contradiction(column, "bitmap names records that are not there")
            mask = np.unpackbits(np.frombuffer(present, np.uint8), count=count, bitorder="little").view(np.bool_)
            count = int(np.count_nonzero(mask))
            if count == self._count:
                present, mask = b"", None
        return _Stored(self._join_planes(stored, count, column), present, mask)

    @staticmethod
    def _join_planes(stored: Any, count: int, column: Column) -> Array:
        planes: bytes = stored.planes
        plane_mask = int(stored.plane_mask)
        there = [plane for plane in range(8) if plane_mask >> plane & 1]
        if plane_mask >> column.width_bytes or len(planes) != len(there) * count:
            raise _contradiction(column, "its planes do not fit the " + ("bitmap" if stored.present else "count"))
        if not there:
            return np.zeros(count, np.uint8)
        if there == [0]:
            return np.frombuffer(planes, np.uint8)
        size = next(size for size in (1, 2, 4, 8) if size > there[-1])
        joined = (np.empty if len(there) == size else np.zeros)((count, size), np.uint8)
        for plane, values in zip(there, np.frombuffer(planes, np.uint8).reshape(len(there), count)):
            joined[:, plane] = values
        return joined.view("<u%d" % size).reshape(count)

    def _spread(self, stored: _Stored, values: Array) -> Array:
        """`values` of the records that have one, at their places; 0 elsewhere."""
        if stored.mask is None:
            return values
        spread = np.zeros(self._count, values.dtype)
        spread[stored.mask] = values
        return spread

    def _arrow(self, column: Column) -> pa.Array:
        stored = self._stored[column.name]
        if stored is None:
            if pa.types.is_dictionary(column.type):
                nothing = pa.nulls(self._count, column.type.index_type)
                return pa.DictionaryArray.from_arrays(nothing, pa.array([], pa.string()))
            return pa.nulls(self._count, column.type)
        if column.names:
            return self._named(column, stored)
        if column.coding is Coding.TIME:
            values = self._decode_times()[column.name]
            assert values is not None
        elif column.coding is Coding.ADDRESS:
            values = self._spread(stored, self._decode_addresses(stored))
        elif column.coding is Coding.ORDINAL:
            values = self._spread(stored, self._decode_ordinals(stored))
        else:
            values = self._spread(stored, stored.values)
        values = np.ascontiguousarray(values, dtype=column.type.to_pandas_dtype())
        return pa.Array.from_buffers(column.type, self._count, [self._validity(stored), pa.py_buffer(values)])

    def _named(self, column: Column, stored: _Stored) -> pa.Array:
        names, indices = self._names[column.names].encode(stored.values)
        indices = self._spread(stored, indices)
        nameless = indices < 0
        if nameless.any():
            if stored.mask is not None:
                nameless |= ~stored.mask
            places = pa.array(indices, pa.int32(), mask=nameless)
        else:
            places = pa.Array.from_buffers(pa.int32(), self._count, [self._validity(stored), pa.py_buffer(indices)])
        return pa.DictionaryArray.from_arrays(places, names)

    @staticmethod
    def _validity(stored: _Stored) -> pa.Buffer | None:
        return pa.py_buffer(stored.present) if stored.present else None

    def _decode_times(self) -> dict[str, Array | None]:
        """The three times of every record. Additions wrap at 64 bits."""
        if self._times is not None:
            return self._times
        base = np.array(self._batch.base_ns, np.int64)
        queue, issue, complete = (self._stored[name] for name in _TIMES)
        # `step`: by how much a record's arrival comes after the arrival before. It is its queue time's difference,
        # without that its issue time's, without both 0.
        queue_step = None if queue is None else self._spread(queue, _unzigzag(queue.values))
        issue_step = None if issue is None else self._spread(issue, _unzigzag(issue.values))
        queued = _has(queue, self._count)
        if queue_step is None:
            step = issue_step
        elif queued is None or issue_step is None:
            step = queue_step
        else:
            step = np.where(queued, queue_step, issue_step)
        if step is None:
            arrival = previous = np.full(self._count, base)
        else:
            arrival = np.cumsum(step, dtype=np.int64) + base
            previous = arrival - step
        # A record with a queue time arrives then, so its later times count from its arrival, another's from the
        # arrival before.
        since = arrival if queued is None else previous if queue is None else np.where(queued, arrival, previous)
        times: dict[str, Array | None] = dict.fromkeys(_TIMES)
        if queue_step is not None:
            times["queue_ns"] = arrival
        if issue_step is not None:
            issue_ns = since + issue_step
            times["issue_ns"] = issue_ns
            issued = _has(issue, self._count)
            since = issue_ns if issued is None else np.where(issued, issue_ns, since)
        if complete is not None:
            times["complete_ns"] = since + self._spread(complete, _unzigzag(complete.values))
        self._times = times
        return times

    def _decode_addresses(self, stored: _Stored) -> Array:
        def of_those(name: str) -> Array:
            other = self._stored[name]
            assert other is not None
            return other.values if stored.mask is None else other.values[stored.mask]

        sectors = of_those("bytes").astype(np.uint64) // np.uint64(SECTOR_BYTES)
        step = _unzigzag(stored.values).astype(np.int64).view(np.uint64) + sectors
        device, op = of_those("device"), of_those("op")
        if len(device) and device.any():
            ops = max(len(OPS), int(op.max()) + 1)  # one that is unknown has addresses of its own
            op = device.astype(np.uint64) * np.uint64(ops) + op
            if int(op.max()) < 1 << 16:
                op = op.astype(np.uint16)  # for which sorting is by radix
        addresses: Array = _sums_by_stream(op, step) - sectors
        return addresses

    def _decode_ordinals(self, stored: _Stored) -> Array:
        first = np.array(self._batch.base_ordinal, np.uint64)
        sums = np.cumsum(_unzigzag(stored.values), dtype=np.int64).view(np.uint64)
        ordinals: Array = sums + np.arange(len(sums), dtype=np.uint64) + first
        return ordinals


def _has(stored: _Stored | None, count: int) -> npt.NDArray[np.bool_] | None:
    """Which records have a value; None: all."""
    if stored is None:
        return np.zeros(count, np.bool_)
    return stored.mask


def _unzigzag(values: Array) -> Array:
    """0, 1, 2, 3 ... are 0, -1, 1, -2 ..., in a signed type as wide as that of `values`."""
    one = values.dtype.type(1)
    signed: Array = ((values >> one) ^ -(values & one)).view("i%d" % values.dtype.itemsize)
    return signed


def _sums_by_stream(streams: Array, steps: Array) -> Array:
    """For each record the sum of the steps of its stream up to and with it."""
    if len(streams) == 0:
        return steps
    order = np.argsort(streams, kind="stable")
    sorted_streams = streams[order]
    sums = np.cumsum(steps[order], dtype=steps.dtype)
    starts = np.flatnonzero(sorted_streams[1:] != sorted_streams[:-1]) + 1
    if len(starts):
        before = np.concatenate([np.zeros(1, sums.dtype), sums[starts - 1]])
        sums -= np.repeat(before, np.diff(np.concatenate([[0], starts, [len(sums)]])))
    result = np.empty_like(sums)
    result[order] = sums
    return result
