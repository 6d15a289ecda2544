"""What is missing in a trace, in words: the same as the program's."""

from collections.abc import Mapping, Sequence

from blktape import model, schema

MAX_RANGES = 10

_WORDS = {
    "ORPHAN_COMPLETION": "completion without issue",
    "QUEUE_WITHOUT_ISSUE": "queued, never issued",
    "TRACING_ENDED": "tracing ended by others",
}


def printable(text: str) -> str:
    """Text of a trace is data: every control character becomes "?", so that none is a command to a terminal."""
    return "".join("?" if sign < " " or "\x7f" <= sign <= "\x9f" else sign for sign in text)


def reason_words(reason: int) -> str:
    name = schema.loss_reason_name(reason)
    if reason == 0 or name.isdigit() or name.startswith("-"):
        return "unknown reason"
    return _WORDS.get(name, name.lower().replace("_", " "))


def _amount(total: model.LossTotal) -> str:
    events = "%s event%s" % (format(total.count, ","), "" if total.count == 1 else "s")
    if total.unknowable == 0:
        return events
    return "at least " + events if total.count else "an unknown number of events"


def loss_lines(losses: Sequence[model.Loss], by_reason: Mapping[int, model.LossTotal]) -> list[str]:
    """A line a reason, and below it the damaged places of the file, the first ten of all."""
    placed = [loss for loss in losses if loss.from_bytes is not None]
    lines = []
    for reason, total in sorted(by_reason.items()):
        lines.append("%s: %s" % (reason_words(reason), _amount(total)))
        for loss in placed[:MAX_RANGES]:
            if loss.reason == reason:
                upto = "" if loss.to_bytes == loss.from_bytes else " to " + format(loss.to_bytes or 0, ",")
                lines.append("  bytes %s%s: %s" % (format(loss.from_bytes, ","), upto, printable(loss.detail)))
    if len(placed) > MAX_RANGES:
        left = len(placed) - MAX_RANGES
        lines.append("  and %s more damaged place%s" % (format(left, ","), "" if left == 1 else "s"))
    return lines
