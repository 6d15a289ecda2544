"""What a replay waited for by the block layer's times, of a recording made meanwhile, beside what its result says."""

import bisect
import collections

from tests.harness import blktape

PAUSE_NS = 5_000_000
SLACK_NS = 2_000  # between two readings of one clock
FLUSH_FOLLOWS_NS = 5_000_000
RECENT = 200  # I/Os among which one that is still out is looked for
MODELS = ("nothing", "no pauses", "as it is")


def wait_s(spans):
    """Length of the union of (from, to)."""
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total / 1e9


def begins_with_flush(row):
    return row["op"] == "flush" or "preflush" in row["flags"]


def is_foreground(row):
    return row["op"] in ("read", "flush") or bool(set(row["flags"].split("+")) & {"sync", "fua", "preflush"})


def seen_end(end, flushes):
    """When software saw the end of a write with FUA that was complete at `end`: after the flush that stands for FUA, if
    one of `flushes`, in order (from, to), followed at once."""
    at = bisect.bisect_left(flushes, (end, 0))
    return flushes[at][1] if at < len(flushes) and flushes[at][0] - end <= FLUSH_FOLLOWS_NS else end


class BlockLayer:
    """What the kernel saw of a replay."""

    def __init__(self, trace, from_ns):
        self.flushes, self.derived, self.others = [], [], collections.defaultdict(collections.deque)
        for row in blktape.dump(trace, accept=(0, 3)):
            if not row["complete_ns"] or int(row["issue_ns"]) < from_ns:
                continue
            span = int(row["queue_ns"] or row["issue_ns"]), int(row["complete_ns"])
            if "derived" in row["flags"]:
                self.derived.append((int(row["issue_ns"]), span[1]))
            elif row["op"] == "flush":
                self.flushes.append(span)
            else:
                self.others[row["op"], row["lba"], row["bytes"]].append(span)
        self.flushes.sort()
        self.derived.sort()

    def span_of(self, row, seen_ns):
        """Of a row of the result, whose end was seen at `seen_ns`; None if it cannot be told."""
        issue_ns = int(row["issue_ns"])
        flush = None
        if begins_with_flush(row):
            at = bisect.bisect_left(self.flushes, (issue_ns - SLACK_NS, 0))
            flush = self.flushes[at] if at < len(self.flushes) else None
        if row["op"] == "flush":
            return flush if flush and flush[1] <= seen_ns + SLACK_NS else None
        same = self.others[row["op"], row["lba"], row["bytes"]]
        span = same.popleft() if same else None
        if span is None or span[0] < issue_ns - SLACK_NS or span[1] > seen_ns + SLACK_NS:
            return None
        if "fua" in row["flags"]:
            span = span[0], min(seen_end(span[1], self.derived), seen_ns)
        return (flush[0], span[1]) if flush and flush[1] <= span[0] + SLACK_NS else span


def host_part(result):
    """(without pause, after one) of a transfer and of what begins with a flush."""
    [part] = blktape.as_json("info", result)["summary"]["replay"].get("host_parts") or [{}]
    return {begins: tuple(int(part.get(kind + key, 0)) for key in ("_ns", "_after_pause_ns"))
            for begins, kind in ((False, "transfer"), (True, "flush"))}


def compare(result, recorded):
    """Foreground wait in s (docs/metrics.md): by the block layer, and by each model; and how many I/Os could not be
    compared."""
    parts = host_part(result)
    rows = sorted((row for row in blktape.dump(result, "--result") if row["complete_ns"]),
                  key=lambda row: int(row["queue_ns"]))
    layer = BlockLayer(recorded, min(int(row["issue_ns"]) for row in rows) - SLACK_NS)
    seen = {False: collections.deque(maxlen=RECENT), True: collections.deque(maxlen=RECENT)}
    block, spans, unknown = [], {model: [] for model in MODELS}, 0
    for row in rows:
        due_ns, complete_ns, flushes = int(row["queue_ns"]), int(row["complete_ns"]), begins_with_flush(row)
        at_once_ns, after_pause_ns = parts[flushes]
        last_ns = max(seen[flushes], default=due_ns - PAUSE_NS)
        pause_ns = min(max(0, due_ns - last_ns), PAUSE_NS)
        taken_ns = at_once_ns + (after_pause_ns - at_once_ns) * pause_ns // PAUSE_NS
        if flushes and row["op"] == "write":
            taken_ns += parts[False][0]
        seen_ns = complete_ns + taken_ns
        seen[flushes].append(seen_ns)
        if not is_foreground(row):
            continue
        span = layer.span_of(row, seen_ns)
        if span is None:
            unknown += 1
            continue
        block.append(span)
        from_ns = int(row["issue_ns"]) - int(row["backlog_ns"])  # a late host is in no wait
        for model, end_ns in zip(MODELS, (seen_ns, seen_ns - at_once_ns, complete_ns)):
            spans[model].append((from_ns, end_ns))
    return wait_s(block), {model: wait_s(spans[model]) for model in MODELS}, unknown
