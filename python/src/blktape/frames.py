"""The frames of a trace file: bytes in, the content of whole frames and the ranges of damaged ones out.

docs/trace_format.md, "Layout" and "Damage", is the specification; format/frame_reader.cc does the same in the program.
"""

import enum
import io
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import zstandard

ZSTD_MAGIC = 0xFD2FB528
SEEK_TABLE_MAGIC = 0x184D2A5E
FOOTER_MAGIC = 0x8F92EAB1
MAX_CONTENT_BYTES = 32 << 20  # of a frame
MAX_BLOCK_BYTES = 128 << 10
MAX_BLOCKS = 1_000_000  # of a frame
MAX_SEEK_TABLE_BYTES = 64 << 20
# Behind damage every place that looks like a frame has to be tried. Failed tries may decompress so many bytes, and so many
# for every byte passed: only a file made to that end uses that up. Then such places are passed over untried.
FREE_SEARCH_BYTES = 256 << 20
SEARCH_BYTES_PER_BYTE = 256
BYTES_PER_BLOCK = 16  # looking at a block header costs as much as decompressing so many
_FOOTER_BYTES = 9
_ENTRY_BYTES = 8
_SKIPPABLE_HEADER_BYTES = 8
_READ_BYTES = 1 << 20


class Kind(enum.Enum):
    FRAME = 1
    SEEK_TABLE = 2
    DAMAGE = 3
    END = 4


@dataclass(frozen=True)
class Event:
    """What lies in [from_bytes, to_bytes) of the file. `content` is there for a frame, `reason` for damage."""

    kind: Kind
    from_bytes: int
    to_bytes: int
    content: bytes = b""
    truncated: bool = False
    reason: str = ""


class _Attempt(NamedTuple):
    """How reading one frame went: where it ends (0: not known) and, where it is good, what it is."""

    kind: Kind | None = None
    end_bytes: int = 0
    content: bytes = b""
    skip: bool = False  # a skippable frame of others, already passed over
    truncated: bool = False
    reason: str = ""
    cost_bytes: int = 0  # of having tried


class _EndOfFile(Exception):
    pass


def _is_skippable(magic: int) -> bool:
    return magic & 0xFFFFFFF0 == 0x184D2A50


def _little(data: bytes | bytearray) -> int:
    return int.from_bytes(data, "little")


def parse_seek_table(payload: bytes) -> bytes | None:
    """Compressed and content bytes of every frame, 4 bytes each; None where the payload contradicts itself."""
    if len(payload) < _FOOTER_BYTES or _little(payload[-4:]) != FOOTER_MAGIC:
        return None
    descriptor = payload[-5]
    if descriptor & 0x7C:  # reserved
        return None
    entry = _ENTRY_BYTES + (4 if descriptor & 0x80 else 0)
    count = _little(payload[-_FOOTER_BYTES:-5])
    if count * entry + _FOOTER_BYTES != len(payload):
        return None
    if entry == _ENTRY_BYTES:
        return payload[:-_FOOTER_BYTES]
    return b"".join(payload[at:at + _ENTRY_BYTES] for at in range(0, count * entry, entry))


def find_last_frame(source: BinaryIO, file_bytes: int) -> int | None:
    """Where the last frame before the seek table begins, going by the table alone; None where there is none."""
    if file_bytes < _SKIPPABLE_HEADER_BYTES + _FOOTER_BYTES:
        return None
    source.seek(file_bytes - _FOOTER_BYTES)
    footer = source.read(_FOOTER_BYTES)
    if len(footer) < _FOOTER_BYTES or _little(footer[5:]) != FOOTER_MAGIC or footer[4] & 0x7C:
        return None
    entry = _ENTRY_BYTES + (4 if footer[4] & 0x80 else 0)
    count = _little(footer[:4])
    payload_bytes = count * entry + _FOOTER_BYTES
    table_at = file_bytes - payload_bytes - _SKIPPABLE_HEADER_BYTES
    if count == 0 or payload_bytes > MAX_SEEK_TABLE_BYTES or table_at < 0:
        return None
    source.seek(table_at)
    header = source.read(_SKIPPABLE_HEADER_BYTES)
    if _little(header[:4]) != SEEK_TABLE_MAGIC or _little(header[4:]) != payload_bytes:
        return None
    source.seek(file_bytes - _FOOTER_BYTES - entry)
    compressed_bytes = _little(source.read(4))
    return table_at - compressed_bytes if compressed_bytes <= table_at else None


class FrameReader:
    """Reads `source` from where it stands, which is `offset_bytes` of the file. Holds one frame at a time."""

    def __init__(self, source: BinaryIO, offset_bytes: int = 0) -> None:
        self._source = source
        self._buffer = bytearray()
        self._offset = offset_bytes  # of the buffer in the file
        self._at_end = False
        self._found: _Attempt | None = None  # a good frame behind damage, not yet given
        # Of every frame so far, as a seek table has them; None where some were not read.
        self._sizes: bytearray | None = bytearray() if offset_bytes == 0 else None
        self._zstd = zstandard.ZstdDecompressor()
        self._blocks = 0  # of the frame tried last
        self._search_bytes = 0  # what failed tries behind damage have cost

    @property
    def offset_bytes(self) -> int:
        """Where in the file reading stands."""
        return self._offset

    def next(self) -> Event:
        """The next frame, seek table or damaged range. OSError where the source fails."""
        if self._found is not None:
            attempt, self._found = self._found, None
            return self._take(attempt)
        while True:
            if self._fill(1) == 0:
                return Event(Kind.END, self._offset, self._offset)
            from_bytes = self._offset
            attempt = self._try(None)
            if attempt.skip:
                continue
            if attempt.kind is None:
                return self._find_next_good(from_bytes, attempt)
            return self._take(attempt)

    def _fill(self, count: int) -> int:
        """Reads on until `count` bytes are there or the file ends. How many are there."""
        # Grows with what really arrives, never with what a damaged size field promises.
        while len(self._buffer) < count and not self._at_end:
            got = self._source.read(_READ_BYTES)
            if got:
                self._buffer += got
            else:
                self._at_end = True
        return len(self._buffer)

    def _need(self, count: int) -> None:
        if self._fill(count) < count:
            raise _EndOfFile

    def _drop(self, count: int) -> None:
        del self._buffer[:count]
        self._offset += count

    def _discard(self, count: int) -> bool:
        while True:
            now = min(count, len(self._buffer))
            self._drop(now)
            count -= now
            if count == 0:
                return True
            if self._fill(1) == 0:
                return False

    def _try(self, most_bytes: int | None) -> _Attempt:
        """Fails where more than `most_bytes` would have to be decompressed."""
        if self._fill(4) < 4:
            return _Attempt(truncated=True, reason="it ends inside a frame")
        magic = _little(self._buffer[:4])
        if magic == ZSTD_MAGIC:
            try:
                return self._try_zstd(most_bytes)
            except _EndOfFile:
                return _Attempt(truncated=True, reason="it ends inside a frame", cost_bytes=self._blocks * BYTES_PER_BLOCK)
        if _is_skippable(magic):
            return self._try_skippable(magic, most_bytes)
        return _Attempt(reason="bytes that begin no frame")

    def _walk(self) -> tuple[int, int] | None:
        """Bytes of the frame and of its content by its headers; None where they make no sense."""
        self._blocks = 0
        self._need(5)
        descriptor = self._buffer[4]
        single_segment = bool(descriptor & 0x20)
        size_code = descriptor >> 6
        # Without a content size nothing bounds the memory; without a checksum nothing proves it whole.
        if descriptor & 0x08 or not descriptor & 0x04 or descriptor & 0x03 or (size_code == 0 and not single_segment):
            return None
        size_at = 5 if single_segment else 6
        at = size_at + (1 << size_code)
        self._need(at)
        content_bytes = _little(self._buffer[size_at:at]) + (256 if size_code == 1 else 0)
        if content_bytes > MAX_CONTENT_BYTES:
            return None
        plain_bytes = stored_bytes = 0
        last = False
        while not last:
            self._need(at + 3)
            header = _little(self._buffer[at:at + 3])
            kind, size = header >> 1 & 3, header >> 3
            self._blocks += 1
            if kind == 3 or size > MAX_BLOCK_BYTES or self._blocks > MAX_BLOCKS:
                return None
            # Raw (0) and run-length blocks (1) say how much they yield; a block is compressed (2) only where that makes
            # it smaller. So a frame is hardly larger than its content, whatever it promises.
            plain_bytes += 0 if kind == 2 else size
            stored_bytes += 0 if kind == 1 else size
            if plain_bytes > content_bytes or stored_bytes > content_bytes + MAX_BLOCK_BYTES:
                return None
            last = bool(header & 1)
            at += 3 + (1 if kind == 1 else size)
        if content_bytes > self._blocks * MAX_BLOCK_BYTES:
            return None
        self._need(at + 4)  # the checksum
        return at + 4, content_bytes

    def _try_zstd(self, most_bytes: int | None) -> _Attempt:
        walked = self._walk()
        cost = self._blocks * BYTES_PER_BLOCK
        if walked is None:
            return _Attempt(reason="a frame header or block header that makes no sense", cost_bytes=cost)
        frame_bytes, content_bytes = walked
        cost += content_bytes
        if most_bytes is not None and cost > most_bytes:
            return _Attempt(reason="too many bytes that look like a frame")
        end = self._offset + frame_bytes
        try:
            content = self._zstd.decompress(bytes(memoryview(self._buffer)[:frame_bytes]))
        except zstandard.ZstdError:
            content = b""
        if len(content) != content_bytes:
            return _Attempt(end_bytes=end, reason="a frame whose checksum does not hold", cost_bytes=cost)
        return _Attempt(Kind.FRAME, end, content, cost_bytes=cost)

    def _try_skippable(self, magic: int, most_bytes: int | None) -> _Attempt:
        if self._fill(_SKIPPABLE_HEADER_BYTES) < _SKIPPABLE_HEADER_BYTES:
            return _Attempt(truncated=True, reason="it ends inside a skippable frame")
        payload_bytes = _little(self._buffer[4:8])
        frame_bytes = _SKIPPABLE_HEADER_BYTES + payload_bytes
        if magic != SEEK_TABLE_MAGIC:
            if self._discard(frame_bytes):
                return _Attempt(skip=True)
            return _Attempt(truncated=True, reason="it ends inside a skippable frame")
        if payload_bytes > MAX_SEEK_TABLE_BYTES:
            return _Attempt(reason="a seek table that is too large")
        if self._fill(frame_bytes) < frame_bytes:
            return _Attempt(truncated=True, reason="it ends inside the seek table")
        if most_bytes is not None and payload_bytes > most_bytes:
            return _Attempt(reason="too many bytes that look like a seek table")
        table = parse_seek_table(bytes(self._buffer[_SKIPPABLE_HEADER_BYTES:frame_bytes]))
        if table is None:
            return _Attempt(reason="the seek table contradicts itself", cost_bytes=payload_bytes)
        if self._sizes is not None and table != self._sizes:
            # Only a table of the right shape tells where it ends.
            return _Attempt(end_bytes=self._offset + frame_bytes, reason="the seek table does not agree with the frames",
                            cost_bytes=payload_bytes)
        return _Attempt(Kind.SEEK_TABLE, self._offset + frame_bytes)

    def _take(self, attempt: _Attempt) -> Event:
        assert attempt.kind is not None
        event = Event(attempt.kind, self._offset, attempt.end_bytes, attempt.content)
        size = attempt.end_bytes - self._offset
        if attempt.kind is Kind.FRAME and self._sizes is not None:
            self._sizes += (size & 0xFFFFFFFF).to_bytes(4, "little") + len(attempt.content).to_bytes(4, "little")
        self._drop(size)
        return event

    def _find_next_good(self, from_bytes: int, failure: _Attempt) -> Event:
        self._sizes = None

        def damage(truncated: bool) -> Event:
            return Event(Kind.DAMAGE, from_bytes, self._offset, b"", truncated, failure.reason)

        if failure.end_bytes:
            # Its block headers led to an end: if a frame begins there, that is where to go on.
            size = failure.end_bytes - self._offset
            there = self._fill(size + 4)
            magic = 0 if there < size + 4 else _little(self._buffer[size:size + 4])
            if there == size or magic == ZSTD_MAGIC or _is_skippable(magic):
                self._drop(size)
                return damage(failure.truncated)
        begins = [magic.to_bytes(4, "little") for magic in (ZSTD_MAGIC, SEEK_TABLE_MAGIC)]
        search_from = 1
        while True:
            there = self._fill(search_from + 4)
            candidates = [at for at in (self._buffer.find(magic, search_from) for magic in begins) if at >= 0]
            if candidates:
                self._drop(min(candidates))
                attempt = self._try(max(FREE_SEARCH_BYTES + self._offset * SEARCH_BYTES_PER_BYTE - self._search_bytes, 0))
                if attempt.kind is not None:
                    self._found = attempt
                    return damage(False)
                self._search_bytes += attempt.cost_bytes
                search_from = 1
            elif self._at_end:
                self._drop(there)
                return damage(failure.truncated)
            else:
                # The last three bytes may begin a magic number.
                self._drop(max(search_from, there - 3))
                search_from = 0


def size_of(source: BinaryIO) -> int | None:
    """Bytes of a file that can be read anywhere; None of a pipe."""
    try:
        if not source.seekable():
            return None
        size = source.seek(0, io.SEEK_END)
        source.seek(0)
        return size
    except OSError:
        return None
