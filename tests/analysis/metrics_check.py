"""The figures of docs/metrics.md a second time, from the text of `blktape dump --csv`: written from that page alone.

Holds whole traces in memory and takes every definition literally.
"""


def _number(text):
    return int(text) if text else None


def percentile(values, per_million):
    values = sorted(values)
    return values[-(-len(values) * per_million // 1_000_000) - 1]


def latency(values):
    if not values:
        return {"count": 0}
    return {"count": len(values), "mean": sum(values) / len(values), "min": min(values), "max": max(values),
            "p50": percentile(values, 500_000), "p95": percentile(values, 950_000), "p99": percentile(values, 990_000),
            "p999": percentile(values, 999_000), "p9999": percentile(values, 999_900)}


def union(intervals):
    """Measure and gaps of the union."""
    measure, gaps, reach = 0, [], None
    for start, end in sorted(intervals):
        if reach is None:
            reach = start
        elif start > reach:
            gaps.append(start - reach)
            reach = start
        if end > reach:
            measure += end - reach
            reach = end
    return measure, gaps


def depth(intervals):
    """The most in flight at once; completions first at equal times."""
    now = most = 0
    for _, change in sorted([(start, +1) for start, end in intervals] + [(end, -1) for start, end in intervals],
                            key=lambda one: (one[0], one[1])):
        now += change
        most = max(most, now)
    return most


def figures(rows):
    ios = [{"q": _number(r["queue_ns"]), "d": _number(r["issue_ns"]), "c": _number(r["complete_ns"]), "op": r["op"],
            "device": r["device"], "flags": set(filter(None, r["flags"].split("+"))), "lba": _number(r["lba"]),
            "bytes": int(r["bytes"])} for r in rows]
    for io in ios:
        io["arrival"] = io["q"] if io["q"] is not None else io["d"]
        io["start"] = io["d"] if io["d"] is not None else io["q"]
    data = [io for io in ios if io["op"] in ("read", "write") and io["bytes"] > 0]
    arrivals = [io["arrival"] for io in ios if io["arrival"] is not None]
    ends = [io["c"] for io in ios if io["c"] is not None]
    observed = max(arrivals + ends) - min(arrivals)
    served = lambda some: [(io["start"], io["c"]) for io in some if io["start"] is not None and io["c"] is not None
                           and io["c"] >= io["start"]]
    busy, gaps = union(served(ios))
    data_busy, _ = union(served(data))

    def differences(some, first, last):
        return [io[last] - io[first] for io in some if io[first] is not None and io[last] is not None
                and io[last] >= io[first]]

    sizes = {}
    for io in data:
        sizes.setdefault(io["bytes"], [0, 0])[io["op"] == "write"] += 1
    blocks, read, written = set(), set(), set()
    for io in data:
        touched = {(io["device"], b) for b in range(io["lba"] * 512 // 4096, (io["lba"] * 512 + io["bytes"] - 1) // 4096 + 1)}
        blocks |= touched
        (written if io["op"] == "write" else read).update(touched)

    sequential = {"any_device": 0, "same_device": 0, "same_device_and_op": 0}
    before, of_device, of_op = None, {}, {}
    for io in sorted(data, key=lambda one: one["start"]):
        begin, end = io["lba"] * 512, io["lba"] * 512 + io["bytes"]
        sequential["any_device"] += before == (io["device"], begin)
        sequential["same_device"] += of_device.get(io["device"]) == begin
        sequential["same_device_and_op"] += of_op.get((io["device"], io["op"])) == begin
        before = (io["device"], end)
        of_device[io["device"]] = of_op[io["device"], io["op"]] = end

    foreground = [io for io in ios if "derived" not in io["flags"] and (
        io["op"] in ("read", "flush") or (io["op"] == "write" and io["flags"] & {"sync", "fua", "preflush"}))]
    in_flight_time = sum(end - start for start, end in served(data))
    return {
        "ios": len(ios),
        "reads": sum(io["op"] == "read" for io in ios),
        "writes": sum(io["op"] == "write" for io in ios),
        "discards": sum(io["op"] == "discard" for io in ios),
        "flushes": sum(io["op"] == "flush" for io in ios),
        "flushes_derived": sum(io["op"] == "flush" and "derived" in io["flags"] for io in ios),
        "read_bytes": sum(io["bytes"] for io in ios if io["op"] == "read"),
        "write_bytes": sum(io["bytes"] for io in ios if io["op"] == "write"),
        "discard_bytes": sum(io["bytes"] for io in ios if io["op"] == "discard"),
        "data_requests": len(data),
        "fua_writes": sum(io["op"] == "write" and "fua" in io["flags"] for io in ios),
        "sync_writes": sum(io["op"] == "write" and "sync" in io["flags"] for io in ios),
        "duration_ns": max(arrivals) - min(arrivals),
        "observed_ns": observed,
        "size_histogram": [{"bytes": size, "count": sum(n), "reads": n[0], "writes": n[1]}
                           for size, n in sorted(sizes.items())],
        "share_4k": sum(sizes.get(4096, (0, 0))) / len(data),
        "sequential_fraction": sequential["same_device"] / len(data),
        "sequential": sequential,
        "footprint_bytes": 4096 * len(blocks),
        "footprint_read_bytes": 4096 * len(read),
        "footprint_write_bytes": 4096 * len(written),
        "footprint_exact": True,
        "max_end_bytes": max(io["lba"] * 512 + io["bytes"] for io in data),
        "queue_depth": {"max": depth(served(data)), "mean": in_flight_time / observed,
                        "mean_busy": in_flight_time / data_busy if data_busy else None},
        "queue_depth_all_ops": {"max": depth(served(ios))},
        "busy_ns": busy,
        "idle_ns": observed - busy,
        "idle_gap_counts": [sum(low <= gap < 10 * low if n else gap < 1000 for gap in gaps)
                            for n, low in enumerate([100] + [10**e for e in range(3, 12)])],
        "d2c_ns": latency(differences(data, "d", "c")),
        "q2c_ns": latency(differences(data, "q", "c")),
        "q2d_ns": latency(differences(data, "q", "d")),
        "foreground": {"ios": len(foreground), "bytes": sum(io["bytes"] for io in foreground),
                       "q2c_ns": latency(differences(foreground, "q", "c"))},
        "without_issue": sum(io["d"] is None for io in ios),
        "without_completion": sum(io["c"] is None for io in ios),
    }
