"""Which frames are a trace's, where copies of its header are, and whether this package understands it.

docs/trace_format.md, "Identity" and "Version and features", is the specification; format/trace_identity.cc does the same
in the program.
"""

from typing import Any

from blktape.columns import FORMAT_VERSION
from blktape.errors import NewerFormatError, TraceError
from blktape.model import cut

ID_BYTES = 16
FRAME_TRACE_BYTES = 8
MAX_DEVICES = 4096
KNOWN_FEATURES: frozenset[str] = frozenset()  # names of Header.needs: none has been needed so far
_SHOWN_BYTES = 64  # of a name or version that a hostile trace may have chosen


def frame_trace(header: Any) -> int:
    """FrameStart.trace of the frames of the trace with this header; 0: it has no id."""
    trace_id: bytes = header.trace_id
    return int.from_bytes(trace_id[:FRAME_TRACE_BYTES], "little") if len(trace_id) == ID_BYTES else 0


def check_understood(header: Any, name: str) -> None:
    """NewerFormatError, which says what it is, of a trace that needs what this package does not know; TraceError of one
    of more devices than the format allows. `name` is the trace's, for messages."""
    def refuse(what: str) -> NewerFormatError:
        return NewerFormatError("%s: %s, written by blktape %s" % (name, what, cut(header.tool_version, _SHOWN_BYTES)))

    for feature in header.needs:
        if feature not in KNOWN_FEATURES:
            raise refuse("needs \"%s\", which this version does not know" % cut(feature, _SHOWN_BYTES))
    if header.format_version > FORMAT_VERSION:
        raise refuse("format version %d, and this one reads up to version %d" % (header.format_version, FORMAT_VERSION))
    if len(header.devices) > MAX_DEVICES:
        raise TraceError("%s: the header of the trace has %d devices, and a trace has at most %d" % (
            name, len(header.devices), MAX_DEVICES))
