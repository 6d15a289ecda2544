"""Reads traces. format/trace_reader.cc does the same in the program: both tell of the same records and losses."""

import bisect
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from blktape import columns as layout
from blktape import identity, model, schema, summary_check
from blktape.errors import BatchError, TraceError
from blktape.frames import Event, FrameReader, Kind, find_last_frame, size_of

MAX_SMALL_MESSAGE_BYTES = 8 << 20
MAX_FRAME_MESSAGES = 1 << 20
MAX_DETAIL_BYTES = 1024  # of the text of a loss or a mark
# Up to so many bytes a message is parsed as it is; of a larger one the fields, which each take memory, are counted first.
UNCOUNTED_BYTES = 64 << 10
MAX_FIELDS = 1 << 18
MAX_BATCH_FIELDS = 1 << 10
MAX_NAME_BYTES = 64  # of a process
MAX_KEPT = 10_000  # losses, marks ... that Trace keeps, of each kind; events() yields all
_BATCH_TAG = schema.Message.DESCRIPTOR.fields_by_name["batch"].number << 3 | 2

Item: TypeAlias = pa.RecordBatch | model.Loss | model.Mark | model.ClockAnchor | model.QueuedSizes


class _NoWholeMessage(Exception):
    pass


@dataclass
class _End:
    """The summary at the end of the file."""

    summary: Any
    trace: int  # its frame's
    end_bytes: int  # where that ends


@dataclass
class _Damage:
    """A byte range that holds no usable frame, while it is not yet known what it held."""

    from_bytes: int
    to_bytes: int
    truncated: bool
    reason: str


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise _NoWholeMessage
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _count_fields(content: bytes, at: int, end: int, kind: Any, left: int) -> int:
    """`left` less the fields of the message of `kind` in [at, end), those of messages within it included; raises
    _NoWholeMessage where they are more or it is none."""
    while at < end:
        left -= 1
        if left < 0:
            raise _NoWholeMessage
        tag, at = _varint(content, at)
        wire_type = tag & 7
        if wire_type == 2:
            size, at = _varint(content, at)
            if at + size > end:
                raise _NoWholeMessage
            field = kind.fields_by_number.get(tag >> 3)
            if field is not None and field.message_type is not None:
                left = _count_fields(content, at, at + size, field.message_type, left)
            at += size
        elif wire_type == 0:
            _, at = _varint(content, at)
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
        else:  # a group, of which the schema has none
            raise _NoWholeMessage
    if at != end:
        raise _NoWholeMessage
    return left


class _Messages:
    """The messages of a frame."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._content)

    def take(self) -> Any:
        size, at = _varint(self._content, self._at)
        end = at + size
        if size == 0 or end > len(self._content):
            raise _NoWholeMessage
        if size > UNCOUNTED_BYTES:
            is_batch = self._is_batch_alone(at, end)
            # Only a batch and nothing else may be large, as decoding one is bounded.
            if size > MAX_SMALL_MESSAGE_BYTES and not is_batch:
                raise _NoWholeMessage
            _count_fields(self._content, at, end, schema.Message.DESCRIPTOR, MAX_BATCH_FIELDS if is_batch else MAX_FIELDS)
        try:
            message = schema.Message.FromString(self._content[at:end])
        except DecodeError:
            raise _NoWholeMessage from None
        self._at = end
        return message

    def _is_batch_alone(self, at: int, end: int) -> bool:
        if self._content[at] != _BATCH_TAG:
            return False
        size, inner_at = _varint(self._content, at + 1)
        return inner_at + size == end


class Trace:
    """A trace, read once from its begin to its end.

    The header is there at once, and so is the summary of a finished trace that is not read from a pipe. Everything
    else is complete when batches() or events() have come to their end. Memory does not grow with the trace.
    """

    def __init__(self, source: BinaryIO, name: str, columns: Iterable[str] | None = None) -> None:
        """`source` is open for reading bytes; `name` is for messages. TraceError where the header is unreadable."""
        self.name = name
        self._source = source
        self._summary_message: Any = None
        self._processes = layout.Names()
        self._tally = model.LossTally()
        self._stored = model.LossTally()
        self._received = 0
        self._frame_messages = self._frame_records = 0  # of the frame so far
        self._next_record = 0  # how many records lie before the next message
        self._next_frame: int | None = 1  # None: any, after a skip
        self._skipped = False
        self._range: tuple[int | None, int | None] = (None, None)
        self._damage: _Damage | None = None
        self._last_ns: int | None = None  # arrival of the last record that has one
        self._summary_seen = self._seek_table_seen = False
        self._header_copy_at: int | None = None  # the frame that the header was read from, if not the first
        self._begun = False
        self.losses: list[model.Loss] = []
        self.marks: list[model.Mark] = []
        self.anchors: list[model.ClockAnchor] = []
        self.queued_sizes: list[model.QueuedSizes] = []

        end = self._read_end()
        self._frames = FrameReader(source)
        self._frame: Event
        self._messages: _Messages
        message = self._read_header()
        identity.check_understood(message, name)
        self.header = model.Header.of(message)
        self._header_message = message
        self._trace = identity.frame_trace(message)
        if end is not None and end.trace == self._trace and \
                summary_check.contradiction(message, end.summary, end.end_bytes) is None:
            self._take_summary(end.summary)
        # One that cannot be this trace's is met again, and reported, where it stands.

        self._columns = layout.select(columns)
        self._decoder = layout.BatchDecoder(layout.Names(device.name for device in self.header.devices),
                                            self._processes, self._decoded_columns())
        if self.header.start is not None:
            self.anchors.append(self.header.start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._source.close()

    @property
    def schema(self) -> pa.Schema:
        """Of the batches."""
        return layout.schema(self._columns)

    @property
    def summary(self) -> model.Summary | None:
        """None where the trace was not finished, or was cut, or its summary contradicts it."""
        return None if self._summary_message is None else model.Summary.of(self._summary_message)

    @property
    def process_names(self) -> dict[int, str]:
        """By id, as far as they are known by now."""
        return self._processes.as_dict()

    @property
    def records(self) -> int:
        """How many records the trace holds up to here, with those that are known to be missing."""
        return self._next_record

    @property
    def received(self) -> int:
        """How many of them were read."""
        return self._received

    @property
    def lost_events(self) -> int:
        """How many events are missing by now. A loss of unknown extent counts as one."""
        return self._tally.lost_events

    @property
    def loss_totals(self) -> dict[str, model.LossTotal]:
        """By reason."""
        return {schema.loss_reason_name(reason): total for reason, total in sorted(self._tally.by_reason.items())}

    @property
    def lost_events_is_lower_bound(self) -> bool:
        """Whether some loss could not say how many events it is."""
        return any(total.unknowable for reason, total in self._tally.by_reason.items() if model.means_lost_events(reason))

    @property
    def loss_tally(self) -> dict[int, model.LossTotal]:
        """The same by the number of the reason."""
        return self._tally.by_reason

    def wall_ns(self, at_ns: int) -> int | None:
        """The wall clock (ns since the epoch) at a time of the trace: by the last anchor before, else the first one."""
        if not self.anchors:
            return None
        anchors = sorted(self.anchors, key=lambda anchor: anchor.monotonic_ns)
        index = bisect.bisect_right([anchor.monotonic_ns for anchor in anchors], at_ns) - 1
        anchor = anchors[max(index, 0)]
        return anchor.wall_ns + at_ns - anchor.monotonic_ns

    def batches(self, from_ns: int | None = None, to_ns: int | None = None) -> Iterator[pa.RecordBatch]:
        """The records, in the order of the trace: at most 262,144 at a time, mostly 32,768.

        With a range only those that arrived (queue time, else issue time) in [from_ns, to_ns) of the trace's clock. Where
        the trace has an index only the part that holds them is read, and losses are told of that part alone.
        """
        if from_ns is not None:
            self._skip_to(from_ns)
        late_ns = None if self._summary_message is None or not self._summary_message.HasField("late_ns_max") else \
            self._summary_message.late_ns_max
        self._range = from_ns, to_ns
        for item in self.events():
            if isinstance(item, pa.RecordBatch):
                yield item
            # Behind a record that arrived so long after, nothing of before follows.
            if to_ns is not None and late_ns is not None and self._last_ns is not None and self._last_ns >= to_ns + late_ns:
                return

    def events(self) -> Iterator[Item]:
        """Batches of records, and between them in their places losses, marks, clock anchors and queued sizes."""
        if self._begun:
            raise ValueError("%s: is read already; open it again" % self.name)
        self._begun = True
        end = False
        while not end:
            if self._messages:
                yield from self._next_message()
            else:
                losses, end = self._next_event()
                yield from losses

    def read_all(self, from_ns: int | None = None, to_ns: int | None = None) -> pa.Table:
        """All records at once, or all of a range as of batches(), in memory that grows with them."""
        return pa.Table.from_batches(list(self.batches(from_ns, to_ns)), self.schema).unify_dictionaries()

    def _skip_to(self, arrival_ns: int) -> None:
        """To a frame before which no record arrived then or later, by the index; without one it stays at the begin."""
        if self._begun or self._summary_message is None or not self._summary_message.HasField("late_ns_max"):
            return
        begin_ns = arrival_ns - self._summary_message.late_ns_max
        found = None
        for frame in self._summary_message.frames:
            if found is not None and frame.first_ns >= begin_ns:
                break
            found = frame
        # A pipe has been read already up to where its summary is: it never gets here.
        if found is None:
            return
        self._source.seek(found.offset_bytes)
        self._frames = FrameReader(self._source, found.offset_bytes)
        self._messages = _Messages(b"")
        self._next_record, self._next_frame = found.first_record, None
        self._skipped = True

    # What arrival is read from is decoded with whatever is asked for.
    def _decoded_columns(self) -> tuple[layout.Column, ...]:
        wanted = [column.name for column in self._columns]
        return self._columns + layout.select([name for name in ("queue_ns", "issue_ns") if name not in wanted])

    def _read_end(self) -> _End | None:
        """What the seek table leads to."""
        size = size_of(self._source)
        if size is None:
            return None
        at = find_last_frame(self._source, size)
        found = None
        if at is not None:
            self._source.seek(at)
            event = FrameReader(self._source, at).next()
            if event.kind is Kind.FRAME:
                messages = _Messages(event.content)
                try:
                    start = messages.take()
                    if start.HasField("frame"):
                        message = messages.take()
                        if message.HasField("summary"):
                            found = _End(message.summary, start.frame.trace, event.to_bytes)
                except _NoWholeMessage:
                    pass
        self._source.seek(0)
        return found

    def _read_header(self) -> Any:
        event = self._frames.next()
        if event.kind is Kind.END:
            raise TraceError("%s: is empty, so no trace" % self.name)
        if event.kind is not Kind.FRAME:
            return self._begin_with_copy(TraceError(
                "%s: the first frame, the header of the trace, is unreadable (bytes %d to %d), or this is no blktape "
                "trace" % (self.name, event.from_bytes, event.to_bytes)))
        none = TraceError("%s: is no blktape trace" % self.name)
        self._frame = event
        self._messages = _Messages(event.content)
        try:
            message = self._messages.take()
        except _NoWholeMessage:
            raise none from None
        if message.HasField("frame"):  # the beginning is cut off
            return self._begin_with_copy(none)
        if not message.HasField("header") or message.header.format_version == 0:
            raise none
        return message.header

    def _begin_with_copy(self, without: TraceError) -> Any:
        """The header from its first copy in the file, which is then read from its start, where the damage is met and
        reported again. Raises `without` where there is none."""
        if size_of(self._source) is None:
            raise without
        frames = FrameReader(self._source)
        while (event := frames.next()).kind is not Kind.END:
            header = _copy_in(event.content) if event.kind is Kind.FRAME else None
            if header is not None:
                self._header_copy_at = event.from_bytes
                self._messages = _Messages(b"")
                self._source.seek(0)
                self._frames = FrameReader(self._source)
                return header
        raise without

    def _next_event(self) -> tuple[list[model.Loss], bool]:
        """What the next frame or damage tells of losses, and whether the file ends there."""
        event = self._frames.next()
        if event.kind is Kind.FRAME:
            self._frame = event
            return self._start_frame(event), False
        if event.kind is Kind.SEEK_TABLE:
            self._seek_table_seen = True
            return [], False
        if event.kind is Kind.DAMAGE:
            reason = event.reason
            if event.from_bytes == 0 and self._header_copy_at is not None:
                reason += ": the header, read from its copy in the frame at byte %d" % self._header_copy_at
            self._add_damage(_Damage(event.from_bytes, event.to_bytes, event.truncated, reason))
            return [], False
        return self._end(event.to_bytes), True

    def _add_damage(self, damage: _Damage) -> None:
        """Ranges without a usable frame between them are reported as one."""
        if self._damage is None:
            self._damage = damage
        else:
            self._damage.to_bytes = damage.to_bytes
            self._damage.truncated = damage.truncated

    def _damaged_frame(self, reason: str) -> None:
        self._messages = _Messages(b"")
        self._add_damage(_Damage(self._frame.from_bytes, self._frame.to_bytes, False, reason))

    def _start_frame(self, event: Event) -> list[model.Loss]:
        """The checksum of the frame holds. Does it belong here, and what is missing before it?"""
        self._messages = _Messages(event.content)
        self._frame_messages = self._frame_records = 0
        try:
            message = self._messages.take()
        except _NoWholeMessage:
            message = schema.Message()
        if not message.HasField("frame"):
            self._damaged_frame("the header of another trace" if message.HasField("header") else "a frame of no trace")
            return []
        start = message.frame
        if start.trace != self._trace:
            self._damaged_frame("a frame of another trace")
            return []
        expected = start.number if self._next_frame is None else self._next_frame
        if self._summary_seen or start.number < expected or start.first_record < self._next_record:
            self._damaged_frame("a frame that is repeated or out of place")
            return []
        lost = start.first_record - self._next_record
        if self._damage is None and (lost or start.number != expected):
            self._damage = _Damage(event.from_bytes, event.from_bytes, False, "frames are missing here")
        losses = [] if self._damage is None else [self._report_damage(lost)]
        self._next_record = start.first_record
        self._next_frame = start.number + 1
        return losses

    def _report_damage(self, lost: int | None) -> model.Loss:
        damage, self._damage = self._damage, None
        assert damage is not None
        reason = model.TRUNCATED_INPUT if damage.truncated else model.DAMAGED_INPUT
        return self._report(model.Loss(reason, lost, from_ns=self._last_ns, from_bytes=damage.from_bytes,
                                       to_bytes=damage.to_bytes, detail=damage.reason))

    def _report(self, loss: model.Loss) -> model.Loss:
        self._tally.add(loss)
        self._keep(self.losses, loss)
        return loss

    @staticmethod
    def _keep(kept: list[Any], item: Any) -> Any:
        if len(kept) < MAX_KEPT:
            kept.append(item)
        return item

    def _next_message(self) -> Iterator[Item]:
        self._frame_messages += 1
        if self._frame_messages > MAX_FRAME_MESSAGES:
            self._damaged_frame("a frame of more messages than the format allows")
            return
        try:
            message = self._messages.take()
        except _NoWholeMessage:
            self._damaged_frame("a frame that holds no whole messages")
            return
        kind = message.WhichOneof("kind")
        if kind == "batch":
            yield from self._take_batch(message.batch)
        elif kind == "loss":
            yield self._take_loss(message.loss)
        elif kind == "anchor":
            yield self._keep(self.anchors, model.ClockAnchor.of(message.anchor))
        elif kind == "queued_sizes":
            yield self._keep(self.queued_sizes, model.QueuedSizes.of(message.queued_sizes))
        elif kind == "mark":
            message.mark.detail = model.cut(message.mark.detail, MAX_DETAIL_BYTES)
            yield self._keep(self.marks, model.Mark.of(message.mark))
        elif kind == "process_names":
            for id, name in enumerate(message.process_names.names, message.process_names.first_id):
                if id >= summary_check.MAX_PROCESS_NAMES:
                    break  # A writer has no more: what refers to one of these has no name.
                self._take_name(id, name)
        elif kind == "summary":
            reason = summary_check.contradiction(self._header_message, message.summary, self._frames.offset_bytes)
            if reason is not None:
                self._damaged_frame("a summary that contradicts the trace: " + reason)
            else:
                self._summary_seen = True
                self._take_summary(message.summary)
        elif kind in ("header", "frame"):
            self._damaged_frame("a frame with a message out of place")
        # Else a copy of the header, or (None) a kind of message of a newer writer.

    def _take_batch(self, batch: Any) -> Iterator[Item]:
        try:
            records = self._decoder.decode(batch)
        except BatchError as error:
            self._damaged_frame(str(error))
            return
        self._frame_records += batch.count
        if self._frame_records > layout.MAX_BATCH_RECORDS:
            self._damaged_frame("a frame of more records than the format allows")
            return
        self._next_record += batch.count
        self._received += records.num_rows
        if unknown := batch.count - records.num_rows:
            yield self._report(model.Loss(model.UNDECODABLE_EVENT, unknown, from_ns=self._last_ns,
                                          detail="operations that only a newer version knows"))
        if records.num_rows == 0:
            return
        self._last_ns = _last_arrival(records, self._last_ns)
        if self._range != (None, None):
            records = _of_range(records, *self._range)
            if records.num_rows == 0:
                return
        yield records if records.num_columns == len(self._columns) else records.select(
            range(len(self._columns)))

    def _take_loss(self, message: Any) -> model.Loss:
        message.reason = _known_reason(message.reason)
        message.detail = model.cut(message.detail, MAX_DETAIL_BYTES)
        if message.HasField("device") and message.device >= len(self.header.devices):
            message.ClearField("device")
        loss = model.Loss.of(message)
        self._stored.add(loss)
        return self._report(loss)

    def _take_name(self, id: int, name: str) -> None:
        self._processes.set(id, model.cut(name, MAX_NAME_BYTES))

    def _take_summary(self, summary: Any) -> None:
        for id, name in enumerate(summary.process_names):
            self._take_name(id, name)
        for total in summary.losses:
            total.reason = _known_reason(total.reason)
        self._summary_message = summary

    def _end(self, file_bytes: int) -> list[model.Loss]:
        if self._damage is None and not (self._summary_seen and self._seek_table_seen):
            self._damage = _Damage(file_bytes, file_bytes, True,
                                   "it ends without its seek table" if self._summary_seen else
                                   "it ends without a summary: the recording was not finished, or the end is cut off")
        # Behind the summary there are no records.
        losses = [] if self._damage is None else [self._report_damage(0 if self._summary_seen else None)]
        return losses + (self._compare_with_summary() if self._summary_seen and not self._skipped else [])

    def _compare_with_summary(self) -> list[model.Loss]:
        """A loss that was stored in a frame that is now damaged is still known to the summary."""
        losses = []
        detail = "known from the summary alone: its place in the trace is damaged"
        for total in self._summary_message.losses:
            seen = self._stored.by_reason.get(total.reason, model.LossTotal())
            if total.count > seen.count:
                losses.append(self._report(model.Loss(total.reason, total.count - seen.count, detail=detail)))
            if total.unknowable > seen.unknowable:
                losses.append(self._report(model.Loss(total.reason, detail=detail)))
        return losses


def _copy_in(content: bytes) -> Any:
    """The copy of the header that this frame has, of the trace that it says to be of; None where it has none."""
    messages = _Messages(content)
    try:
        start = messages.take()
        if not start.HasField("frame"):
            return None
        message = messages.take()
        if message.HasField("summary"):
            message = messages.take()
    except _NoWholeMessage:
        return None
    copy = message.header_copy
    if not message.HasField("header_copy") or copy.format_version == 0 or identity.frame_trace(copy) != start.frame.trace:
        return None
    return copy


def _known_reason(reason: int) -> int:
    return reason if 0 <= reason <= model.MAX_LOSS_REASON else 0


def _of_range(records: pa.RecordBatch, from_ns: int | None, to_ns: int | None) -> pa.RecordBatch:
    """The records that arrived in [from_ns, to_ns)."""
    arrival = pc.coalesce(records.column("queue_ns"), records.column("issue_ns"))
    inside = pc.is_valid(arrival)
    if from_ns is not None:
        inside = pc.and_kleene(inside, pc.greater_equal(arrival, pa.scalar(_as_int64(from_ns), pa.int64())))
    if to_ns is not None:
        inside = pc.and_kleene(inside, pc.less(arrival, pa.scalar(_as_int64(to_ns), pa.int64())))
    return records if pc.all(inside).as_py() else records.filter(inside)


def _as_int64(value: int) -> int:
    return max(-2**63, min(value, 2**63 - 1))


def _last_arrival(records: pa.RecordBatch, before: int | None) -> int | None:
    """The queue time, without one the issue time, of the last record that has either."""
    for piece in (records.slice(records.num_rows - 1), records):
        queue, issue = piece.column("queue_ns"), piece.column("issue_ns")
        places = np.flatnonzero(~(np.asarray(queue.is_null()) & np.asarray(issue.is_null())))
        if len(places):
            last = int(places[-1])
            time = queue[last] if queue[last].is_valid else issue[last]
            return int(time.as_py())
    return before


def open_trace(trace: str | os.PathLike[str] | BinaryIO, columns: Iterable[str] | None = None) -> Trace:
    """Opens a trace: a path, "-" for standard input, or a file open for reading bytes.

    `columns` names the columns wanted (blktape.COLUMNS); all of them without it. Raises TraceError if it is none or
    its header is unreadable, NewerFormatError if its format is newer than this package, OSError as open() does.
    """
    if isinstance(trace, (str, os.PathLike)):
        path = os.fspath(trace)
        if path == "-":
            source: BinaryIO = open(0, "rb", closefd=False)
            name = "standard input"
        else:
            source, name = open(path, "rb"), path
        try:
            return Trace(source, name, columns)
        except BaseException:
            source.close()
            raise
    return Trace(trace, str(getattr(trace, "name", "trace")), columns)
