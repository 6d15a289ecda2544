"""The score of docs/score.md a second time, from the text of `blktape dump --csv`: written from that page alone.

Records are dictionaries with queue, issue, complete (ns or None), op, flags (a set), bytes; those of a result (`dump --csv
--result`) also ordinal and backlog. Holds whole traces in memory.
"""

import math

VERSION = 2
WEIGHTS = (0.70, 0.30)
CLASSES = ("reads_to_16k", "reads_over_16k", "sync_writes_and_flushes")


def records(rows):
    """From the rows of a dump, as dictionaries of text."""
    number = lambda text: int(text) if text else None
    return [{"queue": number(row["queue_ns"]), "issue": number(row["issue_ns"]), "complete": number(row["complete_ns"]),
             "op": row["op"], "flags": set(filter(None, row["flags"].split("+"))), "bytes": int(row["bytes"]),
             "ordinal": number(row.get("ordinal")), "backlog": number(row.get("backlog_ns"))}
            for row in rows]


def arrival(io):
    return io["queue"] if io["queue"] is not None else io["issue"]


# Segments.


def wait_class(io, all_writes=False):
    """0, 1, 2 as in CLASSES; None: nobody waits for it."""
    if "derived" in io["flags"]:
        return None
    if io["op"] == "read":
        return 0 if io["bytes"] <= 16384 else 1
    if io["op"] == "flush":
        return 2
    if io["op"] == "write" and (all_writes or io["flags"] & {"sync", "fua", "preflush"}):
        return 2
    return None


def segments(trace):
    """[(first record, end record)] and whether all writes are waited for."""
    all_writes = all(wait_class(io) is None for io in trace)
    foreground_before = [0]
    for io in trace:
        foreground_before.append(foreground_before[-1] + (wait_class(io, all_writes) is not None))
    total = foreground_before[-1]
    count = max(1, min(20, total // 2000))
    each = total // count
    window = min(each // 4, (each - 2000) // 2) if each >= 2000 else 0

    gaps = []
    quiet_since = None
    for index, io in enumerate(trace):
        at = arrival(io)
        if at is None:
            continue
        if quiet_since is not None and at - quiet_since >= 100_000_000:
            gaps.append(index)
        quiet_since = max(x for x in (quiet_since, at, io["complete"]) if x is not None)

    cuts = [0]
    for i in range(1, count):
        ideal = i * total // count
        near = [g for g in gaps if abs(foreground_before[g] - ideal) <= window]
        if near:
            cuts.append(min(near, key=lambda g: (abs(foreground_before[g] - ideal), g)))
        else:
            cuts.append(foreground_before.index(ideal))
    return list(zip(cuts, cuts[1:] + [len(trace)])), all_writes


# Costs.


def union(intervals):
    """Measure of the union, by its definition: sweep the sorted ends."""
    measure, reach = 0, None
    for start, end in sorted(intervals):
        if reach is None or start > reach:
            reach = start
        if end > reach:
            measure += end - reach
            reach = end
    return measure


def mean(values):
    return sum(values) / len(values)


def waited(io):
    """[from, complete] of an I/O of a result: from when a host that is never late would have submitted it."""
    late = io["issue"] - io["queue"]
    return io["queue"] + late - min(io["backlog"] or 0, late), io["complete"]


def foreground(trace, all_writes, result, first=0, end=None):
    """The I/Os of a result whose records in [first, end) of the trace somebody waits for, each with its class."""
    end = len(trace) if end is None else end
    inside = [io for io in result if first <= io["ordinal"] < end]
    classes = [wait_class(trace[io["ordinal"]], all_writes) for io in inside]
    return [(io, which) for io, which in zip(inside, classes) if which is not None]


def costs(trace, cut, all_writes, closed, fastest):
    """[(x1, x2)] of a cycle."""
    replayed = [i for i, io in enumerate(trace) if "derived" not in io["flags"]]
    for result in (closed, fastest):
        assert [io["ordinal"] for io in result] == replayed
    table = []
    for first, end in cut:
        wait = union([waited(io) for io, _ in foreground(trace, all_writes, closed, first, end)])
        work = union([(io["issue"], io["complete"]) for io in fastest if first <= io["ordinal"] < end])
        table.append(tuple(max(1.0, cost) for cost in (wait, work)))
    return table


def storage_wait_ns(trace, all_writes, closed):
    return union([waited(io) for io, _ in foreground(trace, all_writes, closed)])


def host_wait_ns(trace, all_writes, closed):
    """What the host's lateness adds to the wait."""
    with_host = union([(io["queue"], io["complete"]) for io, _ in foreground(trace, all_writes, closed)])
    return with_host - storage_wait_ns(trace, all_writes, closed)


def responses(trace, all_writes, closed):
    """Of each class its I/Os, their mean response and that of the worst hundredth."""
    table = []
    for which in range(3):
        times = sorted((end - start for start, end in
                        (waited(io) for io, of in foreground(trace, all_writes, closed) if of == which)), reverse=True)
        tail = times[:(len(times) + 99) // 100]
        table.append((len(times), mean(times) if times else None, mean(tail) if tail else None))
    return table


# Score.


def log_score(reference, drive, weights=WEIGHTS):
    return mean([sum(v * math.log(r / d) for v, r, d in zip(weights, of_reference, of_drive))
                 for of_reference, of_drive in zip(reference, drive)])


def student_t_975(degrees):
    """By integrating the density with Simpson's rule and bisection."""
    constant = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)
    density = lambda x: constant * (1 + x * x / degrees) ** (-(degrees + 1) / 2)

    def central(t, steps=20_000):
        h = t / steps
        odd = sum(density((2 * i + 1) * h) for i in range(steps // 2))
        even = sum(density(2 * i * h) for i in range(1, steps // 2))
        return 2 * h / 3 * (density(0) + density(t) + 4 * odd + 2 * even)

    low, high = 0.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if central(middle) < 0.95 else (low, middle)
    return low


def interval(logs):
    n = len(logs)
    half = student_t_975(n - 1) * math.sqrt(sum((x - mean(logs)) ** 2 for x in logs) / (n - 1) / n)
    return 1000 * math.exp(mean(logs) - half), 1000 * math.exp(mean(logs) + half)


def variants(reference, cycles):
    scores = []
    for varied in range(2):
        for factor in (0.5, 1.5):
            weights = [w * (factor if m == varied else 1) for m, w in enumerate(WEIGHTS)]
            weights = [w / sum(weights) for w in weights]
            scores.append(1000 * math.exp(mean([log_score(reference, c, weights) for c in cycles])))
    return scores


# The reference drive.


class ReferenceDrive:
    def __init__(self):
        self.free = [0] * 8
        self.link_r = self.link_w = self.flushed = self.written = self.dirty = 0

    def channel(self, s, h):
        i = self.free.index(min(self.free))
        self.free[i] = max(self.free[i], s) + h
        return self.free[i]

    def flush(self, s):
        start = max(s, self.flushed, self.written)
        dirty, self.dirty = min(self.dirty, 67_108_864), 0
        self.flushed = start + (20_000 if dirty == 0 else 500_000 + dirty * 10**9 // 2_000_000_000)
        return self.flushed

    def submit(self, op, flags, b, s):
        """When a request submitted at s completes."""
        if op == "read":
            self.link_r = max(self.link_r, self.channel(s, 80_000)) + b * 10**9 // 2_000_000_000
            return self.link_r
        if op == "write":
            fua = 400_000 if "fua" in flags else 0
            if "preflush" in flags:
                c = self.flush(s) + 25_000 + b * 10**9 // 1_000_000_000 + fua
            else:
                self.link_w = max(self.link_w, self.channel(s, 25_000)) + b * 10**9 // 1_000_000_000
                c = self.link_w + fua
            if not fua:
                self.dirty += b
            self.written = max(self.written, c)
            return c
        if op == "flush":
            return self.flush(s)
        if op == "discard":
            return self.channel(s, 50_000 + b * 10**9 // 1_000_000_000_000)
        raise NotImplementedError(op)


def complete_times(submissions):
    """When each of [(op, flags, bytes, submitted)] completes on the reference drive, in the order of submission."""
    drive = ReferenceDrive()
    return [drive.submit(*one) for one in submissions]


def max_order_run(trace):
    """[(issue, complete)] of the reference drive at max speed, from 0. For traces without overlapping I/Os in flight."""
    drive = ReferenceDrive()
    replayed = [io for io in trace if "derived" not in io["flags"]]
    by_completion = sorted((io["complete"], n) for n, io in enumerate(replayed))
    gone, now, result = 0, 0, []
    for io in replayed:
        while gone < len(by_completion) and by_completion[gone][0] <= arrival(io):
            now = max(now, result[by_completion[gone][1]][1])
            gone += 1
        result.append((now, drive.submit(io["op"], io["flags"], io["bytes"], now)))
    return result


# The sample.


def sampled_log_score(sample, reference, drive, weights=WEIGHTS):
    """(ln(S / 1000), its sampling variance) by the jackknife, from the costs of the windows that were drawn."""
    strata = [[] for _ in sample["strata"]]
    for window, stratum in enumerate(sample["stratum_of_window"]):
        strata[stratum].append(window)
    segment_count = sample["score_segments"]

    def total(costs_of, m, segment, without=None):
        total_of = 0.0
        for stratum, windows in zip(sample["strata"], strata):
            if stratum["segment"] == segment:
                kept = [w for w in windows if w != without]
                total_of += stratum["windows"] / len(kept) * sum(costs_of[w][m] for w in kept)
        return total_of

    def log_of(segment, without=None):
        return sum(v * math.log(total(reference, m, segment, without) / total(drive, m, segment, without))
                   for m, v in enumerate(weights))

    logs = [log_of(segment) for segment in range(segment_count)]
    bias = variance = 0.0
    for stratum, windows in zip(sample["strata"], strata):
        n, count = len(windows), stratum["windows"]
        if n < 2 or n >= count:
            continue
        without = [log_of(stratum["segment"], window) for window in windows]
        chance = 1 - n / count
        variance += chance * (n - 1) / n * sum((x - mean(without)) ** 2 for x in without) / segment_count ** 2
        bias += chance * (n - 1) * (mean(without) - logs[stratum["segment"]]) / segment_count
    return mean(logs) - bias, variance
