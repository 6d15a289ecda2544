"""Which few traces represent all: k-medoids over normalized features, the same answer every time.

Method, on rows of figures.sql:

1. Features of a trace: shares of its data requests of at most 4, 16, 64 and 256 KiB, of reads, and of those that go on
   where the one before ended; flushes for each data request; log of I/Os and of bytes a second; mean log of D2C; share
   of the time that somebody waits for the disk. What is not known is the median of the others.
2. Each feature is scaled so that the 5th and 95th percentile over all traces become 0 and 1, and cut off there: no single
   odd trace stretches a scale. One that does not vary is 0 for all. The four of sizes weigh half each, as they tell of one thing.
3. Distance is the sum of absolute differences. Partitioning around medoids (Kaufman and Rousseeuw 1987): BUILD takes
   the trace that lowers the sum of distances to the nearest medoid most, k times; SWAP exchanges the medoid and the other
   trace that lower it most, while any exchange does. A medoid is a trace that was recorded, never a mean.
4. Ties go to the trace that comes first by machine and name; figures are rounded to 9 digits before, so that engines
   that sum in different orders choose alike.

Beyond MAX_CANDIDATES traces, medoids are chosen among that many, evenly spaced by machine and name; every trace is then
given to its nearest medoid. Needs numpy, and 8 bytes x MAX_CANDIDATES^2 of memory.
"""

import math

import numpy as np

MAX_CANDIDATES = 4000
WORKDAY_S = 8 * 3600

FEATURES = {
    "up_to_4k": 0.5, "up_to_16k": 0.5, "up_to_64k": 0.5, "up_to_256k": 0.5, "reads": 1, "sequential": 1, "flushes": 1,
    "ios_per_s": 1, "bytes_per_s": 1, "d2c": 1, "wait": 1,
}


def features(row):
    """Of a row of figures.sql, in the order of FEATURES; NaN: not known."""
    requests, recorded_s = row["data_requests"], row["recorded_ns"] / 1e9
    share = lambda count: count / requests if requests else math.nan
    rate = lambda amount: math.log10(1 + amount / recorded_s) if recorded_s > 0 and amount is not None else math.nan
    values = [share(row[name] or 0) for name in ("up_to_4k", "up_to_16k", "up_to_64k", "up_to_256k", "reads", "sequential")]
    values += [share(row["flushes"] or 0), rate(row["ios"]), rate(row["bytes"]),
               math.nan if row["mean_ln_d2c"] is None else row["mean_ln_d2c"],
               row["storage_wait_ns"] / 1e9 / recorded_s if recorded_s > 0 else math.nan]
    return values


def normalized(rows):
    """A row a trace, a column a feature, by rules 1 and 2."""
    table = np.round(np.array([features(row) for row in rows], float).reshape(len(rows), len(FEATURES)), 9)
    for column, weight in enumerate(FEATURES.values()):
        values = table[:, column]
        known = ~np.isnan(values)
        if not known.any():
            table[:, column] = 0
            continue
        values[~known] = np.median(values[known])
        low, high = np.quantile(values, [0.05, 0.95])
        table[:, column] = weight * np.clip((values - low) / (high - low), 0, 1) if high > low else 0
    return np.round(table, 9)


def distances(some, others):
    """Between each row of `some` and each of `others`."""
    return sum(np.abs(some[:, column, None] - others[None, :, column]) for column in range(some.shape[1]))


def medoids(distance, count):
    """PAM. `distance[candidate, trace]` of all candidates to one another; the numbers of the medoids, ascending."""
    total = len(distance)
    chosen = []
    nearest = np.full(total, np.inf)
    for _ in range(min(count, total)):  # BUILD
        sums = np.minimum(distance, nearest).sum(axis=1).round(9)
        sums[chosen] = np.inf
        chosen.append(int(np.argmin(sums)))
        nearest = np.minimum(nearest, distance[chosen[-1]])
    while len(chosen) < total:  # SWAP
        now = nearest.sum().round(9)
        best = (now, -1, -1)
        for place in sorted(range(len(chosen)), key=chosen.__getitem__):
            without = np.min(distance[chosen[:place] + chosen[place + 1:]], axis=0, initial=np.inf)
            sums = np.minimum(distance, without).sum(axis=1).round(9)
            sums[chosen] = np.inf
            other = int(np.argmin(sums))
            if sums[other] < best[0]:
                best = (sums[other], place, other)
        if best[1] < 0:
            break
        chosen[best[1]] = best[2]
        nearest = distance[chosen].min(axis=0)
    return sorted(chosen)


def choose(rows, count):
    """The representatives of the traces `rows`, those of most traces first, and how much of the spread they explain.

    Each is a dictionary: machine, trace, stands_for (how many traces are nearest to it, itself included), share of all,
    mean_distance and max_distance of these to it. The second value is 1 - (sum of distances to the nearest of them) /
    (the same for the best single trace): 1 where they stand for all exactly, None where all traces are alike.
    """
    if count < 1:
        raise ValueError("at least one trace has to represent the others")
    rows = sorted(rows, key=lambda row: (row["machine"], row["trace"]))
    if not rows:
        return [], None
    points = normalized(rows)
    candidates = np.arange(len(rows))
    if len(rows) > MAX_CANDIDATES:
        candidates = np.linspace(0, len(rows) - 1, MAX_CANDIDATES).round().astype(int)
    among = distances(points[candidates], points[candidates])
    chosen = candidates[medoids(among, count)]
    to_chosen = distances(points[chosen], points)
    owner = np.argmin(to_chosen, axis=0)
    owner[chosen] = np.arange(len(chosen))
    distance = to_chosen[owner, np.arange(len(rows))]
    single = distances(points[candidates[medoids(among, 1)]], points).sum()
    result = []
    for place, index in enumerate(chosen):
        own = distance[owner == place]
        result.append({"machine": rows[index]["machine"], "trace": rows[index]["trace"], "stands_for": len(own),
                       "share": len(own) / len(rows), "mean_distance": float(own.mean().round(6)),
                       "max_distance": float(own.max().round(6))})
    result.sort(key=lambda each: (-each["stands_for"], each["machine"], each["trace"]))
    return result, float(1 - distance.sum() / single) if single > 0 else None
