"""The score of docs/score.md a second time, from the text of `blktape dump --csv`: written from that page alone.

Records are dictionaries with queue, issue, complete (ns or None), op, flags (a set), lba, bytes; those of a result (`dump --csv
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
             "op": row["op"], "flags": set(filter(None, row["flags"].split("+"))),
             "lba": number(row["lba"]), "bytes": int(row["bytes"]),
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


# What runs replay of one device's trace.

BLOCK = 4096
EMPTYING = ("discard", "write_zeroes", "secure_erase")


def covered(begin, end):
    """Blocks that bytes [begin, end) cover."""
    return range(-(-begin // BLOCK), end // BLOCK)


def kept_blocks(trace, numbers):
    """The blocks that discards of the records with these numbers leave out."""
    seen, read_first, empty, refilled, kept = set(), set(), set(), set(), set()
    for number, io in enumerate(trace):
        if io["lba"] is None:
            continue
        begin, end = io["lba"] * 512, io["lba"] * 512 + io["bytes"]
        touches, covers = range(begin // BLOCK, -(-end // BLOCK)), covered(begin, end)
        if io["op"] in EMPTYING:
            refilled.difference_update(covers)
        if number not in numbers:
            if io["op"] == "write":
                refilled.update(touches)
        elif io["op"] == "read":
            read_first.update(set(touches) - seen)
            kept.update(set(touches) & empty & refilled)
            seen.update(touches)
        else:
            seen.update(covers)
            (empty.update if io["op"] in EMPTYING else empty.difference_update)(covers)
    return kept | read_first & empty


def longest_part(io, kept):
    """(lba, bytes) of what a discard keeps; None: nothing."""
    begin, end = io["lba"] * 512, io["lba"] * 512 + io["bytes"]
    inside = sorted(block for block in kept if begin < (block + 1) * BLOCK and block * BLOCK < end)
    begins = [begin] + [(block + 1) * BLOCK for block in inside]
    ends = [block * BLOCK for block in inside] + [end]
    start, stop = max(zip(begins, ends), key=lambda part: (part[1] - part[0], -part[0]))
    return (start // 512, stop - start) if stop > start else None


def replayed(trace, numbers=None):
    """[(number, record)]"""
    numbers = set(range(len(trace)) if numbers is None else numbers)
    kept = kept_blocks(trace, numbers)
    result = []
    for number in sorted(numbers):
        io = trace[number]
        if io["op"] in EMPTYING:
            part = longest_part(io, kept)
            if part is not None:
                result.append((number, {**io, "lba": part[0], "bytes": part[1]}))
        elif "derived" not in io["flags"]:
            result.append((number, io))
    return result


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
    meant = [(number, io["lba"], io["bytes"]) for number, io in replayed(trace)]
    for result in (closed, fastest):
        assert [(io["ordinal"], io["lba"], io["bytes"]) for io in result] == meant
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


def late_ns(io):
    """The host's lateness."""
    return waited(io)[0] - io["queue"]


def percentile(times, ppm):
    """By nearest rank; None where there are too few. Exact up to 65,536."""
    if len(times) * (1_000_000 - ppm) < 1_000_000:
        return None
    return sorted(times)[(len(times) * ppm + 999_999) // 1_000_000 - 1]


def series(trace, all_writes, closed):
    """`step_ns` and by step what is told of it; of p99_ns the exact one."""
    begin = closed[0]["queue"]
    data = [io for io in closed if io["op"] in ("read", "write") and io["bytes"] > 0]
    waited_for = [(io["complete"] - begin, io["complete"] - waited(io)[0])
                  for io, _ in foreground(trace, all_writes, closed)]
    last = max([io["complete"] - begin for io in data] + [at for at, _ in waited_for])
    step = 1_000_000
    while last >= 120 * step:
        step *= 2
    count = last // step + 1
    table = {"step_ns": step, **{key: [0.0] * count for key in ("ios_per_s", "bytes_per_s", "depth_mean")},
             "p99_ns": [], "max_ns": []}
    for io in data:
        at = (io["complete"] - begin) // step
        table["ios_per_s"][at] += 1e9 / step
        table["bytes_per_s"][at] += io["bytes"] * 1e9 / step
        for i in range((io["issue"] - begin) // step, at + 1):
            inside = min(io["complete"] - begin, (i + 1) * step) - max(io["issue"] - begin, i * step)
            table["depth_mean"][i] += inside / step
    for i in range(count):
        times = [response for at, response in waited_for if at // step == i]
        table["max_ns"].append(max(times) if times else None)
        table["p99_ns"].append(percentile(times, 990_000))
    return table


# Score.


def log_score(reference, drive, weights=WEIGHTS):
    return mean([sum(v * math.log(r / d) for v, r, d in zip(weights, of_reference, of_drive))
                 for of_reference, of_drive in zip(reference, drive)])


def incomplete_beta(a, b, x):
    """The regularized one, by its continued fraction (modified Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where it converges slowly
        return 1 - incomplete_beta(b, a, 1 - x)
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 10_000):
        for numerator in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                          -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front * fraction / a


def student_t_975(degrees):
    """By bisection, to the last digits of a double; `degrees` need not be whole."""
    # How much of the distribution is beyond t on both sides.
    beyond = lambda t: incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    low, high = 0.0, 1.0
    while beyond(high) > 0.05:
        high *= 2
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if beyond(middle) > 0.05 else (low, middle)
    return (low + high) / 2


def variance(values):
    return sum((x - mean(values)) ** 2 for x in values) / (len(values) - 1)


def variance_of_mean(logs, first_stage=None):
    """With its degrees of freedom; of a published score by the spread of the first stage."""
    told = logs[:first_stage] if first_stage else logs
    return variance(told) / len(logs), len(told) - 1


def half_width(parts):
    """Of the sum of independent parts, (variance, degrees) each, by Welch and Satterthwaite."""
    total = sum(v for v, _ in parts)
    if total == 0:
        return 0.0
    return student_t_975(total ** 2 / sum(v * v / d for v, d in parts if v)) * math.sqrt(total)


def interval(logs, first_stage=None):
    half = half_width([variance_of_mean(logs, first_stage)])
    return 1000 * math.exp(mean(logs) - half), 1000 * math.exp(mean(logs) + half)


def stein_cycles(first_stage):
    wanted = (student_t_975(len(first_stage) - 1) / 0.015) ** 2 * variance(first_stage)
    return min(40, max(len(first_stage), math.ceil(wanted)))


def trend_ln(logs):
    """The change from the first cycle to the last, where it is to be told; else None."""
    n = len(logs)
    if n < 3:
        return None
    xs = [x - (n + 1) / 2 for x in range(1, n + 1)]
    slope = sum(x * y for x, y in zip(xs, logs)) / sum(x * x for x in xs)
    residuals = sum((y - mean(logs) - slope * x) ** 2 for x, y in zip(xs, logs))
    half = student_t_975(n - 2) * math.sqrt(residuals / (n - 2) / sum(x * x for x in xs))
    change = slope * (n - 1)
    return change if abs(slope) > half and abs(change) >= math.log(1.02) else None


def verdict(difference, half):
    """Of the difference of mean L of two drives: "faster", "slower" or "tie", and the ratio with its interval."""
    word = "tie"
    if abs(difference) > half and abs(difference) >= math.log(1.02):
        word = "faster" if difference > 0 else "slower"
    return word, math.exp(difference), math.exp(difference - half), math.exp(difference + half)


def compare(a, b):
    """Of the L of two drives against one reference."""
    return verdict(mean(a) - mean(b), half_width([variance_of_mean(a), variance_of_mean(b)]))


def geometric_mean(cycles):
    """The costs that a measured reference has."""
    return [tuple(math.exp(mean([math.log(cycle[k][m]) for cycle in cycles])) for m in range(2))
            for k in range(len(cycles[0]))]


def suite(traces):
    """(score, low, high) of [(weight, L of the cycles, first stage or None, (variance, degrees) of a draw or None)]."""
    weights = sum(weight for weight, *_ in traces)
    log, parts = 0.0, []
    for weight, logs, first_stage, draw in traces:
        share = weight / weights
        log += share * mean(logs)
        parts += [(share ** 2 * v, d) for v, d in [variance_of_mean(logs, first_stage), draw or (0, 1)]]
    half = half_width(parts)
    return tuple(1000 * math.exp(x) for x in (log, log - half, log + half))


def compare_suites(traces):
    """Of [(weight, L of A, L of B)]."""
    weights = sum(weight for weight, *_ in traces)
    difference, parts = 0.0, []
    for weight, a, b in traces:
        share = weight / weights
        difference += share * (mean(a) - mean(b))
        parts += [(share ** 2 * v, d) for v, d in (variance_of_mean(a), variance_of_mean(b))]
    return verdict(difference, half_width(parts))


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
    meant = [io for _, io in replayed(trace)]
    by_completion = sorted((io["complete"], n) for n, io in enumerate(meant))
    gone, now, result = 0, 0, []
    for io in meant:
        while gone < len(by_completion) and by_completion[gone][0] <= arrival(io):
            now = max(now, result[by_completion[gone][1]][1])
            gone += 1
        result.append((now, drive.submit(io["op"], io["flags"], io["bytes"], now)))
    return result


# The sample.


def mt19937_64(seed):
    """The numbers of C++'s std::mt19937_64."""
    mask = 2**64 - 1
    state = [seed & mask]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i) & mask)
    while True:
        for i in range(312):
            x = state[i] & 0xFFFFFFFF80000000 | state[(i + 1) % 312] & 0x7FFFFFFF
            state[i] = state[(i + 156) % 312] ^ x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
        for x in state:
            x ^= x >> 29 & 0x5555555555555555
            x ^= x << 17 & 0x71D67FFFEDA60000
            x ^= x << 37 & 0xFFF7EEE000000000
            yield x ^ x >> 43


def windows(trace, cut, all_writes):
    """[(first record, end record, segment)]"""
    table = []
    for segment, (first, end) in enumerate(cut):
        classes = [wait_class(io, all_writes) is not None for io in trace[first:end]]
        count = max(1, sum(classes) // 100)
        begins, before = [], 0
        for record, counts in enumerate(classes, first):
            if len(begins) < count and before >= len(begins) * sum(classes) // count:
                begins.append(record)
            before += counts
        table += [(a, b, segment) for a, b in zip(begins, begins[1:] + [end])]
    return table


def with_lead_ins(trace, cut, all_writes, drawn):
    """The numbers of the records of these windows, (first record, end record), and of what leads in to each."""
    every = windows(trace, cut, all_writes)
    numbers = set()
    for before, (first, end, _) in zip([None, *every], every):
        if (first, end) in drawn:
            numbers.update(range(first, end))
            if before is not None:
                numbers.update(range(before[0] + (before[1] - before[0]) // 2, before[1]))
    return numbers


def draw(trace, cut, all_writes, drives, budget_ns, seed):
    """The windows that are drawn, ascending, as (first record, end record); the stratum of each; and the strata, as
    (segment, windows). Of `drives` the whole in a closed loop and at maximum speed each, the reference's first; the
    budget is without pauses."""
    every = windows(trace, cut, all_writes)

    def split(run):
        place = [w for w, (first, end, _) in enumerate(every) for _ in range(first, end)]
        parts = [[] for _ in every]
        for io in run:
            parts[place[io["ordinal"]]].append(io)
        return parts

    parts = [[split(run) for run in runs] for runs in drives]
    took = [sum(max(io["complete"] for io in run[w]) - min(io["queue"] for io in run[w]) for run in parts[0] if run[w])
            for w in range(len(every))]
    waited_for = [wait_class(io, all_writes) is not None for io in trace]
    each_cost = []
    for closed, fastest in parts:
        each_cost.append([union([waited(io) for io in part if waited_for[io["ordinal"]]]) for part in closed])
        each_cost.append([union([(io["issue"], io["complete"]) for io in part]) for part in fastest])
    in_order = []
    for segment in range(len(cut)):
        members = [w for w, (first, end, of) in enumerate(every) if of == segment and any(waited_for[first:end])]
        share = {w: max(cost[w] / sum(cost[v] for v in members) for cost in each_cost) for w in members}
        in_order.append((sorted(members, key=lambda w: (-share[w], w)), share))

    def strata_of(count):
        table = []
        for segment, (members, share) in enumerate(in_order):
            groups, so_far = [[]], 0.0
            for n, w in enumerate(members, 1):
                groups[-1].append(w)
                so_far += share[w]
                if len(groups) < count and so_far >= sum(share.values()) * len(groups) / count and \
                        len(groups[-1]) >= 2 and len(members) - n >= 2:
                    groups.append([])
            table += [(segment, group) for group in groups]
        return table

    def expected_ns(count):
        return sum(min(2, len(group)) * mean([1.5 * took[w] + 200_000_000 for w in group]) for _, group in strata_of(count))

    assert sum(took) > budget_ns >= expected_ns(1)
    count = 1
    while count < 200 and expected_ns(count + 1) <= budget_ns:
        count += 1
    strata, numbers, drawn = strata_of(count), mt19937_64(seed), []
    for h, (_, group) in enumerate(strata):
        group = list(group)
        for i in range(min(2, len(group))):
            other = i + next(numbers) % (len(group) - i)
            group[i], group[other] = group[other], group[i]
        drawn += [(w, h) for w in group[:2]]
    drawn.sort()
    return [every[w][:2] for w, _ in drawn], [h for _, h in drawn], [(segment, len(group)) for segment, group in strata]


def sampled_log_score(sample, reference, drive, weights=WEIGHTS):
    """(ln(S / 1000), its sampling variance, the degrees of that) by the jackknife, from the costs of the drawn windows."""
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
    bias = spread = 0.0
    left_to_chance = 0
    for stratum, windows in zip(sample["strata"], strata):
        n, count = len(windows), stratum["windows"]
        if n < 2 or n >= count:
            continue
        without = [log_of(stratum["segment"], window) for window in windows]
        chance = 1 - n / count
        left_to_chance += 1
        spread += chance * (n - 1) / n * sum((x - mean(without)) ** 2 for x in without) / segment_count ** 2
        bias += chance * (n - 1) * (mean(without) - logs[stratum["segment"]]) / segment_count
    return mean(logs) - bias, spread, max(1, left_to_chance / 40)


def sampled_wait_ns(sample, costs_of):
    """The storage wait of the whole, estimated."""
    drawn = [sample["stratum_of_window"].count(h) for h in range(len(sample["strata"]))]
    return sum(sample["strata"][h]["windows"] / drawn[h] * costs_of[w][0] for w, h in enumerate(sample["stratum_of_window"]))


def sampled_interval(sample, reference, cycles, first_stage=None):
    """(score, low, high, half width) from the costs of the windows in each cycle."""
    logs = [sampled_log_score(sample, reference, cycle)[0] for cycle in cycles]
    means = [tuple(mean([cycle[w][m] for cycle in cycles]) for m in range(2)) for w in range(len(reference))]
    draw = sampled_log_score(sample, reference, means)[1:]
    half = half_width([variance_of_mean(logs, first_stage) if len(logs) > 1 else (0, 1), draw])
    return tuple(1000 * math.exp(mean(logs) + x) for x in (0, -half, half)) + (half,)
