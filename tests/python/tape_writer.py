"""Writes traces as docs/trace_format.md says, value by value: small ones, for tests, also such as no program would write.

A record is a dictionary by the names of `RecordBatch` in format/trace.proto, with absolute values; what it does not
have is absent.
"""

import struct

import zstandard

OPS = ["read", "write", "discard", "flush", "write_zeroes", "secure_erase", "zone_reset", "zone_reset_all", "zone_open",
       "zone_close", "zone_finish", "zone_append"]
COLUMNS = ["device", "op", "flags", "bytes", "lba", "queue", "issue", "complete", "error", "pid", "process", "cpu",
           "merged_bios", "prio", "ordinal", "backlog", "waker", "since_wake"]
FIELD_NUMBERS = dict(zip(COLUMNS, [*range(2, 17), 19, 20, 21]))
U64 = 2**64 - 1

# Field numbers of Message.
HEADER, BATCH, LOSS, ANCHOR, QUEUED_SIZES, PROCESS_NAMES, MARK, SUMMARY, FRAME, HEADER_COPY = range(1, 11)


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    """A field of type int or enum, negative ones as protobuf has them."""
    return varint(field << 3) + varint(value & U64)


def data(field, value):
    """A field of type bytes, string or message."""
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def message(kind, content):
    inner = data(kind, content)
    return varint(len(inner)) + inner


def header(devices=("sda",), version=1, host="", source="generator", start=None, trace_id=b"", needs=(), kind=HEADER):
    content = number(1, version) + data(2, "9.9") + data(3, source) + data(4, host)
    content += b"".join(data(6, data(1, name)) for name in devices)
    if start is not None:
        content += data(7, number(1, start[0]) + number(2, start[1]))
    content += data(16, trace_id) if trace_id else b""
    content += b"".join(data(17, name) for name in needs)
    return message(kind, content)


def frame_start(number_, first_record, trace=0):
    content = number(1, number_) + number(2, first_record)
    return message(FRAME, content + (varint(4 << 3 | 1) + struct.pack("<Q", trace) if trace else b""))


def loss(reason, count=None, **fields):
    numbers = {"from_ns": 3, "to_ns": 4, "cpu": 5, "device": 6, "from_bytes": 7, "to_bytes": 8}
    content = number(1, reason) + (b"" if count is None else number(2, count))
    content += b"".join(number(numbers[name], value) for name, value in fields.items())
    return message(LOSS, content)


def mark(kind, at_ns, value_ns, detail=""):
    return message(MARK, number(1, kind) + number(2, at_ns) + number(3, value_ns) + data(4, detail))


def anchor(monotonic_ns, wall_ns):
    return message(ANCHOR, number(1, monotonic_ns) + number(2, wall_ns))


def queued_sizes(entries, flushes_asked=0, flagged_writes=0):
    content = b"".join(data(1, number(1, op) + number(2, size) + number(3, count)) for op, size, count in entries)
    return message(QUEUED_SIZES, content + number(2, flushes_asked) + number(3, flagged_writes))


def process_names(names, first_id=0):
    return message(PROCESS_NAMES, number(1, first_id) + b"".join(data(2, name) for name in names))


def summary(records, names=(), losses=(), **fields):
    content = number(1, records) + b"".join(data(16, name) for name in names)
    content += b"".join(data(5, number(1, reason) + number(2, count)) for reason, count in losses)
    numbers = {"first_ns": 2, "last_ns": 3, "completed": 18, "late_ns_max": 19}
    return message(SUMMARY, content + b"".join(number(numbers[name], value) for name, value in fields.items()))


def zigzag(value):
    value &= U64
    value = value - 2**64 if value >> 63 else value
    return 2 * value if value >= 0 else -2 * value - 1


def coded(records):
    """The stored values of the records, and base_ns and base_ordinal."""
    base_ns = next((io[name] for io in records for name in ("queue", "issue", "complete") if name in io), 0)
    base_ordinal = next((io["ordinal"] for io in records if "ordinal" in io), 0)
    arrival, ordinal, ends, stored = base_ns, base_ordinal, {}, []
    for io in records:
        values = dict(io)
        base = arrival
        if "queue" in io:
            values["queue"] = zigzag(io["queue"] - base)
            arrival = base = io["queue"]
        if "issue" in io:
            values["issue"] = zigzag(io["issue"] - base)
            base = io["issue"]
            if "queue" not in io:
                arrival = base
        if "complete" in io:
            values["complete"] = zigzag(io["complete"] - base)
        if "lba" in io:
            stream = io["device"], io["op"]
            values["lba"] = zigzag(io["lba"] - ends.get(stream, 0))
            ends[stream] = io["lba"] + io["bytes"] // 512 & U64
        if "ordinal" in io:
            values["ordinal"] = zigzag(io["ordinal"] - ordinal)
            ordinal = io["ordinal"] + 1
        stored.append(values)
    return stored, base_ns, base_ordinal


def column(values):
    """A Column of these values, None where a record has none."""
    there = [value for value in values if value is not None]
    mask, planes = 0, b""
    for plane in range(8):
        cut = bytes(value >> 8 * plane & 0xFF for value in there)
        if any(cut):
            mask |= 1 << plane
            planes += cut
    content = number(1, mask)
    if len(there) < len(values):
        present = bytearray((len(values) + 7) // 8)
        for i, value in enumerate(values):
            if value is not None:
                present[i // 8] |= 1 << i % 8
        content += data(2, bytes(present))
    return content + data(3, planes)


def batch(records):
    stored, base_ns, base_ordinal = coded(records)
    content = number(1, len(records))
    for name in COLUMNS:
        values = [io.get(name) for io in stored]
        if any(value is not None for value in values):
            content += data(FIELD_NUMBERS[name], column(values))
    content += varint(17 << 3 | 1) + struct.pack("<q", base_ns) + number(18, base_ordinal)
    return message(BATCH, content)


def frame(content):
    return zstandard.ZstdCompressor(level=1, write_checksum=True, write_content_size=True).compress(content)


def seek_table(frames):
    entries = b"".join(struct.pack("<II", len(each), zstandard.frame_content_size(each)) for each in frames)
    payload = entries + struct.pack("<IBI", len(frames), 0, 0x8F92EAB1)
    return struct.pack("<II", 0x184D2A5E, len(payload)) + payload


def finish(frames):
    """The bytes of a trace of these frames."""
    return b"".join(frames) + seek_table(frames)


def frames_of(batches, before=(), **header_fields):
    """The frames of a finished trace: the header's, one for each list of records, the summary's. `before` are messages
    that stand before the first batch."""
    frames = [frame(header(**header_fields))]
    first = 0
    for i, records in enumerate(batches):
        frames.append(frame(frame_start(i + 1, first) + (b"".join(before) if i == 0 else b"") + batch(records)))
        first += len(records)
    frames.append(frame(frame_start(len(batches) + 1, first) + summary(first)))
    return frames


def trace_of(batches, before=(), **header_fields):
    return finish(frames_of(batches, before, **header_fields))
