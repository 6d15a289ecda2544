# %% [markdown]
# # What does my disk really do?
#
# Draws a trace: timeline, sizes as asked and as issued, addresses and latency over time, depth, idle time. The
# definitions are those of docs/metrics.md.
#
# Jupyter (with jupytext), VS Code and Spyder open this file as a notebook; as a program it runs too:
#
#     pip install ./python matplotlib
#     TRACE=monday.tape OUT=pictures python examples/notebook/look.py

# %%
import os

import blktape
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.compute as pc

TRACE = os.environ.get("TRACE", "monday.tape")
OUT = os.environ.get("OUT")  # a folder for the pictures; without it they are only shown

# Okabe and Ito's colours, which the colour-blind tell apart too.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#666666"
plt.rcParams.update({"figure.figsize": (10, 4), "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                     "grid.alpha": 0.3, "figure.constrained_layout.use": True})


def show(figure, name):
    if OUT:
        os.makedirs(OUT, exist_ok=True)
        figure.savefig(os.path.join(OUT, name + ".png"), dpi=120)
        plt.close(figure)
    else:
        plt.show()


# %% [markdown]
# ## Read it
#
# Only the columns that are drawn. 5 million I/Os take 250 MB here; of a longer trace take `trace.batches()` one by one.

# %%
with blktape.open_trace(TRACE, ["queue_ns", "issue_ns", "complete_ns", "device", "op", "flags", "lba", "bytes",
                                "process"]) as trace:
    records = trace.read_all()
if trace.lost_events:
    print("Attention: this trace lacks %s events or more: %s" % (format(trace.lost_events, ","), trace.loss_totals))
if records.num_rows == 0:
    raise SystemExit("%s holds no I/O, so there is nothing to draw" % TRACE)

ABSENT = -2**63  # of a time: no time is as small


def times(*names):
    """The first of these times that a record has. One beyond 2^60 ns is taken as absent."""
    columns = [pc.if_else(pc.less_equal(pc.abs(column), 2**60), column, None)
               for column in (records[name] for name in names)]
    return pc.fill_null(pc.coalesce(*columns), ABSENT).to_numpy()


arrival, start, issue, complete = times("queue_ns", "issue_ns"), times("issue_ns", "queue_ns"), times("issue_ns"), times(
    "complete_ns")
size = records["bytes"].to_numpy().astype(np.float64)
is_read = pc.equal(records["op"], "read").to_numpy()
is_write = pc.equal(records["op"], "write").to_numpy()
is_data = (is_read | is_write) & (size > 0)
arrived = arrival != ABSENT
served = (start != ABSENT) & (complete != ABSENT) & (complete >= start)  # at the drive from start to complete

if not arrived.any():
    raise SystemExit("%s has no times, so there is nothing to draw over time" % TRACE)
first_ns = int(arrival[arrived].min())
last_ns = int(max(arrival[arrived].max(), complete[served].max(initial=first_ns)))
observed_ns = max(last_ns - first_ns, 1)


def seconds(moments):
    return (moments - first_ns) / 1e9


# %% [markdown]
# ## Busy, idle and depth
#
# Busy time is the measure of the union of all [issue, completion], never a sum of latencies.

# %%
def union(begin, end):
    """The measure of the union of the intervals, and the gaps in it."""
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    if len(begin) == 0:
        return 0, np.array([], np.int64)
    gaps = begin[1:] - reach[:-1]
    gaps = gaps[gaps > 0]
    return int(reach[-1] - begin[0] - gaps.sum()), gaps


def depths(begin, end):
    """Moments, and how many are in flight from each to the next. At equal times completions come first."""
    moments = np.concatenate([begin, end])
    change = np.concatenate([np.ones(len(begin), np.int64), -np.ones(len(end), np.int64)])
    order = np.lexsort((change, moments))
    return moments[order], np.cumsum(change[order])


busy_ns, idle_gaps = union(start[served], complete[served])
positive = served & is_data & (complete > start)
moments, depth = depths(start[positive], complete[positive])
held_ns = np.diff(moments)  # how long each depth held
time_at_depth = np.bincount(np.maximum(depth[:-1], 0), weights=held_ns) if len(held_ns) else np.zeros(1)
depth_max = int(depth.max(initial=0))
depth_mean = float((time_at_depth * np.arange(len(time_at_depth))).sum() / observed_ns)

# %% [markdown]
# ## In words

# %%
share_4k = (size[is_data] == 4096).mean() if is_data.any() else 0
asked = {}  # reads and writes by size, as software asked before the block layer merged and split
for sizes in trace.queued_sizes:
    for entry in sizes.entries:
        if entry.op_name not in ("read", "write"):
            continue
        asked[entry.bytes] = asked.get(entry.bytes, 0) + entry.count
asked_total = sum(asked.values())

print("%s I/Os in %.1f s" % (format(records.num_rows, ","), observed_ns / 1e9))
if asked_total:
    print("%.0f %% of what software asked for were 4 KiB, and %.0f %% of what the drive got" % (
        100 * asked.get(4096, 0) / asked_total, 100 * share_4k))
else:
    print("%.0f %% of what the drive got were 4 KiB" % (100 * share_4k))
print("the disk was busy %.1f %% of the time; at most %d requests were in flight" % (
    100 * busy_ns / observed_ns, depth_max))
written = size * is_write
if written.any():
    by_process = records.select(["process"]).append_column("written", [written]).group_by("process").aggregate(
        [("written", "sum")]).to_pylist()
    most = max(by_process, key=lambda row: row["written_sum"])
    print("%.0f %% of the bytes written came from %s" % (
        100 * most["written_sum"] / written.sum(), most["process"] or "processes that the trace does not name"))

# %% [markdown]
# ## Timeline

# %%
STEPS = 300
edges = np.linspace(first_ns, last_ns + 1, STEPS + 1)
step_s = (edges[1] - edges[0]) / 1e9


def per_second(those, weights=None):
    counts, _ = np.histogram(arrival[those & arrived], edges, weights=None if weights is None else weights[those & arrived])
    return counts / step_s


figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(10, 5))
middle = seconds((edges[:-1] + edges[1:]) / 2)
for axes, weights, label in ((above, None, "I/Os a second"), (below, size / 2**20, "MiB a second")):
    axes.step(middle, per_second(is_read, weights), where="mid", color=BLUE, label="read")
    axes.step(middle, per_second(is_write, weights), where="mid", color=ORANGE, linestyle="--", label="write")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
above.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
above.set_title("Timeline, mean over %.3g s each" % step_s)
below.set_xlabel("time since the first I/O, s")
show(figure, "timeline")

# %% [markdown]
# ## Sizes, as asked and as issued
#
# Each bar counts sizes up to its label and above that of the bar before.

# %%
def by_power(sizes, counts):
    return np.bincount(np.ceil(np.log2(sizes)).astype(int), weights=counts, minlength=2) if len(sizes) else np.zeros(2)


issued_bars = by_power(*np.unique(size[is_data], return_counts=True))
asked_bars = by_power(np.array([float(each) for each in asked if each]), [count for each, count in asked.items() if each])
powers = max(len(issued_bars), len(asked_bars))
issued_bars, asked_bars = (np.pad(bars, (0, powers - len(bars))) for bars in (issued_bars, asked_bars))
shown = np.flatnonzero(issued_bars + asked_bars)
figure, axes = plt.subplots()
if len(shown):
    place = np.arange(shown[0], shown[-1] + 1)
    axes.bar(place - 0.2, 100 * issued_bars[place] / max(issued_bars.sum(), 1), 0.4, color=BLUE, label="as issued to the drive")
    if asked_total:
        axes.bar(place + 0.2, 100 * asked_bars[place] / asked_bars.sum(), 0.4, color=ORANGE, hatch="//",
                 label="as software asked")
    axes.set_xticks(place, ["%d %s" % (1 << each % 10, ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[each // 10])
                            for each in place], rotation=45)
    axes.legend()
axes.set_ylabel("share of reads and writes, %")
axes.set_title("Sizes" if asked_total else "Sizes (the source does not tell what software asked for)")
show(figure, "sizes")

# %% [markdown]
# ## Addresses over time, of the device with most I/Os

# %%
def heat_map(x, y, y_edges, title, label, log=False):
    figure, axes = plt.subplots()
    counts, _, _ = np.histogram2d(x, y, [seconds(edges), y_edges])
    image = axes.pcolormesh(seconds(edges), y_edges, np.ma.masked_equal(counts.T, 0), norm="log" if counts.any() else None,
                            cmap="cividis")
    figure.colorbar(image, label="I/Os")
    axes.set_yscale("log" if log else "linear")
    axes.set_xlabel("time since the first I/O, s")
    axes.set_ylabel(label)
    axes.set_title(title)
    return figure, counts


devices = records["device"].combine_chunks()
names, numbers = devices.dictionary.to_pylist(), devices.indices.to_numpy()
busiest = int(np.bincount(numbers).argmax())
addressed = is_data & arrived & (numbers == busiest) & pc.is_valid(records["lba"]).to_numpy()
gib = pc.fill_null(records["lba"], 0).to_numpy().astype(np.float64) * 512 / 2**30
figure, addresses = heat_map(seconds(arrival[addressed]), gib[addressed],
                             np.linspace(0, max(gib[addressed].max(initial=0) * 1.0001, 1e-3), 201),
                             "Addresses on " + names[busiest].encode("ascii", "replace").decode(), "address, GiB")
show(figure, "addresses")

# %% [markdown]
# ## Latency over time: from issue to completion

# %%
timed = is_data & arrived & (issue != ABSENT) & (complete != ABSENT) & (complete > issue)
d2c_us = (complete[timed] - issue[timed]) / 1e3
low, high = (d2c_us.min(), d2c_us.max()) if timed.any() else (1, 10)
figure, latencies = heat_map(seconds(arrival[timed]), d2c_us, np.geomspace(low * 0.999, max(high, low * 10) * 1.001, 81),
                             "Latency at the drive (D2C)", "us", log=True)
show(figure, "latency")

# %% [markdown]
# ## Depth

# %%
figure, (over_time, spread) = plt.subplots(1, 2, gridspec_kw={"width_ratios": [2, 1]})
if len(moments):
    # The mean of each step: the integral of the depth, at the edges, step by step.
    integral = np.concatenate([[0], np.cumsum(held_ns * depth[:-1])])
    means = np.diff(np.interp(edges, moments, integral)) / np.diff(edges)
    over_time.step(middle, means, where="mid", color=GREEN)
    busy_depths = time_at_depth[1:]
    spread.step(np.arange(1, len(busy_depths) + 1), 100 * np.cumsum(busy_depths) / max(busy_depths.sum(), 1), where="post",
                color=GREEN)
over_time.set(title="Reads and writes in flight, mean over %.3g s each" % step_s, xlabel="time since the first I/O, s",
              ylabel="depth")
over_time.set_ylim(bottom=0)
spread.set_xscale("log", base=2)
spread.set(title="While busy: max %d" % depth_max, xlabel="depth", ylabel="share of the busy time at most so deep, %", ylim=(0, 101))
show(figure, "depth")

# %% [markdown]
# ## Idle time
#
# Gaps between two busy times, by length: how many there are, and what they add up to.

# %%
decades = 10.0 ** np.arange(3, 12)  # 1 us to 100 s, in ns
labels = ["< 1 us", "< 10 us", "< 100 us", "< 1 ms", "< 10 ms", "< 100 ms", "< 1 s", "< 10 s", "< 100 s", "100 s +"]
bucket = np.searchsorted(decades, idle_gaps, side="right")
gap_counts = np.bincount(bucket, minlength=len(labels))
gap_totals = np.bincount(bucket, weights=idle_gaps, minlength=len(labels)) / 1e9
figure, (left, right) = plt.subplots(1, 2)
for axes, values, label in ((left, gap_counts, "gaps"), (right, gap_totals, "s in all")):
    axes.bar(labels, values, color=GREY)
    axes.set_ylabel(label)
    axes.tick_params(axis="x", rotation=60)
figure.suptitle("Idle %.1f %% of %.4g s" % (100 * (1 - busy_ns / observed_ns), observed_ns / 1e9))
show(figure, "idle")
