"""Whether a summary can be that of its trace, docs/trace_format.md, "Damage"; as format/summary_check.cc has it."""

from typing import Any

MAX_PROCESS_NAMES = 65_536


def contradiction(header: Any, summary: Any, end_bytes: int) -> str | None:
    """What in `summary`, whose frame ends at `end_bytes`, cannot be; None where all can."""
    return (_of_extents(header, summary) or _of_frames(summary, end_bytes) or _of_totals(summary))


def _of_extents(header: Any, summary: Any) -> str | None:
    seen = set()
    records = 0
    for extent in summary.extents:
        if extent.device >= len(header.devices):
            return "an extent of a device that the header does not have"
        if extent.device in seen:
            return "two extents of one device"
        seen.add(extent.device)
        if extent.begin_bytes > extent.end_bytes:
            return "an extent that ends before it begins"
        records += extent.records
        if records > summary.records:
            return "extents of more records than the trace has"
    if seen and records != summary.records:
        return "extents of fewer records than the trace has"
    return None


def _of_frames(summary: Any, end_bytes: int) -> str | None:
    before = None
    for frame in summary.frames:
        if frame.offset_bytes >= end_bytes:
            return "an index of a frame beyond the end of the file"
        if frame.first_record > summary.records:
            return "an index of a frame beyond the last record"
        if before is not None and (frame.offset_bytes <= before.offset_bytes or
                                   frame.first_record < before.first_record):
            return "an index of frames that is not in order"
        if frame.contents.begin_lba > frame.contents.end_lba or \
                frame.contents.least_bytes > frame.contents.most_bytes:
            return "an index of a frame whose contents end before they begin"
        before = frame
    return None


def _of_totals(summary: Any) -> str | None:
    if sum(summary.records_by_op.values()) > summary.records:
        return "operations of more records than the trace has"
    if summary.completed > summary.records:
        return "more completions than records"
    if summary.HasField("first_ns") and summary.HasField("last_ns") and summary.first_ns > summary.last_ns:
        return "a last arrival before the first"
    if summary.HasField("late_ns_max") and summary.late_ns_max < 0:
        return "a disorder below zero"
    if len(summary.process_names) > MAX_PROCESS_NAMES:
        return "more names of processes than a trace may have"
    return None
