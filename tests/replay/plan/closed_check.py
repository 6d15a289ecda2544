"""The closed loop of docs/closed_loop.md a second time, from the text of `blktape dump --csv`: written from that page alone.

Records are dictionaries with queue, issue, complete (ns or None), op, flags (a set), device, pid, process. Holds whole traces
in memory, and has none of the page's bounds but the last 64 commits, flushes and threads.
"""

import bisect
import collections
import heapq

LAST = 64
WOKEN_NS = 200_000
UNEXPLAINED_NS = 400_000
FLUSH_FOLLOWS_NS = 5_000_000

Wait = collections.namedtuple("Wait", "ordinal thread gates think_ns")


def records(rows):
    """From the rows of a dump, as dictionaries of text."""
    number = lambda text: int(text) if text else None
    return [{"queue": number(row["queue_ns"]), "issue": number(row["issue_ns"]), "complete": number(row["complete_ns"]),
             "op": row["op"], "flags": set(filter(None, row["flags"].split("+"))), "device": row["device"],
             "pid": number(row["pid"]), "process": row["process"]} for row in rows]


def arrival(io):
    return io["queue"] if io["queue"] is not None else io["issue"]


def thread_of(io):
    return ("thread", io["pid"]) if io["pid"] is not None else ("process", io["process"])


def is_foreground(io):
    return io["op"] in ("read", "flush") or is_sync_write(io)


def is_sync_write(io):
    return io["op"] == "write" and bool(io["flags"] & {"sync", "fua", "preflush"})


def is_journal_write(io):
    return is_sync_write(io) and "meta" in io["flags"]


def is_commit_record(io):
    return is_journal_write(io) and bool(io["flags"] & {"preflush", "fua"})


def with_idle_cap(trace, cap_ns):
    """The trace with each period with nothing in flight shortened to at most the cap, and what that cuts in all."""
    cut, busy_until, moved = 0, None, []
    for io in trace:
        at = arrival(io)
        if at is None:
            moved.append(io)
            continue
        if busy_until is not None and cap_ns is not None:
            cut += max(0, at - busy_until - cap_ns)
        busy_until = max(x for x in (busy_until, at, io["complete"]) if x is not None)
        moved.append({**io, **{key: io[key] - cut for key in ("queue", "issue", "complete") if io[key] is not None}})
    return moved, cut


def seen(trace, without_fua):
    """Of each record the completion that software saw, and from which arrivals on it counts."""
    flushes = collections.defaultdict(list)  # of each device: issued, complete, arrived
    arrivals = sorted(arrival(io) for io in trace if arrival(io) is not None)
    for io in trace:
        if io["op"] == "flush" and io["device"] in without_fua and None not in (arrival(io), io["complete"]):
            issue = io["issue"] if io["issue"] is not None else arrival(io)
            flushes[io["device"]].append((issue, io["complete"], arrival(io)))
    result = []
    for io in trace:
        complete = counts_from = io["complete"]
        if complete is not None and io["op"] == "write" and "fua" in io["flags"] and io["device"] in without_fua:
            follow = [(issue, end, at) for issue, end, at in flushes[io["device"]]
                      if complete <= issue <= complete + FLUSH_FOLLOWS_NS and end > complete]
            counts_from = complete + FLUSH_FOLLOWS_NS + 1
            if follow:
                # It is looked for at each arrival, the first time at this one.
                first = arrivals[min(bisect.bisect_left(arrivals, complete), len(arrivals) - 1)]
                known = max(first, min(at for _, _, at in follow))
                complete = counts_from = min((one for one in follow if one[2] <= known), key=lambda one: one[0])[1]
        result.append((complete, counts_from))
    return result


class Thread:
    def __init__(self, born):
        self.born = born        # arrival of its first I/O
        self.last = None        # its last I/O, by arrival
        self.ended = None       # its I/O that completed last
        self.named = None       # latest completion of gates, and of its own I/Os, so far
        self.untold = []        # completed since its last arrival
        self.journals = False
        self.commit_from = None  # arrival of the first I/O of the commit under way


def waits(trace, replayed, without_fua=(), idle_cap_ns=None):
    """Yields a Wait for each record that is replayed (`replayed(io)`); `gates` are ordinals, without those of the I/Os
    before it in its thread's chain."""
    trace, _ = with_idle_cap(trace, idle_cap_ns)
    saw = seen(trace, without_fua)
    when = lambda n: (saw[n][0], n)  # of several at the same time the one that arrived last is last
    first = next((arrival(io) for io in trace if arrival(io) is not None), None)
    pending, threads, births = [], {}, collections.deque(maxlen=LAST)
    commits = collections.deque(maxlen=LAST)  # (began, ended, ordinal)
    last_of_all = last_journal = None

    def end_of(thread):
        """The I/O whose completion ends what the thread did."""
        if not is_sync_write(thread.last[1]):
            return thread.ended
        ended = saw[thread.ended][0]
        later = sorted((commit for commit in commits if commit[1] > ended), key=lambda commit: commit[1:])
        for since in (ended, arrival(thread.last[1])):
            for began, _, ordinal in later:
                if began >= since:
                    return ordinal
        return thread.ended

    for ordinal, io in enumerate(trace):
        at = arrival(io)
        if at is None:
            continue
        while pending and pending[0][0] <= at:
            done = heapq.heappop(pending)[1]
            thread = threads[thread_of(trace[done])]
            thread.untold.append(done)
            thread.ended = max((x for x in (thread.ended, done) if x is not None), key=when)
            last_of_all = max((x for x in (last_of_all, done) if x is not None), key=when)
            if is_journal_write(trace[done]):
                last_journal = max((x for x in (last_journal, done) if x is not None), key=when)
            if is_commit_record(trace[done]):
                began = thread.commit_from if thread.commit_from is not None else arrival(trace[done])
                commits.append((began, saw[done][0], done))
                thread.commit_from = None
        if not replayed(io):
            continue
        thread = threads.get(thread_of(io))
        if thread is None:
            thread = threads[thread_of(io)] = Thread(at)
            births.append(thread)

        gates = []

        def name(gate):
            gates.append(gate)
            thread.named = max((x for x in (thread.named, saw[gate][0]) if x is not None))

        def unexplained():
            return at - thread.named > UNEXPLAINED_NS

        for done in thread.untold:
            name(done)
        thread.untold = []
        journal = is_journal_write(io)
        begins_commit = journal and thread.commit_from is None
        if thread.ended is None or not is_foreground(io) or begins_commit:
            if last_of_all is not None and (thread.named is None or saw[last_of_all][0] > thread.named):
                name(last_of_all)
        else:
            if not journal:
                end = end_of(thread)
                if end != thread.ended:
                    name(end)
            if unexplained() and last_journal is not None:
                if at - saw[last_journal][0] <= (2 * WOKEN_NS if journal else WOKEN_NS):
                    name(last_journal)
            if not journal and unexplained():
                started = [end_of(other) for other in births
                           if other.born > arrival(thread.last[1]) and other.ended is not None and not other.journals]
                started = [end for end in started if saw[end][0] > thread.named]
                if started:
                    name(max(started, key=when))
        if begins_commit:
            thread.commit_from = at
        thread.journals = thread.journals or journal
        thread.last = (ordinal, io)
        since = first if thread.named is None else max(first, thread.named)
        yield Wait(ordinal, thread_of(io), gates, max(0, at - since))
        if io["complete"] is not None:
            heapq.heappush(pending, (saw[ordinal][1], ordinal))


def due_times(planned, start, complete):
    """When each Wait is due, given when the replay saw the gates complete: {ordinal: ns}."""
    chains, due = {}, {}
    for wait in planned:
        opens, before = chains.get(wait.thread, (start, start))
        opens = max([opens, *(complete[gate] for gate in wait.gates)])
        due[wait.ordinal] = max(opens + wait.think_ns, before)
        chains[wait.thread] = opens, due[wait.ordinal]
    return due
