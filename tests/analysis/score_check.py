"""The score of docs/score.md a second time, from the text of `blktape dump --csv`: written from that page alone.

    score_check.py TRACE.csv REPORT_FOLDER_WITH_CSVS REPORT.json

Records are dictionaries with queue, issue, complete (ns or None), op, flags (a set), bytes. Holds whole traces in memory.
"""

import math

VERSION = 1
WEIGHTS = (0.40, 0.30, 0.30)
CLASSES = ("reads_to_16k", "reads_over_16k", "sync_writes_and_flushes")


def records(rows):
    """From the rows of a dump, as dictionaries of text."""
    number = lambda text: int(text) if text else None
    return [{"queue": number(row["queue_ns"]), "issue": number(row["issue_ns"]), "complete": number(row["complete_ns"]),
             "op": row["op"], "flags": set(filter(None, row["flags"].split("+"))), "bytes": int(row["bytes"])}
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


def costs(trace, cut, all_writes, timed, fastest):
    """[(x1, x2, x3)] of a cycle: results have one record for each of the trace's that is replayed, in its order."""
    replayed = [i for i, io in enumerate(trace) if "derived" not in io["flags"]]
    assert len(replayed) == len(timed) == len(fastest), (len(replayed), len(timed), len(fastest))
    table = []
    for first, end in cut:
        inside = [n for n, ordinal in enumerate(replayed) if first <= ordinal < end]
        by_class = ([], [], [])
        for n in inside:
            which = wait_class(trace[replayed[n]], all_writes)
            if which is not None:
                by_class[which].append(timed[n]["complete"] - timed[n]["queue"])
        responses = sorted(sum(by_class, []), reverse=True)
        counting = [mean(values) for values in by_class if len(values) >= 200]
        if counting:
            response = math.prod(value ** (1 / len(counting)) for value in counting)
        else:
            response = mean(responses)
        tail = mean(responses[:(len(responses) + 99) // 100])
        work = union([(fastest[n]["issue"], fastest[n]["complete"]) for n in inside])
        table.append(tuple(max(1.0, cost) for cost in (response, tail, work)))
    return table


def storage_wait_ns(trace, all_writes, timed):
    replayed = [io for io in trace if "derived" not in io["flags"]]
    return union([(result["queue"], result["complete"]) for io, result in zip(replayed, timed)
                  if wait_class(io, all_writes) is not None])


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
    for varied in range(3):
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


def reference_run(trace, timed):
    """[(due or None, issue, complete)] of the reference drive, from 0. For traces without overlapping I/Os in flight."""
    drive = ReferenceDrive()
    replayed = [io for io in trace if "derived" not in io["flags"]]
    start = arrival(trace[0])
    by_completion = sorted((io["complete"], n) for n, io in enumerate(replayed))
    gone, now, result = 0, 0, []
    for io in replayed:
        due = arrival(io) - start
        if timed:
            issue = due
        else:
            while gone < len(by_completion) and by_completion[gone][0] <= arrival(io):
                now = max(now, result[by_completion[gone][1]][2])
                gone += 1
            issue = now
        result.append((due if timed else None, issue, drive.submit(io["op"], io["flags"], io["bytes"], issue)))
    return result
