"""What a trace holds besides records, as plain values. Names, units and meanings are those of format/trace.proto."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from blktape import schema

OPS = ("read", "write", "discard", "flush", "write_zeroes", "secure_erase", "zone_reset", "zone_reset_all",
       "zone_open", "zone_close", "zone_finish", "zone_append")

IN_FLIGHT_AT_START = 12
IN_FLIGHT_AT_END = 13
DAMAGED_INPUT = 10
TRUNCATED_INPUT = 11
UNDECODABLE_EVENT = 16
MAX_LOSS_REASON = 255

_UINT64_MAX = 2**64 - 1


def cut(text: str, most_bytes: int) -> str:
    return text if len(text) <= most_bytes // 4 else text.encode()[:most_bytes].decode(errors="replace")


class _OfMessage:
    """A dataclass whose fields have the names of a message's. What is optional and absent there is None here."""

    @classmethod
    def of(cls, message: Any) -> Self:
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            described = message.DESCRIPTOR.fields_by_name.get(field.name)
            if described is None:
                continue
            if described.has_presence and not message.HasField(field.name):
                values[field.name] = None
            else:
                values[field.name] = getattr(message, field.name)
        return cls(**values)


@dataclass(frozen=True)
class ClockAnchor(_OfMessage):
    """The trace's clock and the wall clock (since the Unix epoch), read at one moment."""

    monotonic_ns: int
    wall_ns: int


@dataclass(frozen=True)
class Device(_OfMessage):
    name: str
    major: int
    minor: int
    size_bytes: int | None
    model: str
    firmware: str
    serial: str
    logical_block_bytes: int | None
    physical_block_bytes: int | None
    rotational: bool | None
    scheduler: str
    write_cache: str
    fua: bool | None
    discard_granularity_bytes: int | None
    discard_max_bytes: int | None
    write_zeroes_max_bytes: int | None
    nr_requests: int | None
    read_ahead_kb: int | None
    nomerges: int | None
    max_sectors_kb: int | None
    zoned: str
    is_file: bool
    path: str
    transport: str
    hardware_queues: int | None
    machine: int  # of a trace merged of several machines: devices with one number are of one


@dataclass(frozen=True)
class Header:
    """Of a trace. `message` is the whole Header of trace.proto, the plan of a replay included."""

    format_version: int
    trace_id: bytes  # 16 bytes that no other trace has; empty in traces of blktape 0.1.0 and before
    tool_version: str
    source: str
    host: str
    kernel: str
    devices: tuple[Device, ...]
    start: ClockAnchor | None
    timezone: str
    filters: tuple[str, ...]
    imported_from: tuple[str, ...]
    process_names: str
    generator: str
    command: str
    is_replay: bool
    message: Any = dataclasses.field(repr=False)

    @classmethod
    def of(cls, message: Any) -> "Header":
        plain = ("format_version", "trace_id", "tool_version", "source", "host", "kernel", "timezone", "process_names",
                 "generator", "command")
        return cls(**{name: getattr(message, name) for name in plain},
                   devices=tuple(Device.of(device) for device in message.devices),
                   start=ClockAnchor.of(message.start) if message.HasField("start") else None,
                   filters=tuple(message.filters), imported_from=tuple(message.imported_from),
                   is_replay=message.HasField("replay"), message=message)


@dataclass(frozen=True)
class Loss(_OfMessage):
    """Data that is missing, at its place in the trace."""

    reason: int
    count: int | None = None  # events or records lost; None: nobody knows
    from_ns: int | None = None
    to_ns: int | None = None
    cpu: int | None = None
    device: int | None = None  # index into Header.devices
    from_bytes: int | None = None  # the damaged range of the file
    to_bytes: int | None = None
    detail: str = ""

    @property
    def reason_name(self) -> str:
        return schema.loss_reason_name(self.reason)

    @property
    def means_lost_events(self) -> bool:
        return means_lost_events(self.reason)


@dataclass(frozen=True)
class Mark(_OfMessage):
    """Suspend, step of the wall clock, pause ..."""

    kind: int
    at_ns: int
    value_ns: int
    detail: str

    @property
    def kind_name(self) -> str:
        return schema.mark_kind_name(self.kind)


@dataclass(frozen=True)
class QueuedSize(_OfMessage):
    op: int  # index into blktape.OPS
    bytes: int
    count: int

    @property
    def op_name(self) -> str:
        return OPS[self.op] if self.op < len(OPS) else str(self.op)


@dataclass(frozen=True)
class QueuedSizes:
    """What software asked for, before merging and splitting, since the QueuedSizes before."""

    entries: tuple[QueuedSize, ...]
    flushes_asked: int
    flagged_writes: int

    @classmethod
    def of(cls, message: Any) -> "QueuedSizes":
        return cls(tuple(QueuedSize.of(entry) for entry in message.entries), message.flushes_asked,
                   message.flagged_writes)


@dataclass(frozen=True)
class Summary:
    """Totals that the writer of a finished trace left at its end. `message` is the whole Summary of trace.proto."""

    records: int
    first_ns: int | None  # first and last arrival
    last_ns: int | None
    end: ClockAnchor | None
    records_by_op: dict[str, int]
    read_bytes: int
    write_bytes: int
    discard_bytes: int
    completed: int
    recovered: bool
    late_ns_max: int | None
    message: Any = dataclasses.field(repr=False)

    @classmethod
    def of(cls, message: Any) -> "Summary":
        def optional(name: str) -> int | None:
            return int(getattr(message, name)) if message.HasField(name) else None

        return cls(records=message.records, first_ns=optional("first_ns"), last_ns=optional("last_ns"),
                   end=ClockAnchor.of(message.end) if message.HasField("end") else None,
                   records_by_op={OPS[op] if op < len(OPS) else str(op): count
                                  for op, count in sorted(message.records_by_op.items())},
                   read_bytes=message.read_bytes, write_bytes=message.write_bytes,
                   discard_bytes=message.discard_bytes, completed=message.completed, recovered=message.recovered,
                   late_ns_max=optional("late_ns_max"), message=message)


@dataclass
class LossTotal:
    """Losses of one reason, added up."""

    count: int = 0
    unknowable: int = 0  # reports without a count


def means_lost_events(reason: int) -> bool:
    """All but what was in flight when recording began or ended."""
    return reason not in (IN_FLIGHT_AT_START, IN_FLIGHT_AT_END)


class LossTally:
    """Adds losses up by reason. Counts stay at the largest 64-bit number."""

    def __init__(self) -> None:
        self.by_reason: dict[int, LossTotal] = {}
        self.lost_events = 0  # a report without a count is one

    def add(self, loss: Loss) -> None:
        count, unknowable = (0, 1) if loss.count is None else (loss.count, 0)
        total = self.by_reason.setdefault(loss.reason, LossTotal())
        total.count = min(total.count + count, _UINT64_MAX)
        total.unknowable = min(total.unknowable + unknowable, _UINT64_MAX)
        if loss.means_lost_events:
            self.lost_events = min(self.lost_events + count + unknowable, _UINT64_MAX)
