"""The closed loop of docs/closed_loop.md a second time, from the text of `blktape dump --csv`.

Records are dictionaries with queue, issue, complete (ns or None), op, flags (a set), device, pid, process. Holds whole traces
in memory, and has none of the page's bounds but the last 64 commits, flushes and threads.
"""

import bisect
import collections
import heapq

LAST = 64
LAST_COMPLETIONS = 512
COPIES = 16
WOKEN_NS = 200_000
UNEXPLAINED_NS = 400_000
FLUSH_FOLLOWS_NS = 5_000_000
PAUSES_FIRST = 8
GOINGS = 64
TOGETHER_NS = 100_000
SHARE = 1024

# `gates` are pairs of ordinal and copy. `part` of a commit that may be shared is BEGINS, WITHIN, ENDS or, of one write, WHOLE.
# `writing` is the journal whose writes it waits for, too, before its think time, or to the end of whose commit, or to that
# and then for the writes of the next; `after` the one whose writes it waits for after that. One with `unless` is needed only
# if that gate was left out. A flush that no record is of has the ordinal of another and a copy beyond all others.
Wait = collections.namedtuple("Wait", "ordinal copy thread gates think_ns part asked writing how after goes_on_ns "
                              "gates_others asks_after_ns unless")
WRITES, TO_THE_END, AND_THE_NEXT = range(3)
BEGINS, WITHIN, ENDS, WHOLE = "begins", "within", "ends", "whole"


def records(rows):
    """From the rows of a dump, as dictionaries of text."""
    number = lambda text: int(text) if text else None
    return [{"queue": number(row["queue_ns"]), "issue": number(row["issue_ns"]), "complete": number(row["complete_ns"]),
             "op": row["op"], "flags": set(filter(None, row["flags"].split("+"))), "device": row["device"],
             "pid": number(row["pid"]), "process": row["process"], "waker": number(row.get("waker")),
             "since_wake": number(row.get("since_wake_ns"))} for row in rows]


def arrival(io):
    return io["queue"] if io["queue"] is not None else io["issue"]


def thread_of(io, machine):
    return (machine, "thread", io["pid"]) if io["pid"] is not None else (machine, "process", io["process"])


def is_foreground(io):
    return io["op"] in ("read", "flush") or is_sync_write(io)


def is_sync_write(io):
    return io["op"] == "write" and bool(io["flags"] & {"sync", "fua", "preflush"})


def is_journal_write(io):
    return is_sync_write(io) and "meta" in io["flags"]


def is_of_worker(io):
    return io["process"].startswith("kworker/") and io["op"] != "flush" and not is_journal_write(io)


def asks_for_commit(io):
    return is_sync_write(io) and not is_journal_write(io)


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
        just_now = max(0, at - busy_until - cap_ns) if busy_until is not None and cap_ns is not None else 0
        cut += just_now
        busy_until = max(x for x in (busy_until, at, io["complete"]) if x is not None)
        moved.append({**io, **{key: io[key] - cut for key in ("queue", "issue", "complete") if io[key] is not None}})
        if io["since_wake"] is not None:
            moved[-1]["since_wake"] = max(0, io["since_wake"] - just_now)
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


class Program:
    """Threads of one name, by what they waited for."""

    def __init__(self):
        self.last = None                # the I/O that completed last
        self.in_flight = 0
        self.since = self.busy = 0      # arrival of the first in flight without a pause; for how long there were any
        self.together = 0               # so soon after that others are of one batch
        self.beside = self.by_chance = 0
        self.woken = [0, 0]             # begun just after the completion of another's I/O, and of these by chance

    def busy_until(self, at):
        return self.busy + (max(0, at - self.since - self.together) if self.in_flight else 0)

    def begins(self, at, idle):
        """A thread of it whose I/Os are complete, the last one at idle[0], begins another."""
        idle_us = (at - idle[0]) // 1000
        if idle_us > 0:
            self.by_chance += min(max(0, self.busy_until(at) - idle[1]) // 1000, idle_us) * SHARE // idle_us
            self.beside += SHARE * bool(self.in_flight and at - self.since >= self.together)
            if max(self.by_chance, self.beside) >= 128 * SHARE:
                self.by_chance //= 2
                self.beside //= 2

    def takes_turns(self):
        less = self.by_chance - self.beside
        return self.by_chance > 0 and 2 * self.beside <= self.by_chance and less ** 2 >= 16 * SHARE * self.by_chance

    def is_woken(self):
        after, by_chance = self.woken
        return after >= 2 * by_chance and (after - by_chance) ** 2 >= 16 * SHARE * max(SHARE, by_chance)


class JustAfter:
    """The time that is at most WOKEN_NS after a completion of a program's I/O."""

    def __init__(self):
        self.last = None        # of these the I/O that completed last
        self.sum, self.end = 0, float("-inf")

    def complete(self, at):
        """Returns the sum up to WOKEN_NS later."""
        self.sum += max(0, at + WOKEN_NS - max(self.end, at))
        self.end = max(self.end, at + WOKEN_NS)
        return self.sum

    def until(self, at):
        return self.sum - max(0, self.end - at)


class Thread:
    def __init__(self, born, machine):
        self.born = born        # arrival of its first I/O
        self.machine = machine
        self.journal_on = set()     # devices of its journal writes
        self.last = None        # its last I/O, by arrival
        self.latest = None      # when its last I/O arrived and was issued, also of a log
        self.ended = None       # its I/O that completed last
        self.named = None       # latest completion of gates, and of its own I/Os, so far
        self.untold = []        # completed since its last arrival
        self.in_flight = 0
        self.works = False
        self.synced = False         # its last I/O was a sync write, not to a journal
        self.shares_blocks = False
        self.goes_on_ns = 0         # so long after a journal's writes it went on, the last time
        self.apart = [0, 0]         # how often it went on while no journal wrote, and at once
        self.idle = None            # if it has nothing in flight: of the last one the program, completion, how busy that was
        self.after = [0, 0]         # or after its writes, and at once or meanwhile
        self.commits = 0            # records that completed
        self.committing = False     # until a record completes
        self.for_itself = None      # whether it writes commits for itself or, if False, for others
        self.wrote = None           # the number of the last one in a log, until it waited for that
        self.wrote_in = None        # and the log
        self.wrote_record = None    # and its record, once complete
        self.writer = None          # of a log: who writes the commit under way
        self.commit = None          # the number of the one under way that may be shared, until its record arrives
        self.commit_from = None     # arrival of the first I/O of the commit under way, or of the last one
        self.flush_after = None     # of a log: the last flush by who asked for a commit that another thread wrote
        self.askers = []            # of the last commit that may be shared: (completion, ordinal, thread)
        self.asked = (None, 0)      # the number of the last commit it asked for, and its copy of that

    def tell(self, completion):
        self.named = completion if self.named is None else max(self.named, completion)


def waits(trace, replayed, without_fua=(), idle_cap_ns=None, machine_of=None):
    """Yields a Wait for each record that is replayed (`replayed(io)`), and each copy of it; `gates` are without those of
    the I/Os before it in its thread's chain. `machine_of`: of devices; absent: all are of one."""
    trace, _ = with_idle_cap(trace, idle_cap_ns)
    saw = seen(trace, without_fua)
    when = lambda n: (saw[n][0], n)  # of several at the same time the one that arrived last is last
    first = next((arrival(io) for io in trace if arrival(io) is not None), None)
    pending, threads, births = [], {}, collections.deque(maxlen=LAST)
    chain_of = {}                             # of ordinals: the thread or log
    commits = collections.deque(maxlen=LAST)  # (began, ended, ordinal)
    synced = collections.deque(maxlen=LAST)   # threads, by the completion of sync writes
    commit_of = {}                            # of ordinals
    written = {}                              # of commits with something before the record: journal, began, end, recorded
    asked_for = set()                         # commits with something before the record that somebody waited for
    begun = 0
    last_of_all, last_journal = {}, {}        # by machine and by device
    programs = collections.defaultdict(Program)
    of_program = {}                           # of ordinals
    just_after = collections.defaultdict(JustAfter)  # by machine
    tell_wakers = set()                       # machines
    completed = collections.deque(maxlen=LAST_COMPLETIONS)  # on these, of I/Os that are of no journal
    last_to_end = lambda *those: max((x for x in those if x is not None), key=when, default=None)
    at_machine = lambda io: (machine_of or {}).get(io["device"], 0)

    def commit_after(thread):
        """The record of the commit that the thread waited for after a sync write, its last I/O."""
        ended = saw[thread.ended][0]
        device = thread.last[1]["device"]
        known = ("device", device) in last_journal
        writers = [threads[chain_of[ordinal]] for _, _, ordinal in commits]
        later = sorted((commit for commit, writer in zip(commits, writers) if commit[1] > ended and
                        (device in writer.journal_on if known else writer.machine == thread.machine)),
                       key=lambda commit: commit[1:])
        for since in (ended, arrival(thread.last[1])):
            for began, _, ordinal in later:
                if began >= since:
                    return ordinal
        return None

    def own_copy(thread, ordinal):
        number, copy = thread.asked
        return (ordinal, copy if ordinal in commit_of and commit_of[ordinal] == number else 0)

    def end_of(thread):
        """The I/O whose completion ends what the thread did, and which copy of it."""
        commit = thread.wrote_record
        if commit is None and thread.synced:
            commit = commit_after(thread)
        return (thread.ended, 0) if commit is None else own_copy(thread, commit)

    def by_waker(io, thread):
        """Of the I/Os of who woke the thread the one that had completed last by then."""
        if io["waker"] is None or io["since_wake"] is None:
            return None
        woken = at - io["since_wake"]
        of_waker = [done for done in completed if chain_of[done] == (thread.machine, "thread", io["waker"]) and
                    saw[done][0] <= woken and (thread.named is None or saw[done][0] > thread.named)]
        return last_to_end(*of_waker, None)

    def went_on_after(write, io, thread):
        """When a thread did after a journal's write: when its writer woke it, if it did, or when it began the I/O."""
        if io["waker"] is None or io["since_wake"] is None or at - io["since_wake"] < saw[write][0]:
            return at
        writer = threads[chain_of[write]].writer or threads[chain_of[write]]
        return at - io["since_wake"] if writer is threads.get((thread.machine, "thread", io["waker"])) else at

    def woken_from(io, thread):
        """What a journal's thread woke it from, later than all it waited for: the commit that had ended, if it waited for
        that; and of the commit whose writes it waited for then, until when."""
        woken = at - io["since_wake"] if None not in (io["waker"], io["since_wake"]) else None
        journal = (thread.machine, "thread", io["waker"])
        if woken is None or woken <= thread.named or journal not in threads or threads[journal].for_itself is not False:
            return None, None
        if threads[journal].ended not in commit_of:
            return None, None
        ended = max(((saw, ordinal, began) for began, saw, ordinal in commits if saw <= woken and chain_of[ordinal] == journal),
                    default=None)
        record = ended[1] if ended and ended[0] > thread.named else None
        if record is not None and woken - ended[0] <= WOKEN_NS:
            return record, None
        begun_by = [one for number, one in sorted(written.items()) if number > begun - LAST and one["journal"] == journal and
                    one["began"] <= woken]
        if not begun_by or ended and begun_by[-1]["began"] <= ended[2]:
            return None, None
        end = begun_by[-1]["end"]
        if end is not None and woken - end > WOKEN_NS:
            return None, None
        return record, woken if end is None else min(end, woken)

    def log_of(io):
        return ("log", io["device"])

    def in_log(thread, io):
        """Whether the I/O is of a commit in the device's log that may be shared."""
        log = threads.get(log_of(io))
        if io["op"] == "flush" or is_journal_write(io):
            if log and log.commit is not None and log.writer is thread:
                return True
        if not is_journal_write(io) or thread.committing:
            return False
        if thread.for_itself is None and thread.synced and is_commit_record(io):
            thread.for_itself = True
        if not thread.for_itself or thread.ended is None:
            return False
        if thread.wrote is not None and thread.wrote_record is None and thread.wrote_in != log_of(io):
            return False
        if log and log.in_flight:
            return False
        since = [thread.named] + ([log.named] + [saw[done][0] for done in log.untold] if log else [])
        if at - max(x for x in since if x is not None) > UNEXPLAINED_NS:
            return False
        if log:
            log.committing = False
        return True

    def find_askers(own, device, writer):
        own.askers, waiting = [(writer.named, writer.ended, writer)] if writer else [], []
        for thread in set(synced):
            if (thread is own or thread is writer or thread.in_flight or not thread.synced or
                    trace[thread.ended]["device"] != device):
                continue
            ended = saw[thread.ended][0]
            if own.commit_from is not None and ended <= own.commit_from:
                continue
            waiting.append((at - max(x for x in (own.named, ended) if x is not None), (ended, thread.ended, thread)))
        just_now = [asker for since, asker in waiting if since <= UNEXPLAINED_NS]
        own.askers += just_now or ([] if writer else [asker for _, asker in waiting])
        own.askers.sort(key=lambda asker: asker[:2])
        for copy, (_, _, thread) in enumerate(own.askers):
            thread.asked = (begun, copy if copy < COPIES else 0)
        del own.askers[COPIES:]

    def writes_after(ended, journal):
        """Of the journal's commits the one that was being written at that time, or began at once; its number and what is
        known of it."""
        found = [one for one in sorted(written.items()) if one[0] > begun - LAST and
                 one[1]["journal"] == journal and one[1]["began"] - ended <= WOKEN_NS and
                 not (one[1]["recorded"] and (one[1]["end"] is None or one[1]["end"] <= ended))]
        return found[-1] if found else (None, None)

    def paused_first(thread, device):
        """Whether it waited, before it thought, for what the journal wrote, and until when, where that is known. Counts
        whether it may have."""
        if last_journal.get(("device", device)) not in commit_of:
            return False, None
        _, beside = writes_after(thread.named, chain_of[last_journal["device", device]])
        thought = at - thread.named
        at_once = bool(beside) and (not beside["recorded"] or at - beside["end"] <= WOKEN_NS)
        counts = thread.after if beside else thread.apart
        counts[0] += 1
        counts[1] += at_once if beside else thought <= WOKEN_NS
        if counts[0] == GOINGS:
            counts[:] = [count // 2 for count in counts]
        (apart, apart_at_once), (after, after_at_once) = thread.apart, thread.after
        if at_once or thought <= UNEXPLAINED_NS or after < PAUSES_FIRST or after_at_once * max(apart, 1) > apart_at_once * after:
            return False, None
        return True, beside["end"] if beside else None

    for ordinal, io in enumerate(trace):
        at = arrival(io)
        if at is None:
            continue
        while pending and pending[0][0] <= at:
            done = heapq.heappop(pending)[1]
            thread = threads[chain_of[done]]
            thread.in_flight -= 1
            thread.untold.append(done)
            thread.ended = last_to_end(thread.ended, done)
            for where in (("machine", thread.machine), ("device", trace[done]["device"])):
                last_of_all[where] = last_to_end(last_of_all.get(where), done)
            if thread.machine in tell_wakers and not is_journal_write(trace[done]) and done not in commit_of:
                completed.append(done)
            if is_journal_write(trace[done]):
                for where in (("machine", thread.machine), *(("device", device) for device in thread.journal_on)):
                    last_journal[where] = last_to_end(last_journal.get(where), done)
            elif is_sync_write(trace[done]):
                synced.append(thread)
            if not thread.in_flight:
                thread.idle = None
            if done in of_program:
                program = of_program[done]
                busy = program.busy_until(saw[done][0])
                program.in_flight -= 1
                if not program.in_flight:
                    program.busy = busy
                program.last = last_to_end(program.last, done)
                others = just_after[thread.machine]
                others.last = last_to_end(others.last, done)
                after = others.complete(saw[done][0])
                if not thread.in_flight:
                    thread.idle = (program, saw[done][0], busy, after)
            if is_commit_record(trace[done]):
                began = thread.commit_from if thread.committing else arrival(trace[done])
                commits.append((began, saw[done][0], done))
                thread.committing = False
                thread.commits += 1
                if thread.writer and thread.writer.wrote == commit_of.get(done):
                    thread.writer.wrote_record = done
            elif is_journal_write(trace[done]) and commit_of.get(done) in written:
                writes = written[commit_of[done]]
                writes["end"] = max(x for x in (writes["end"], saw[done][0]) if x is not None)
        if not replayed(io):
            continue
        machine = at_machine(io)
        who = thread_of(io, machine)
        doer = threads.get(who)
        if doer is None:
            doer = threads[who] = Thread(at, machine)
            births.append(doer)
        if io["waker"] is not None:
            tell_wakers.add(machine)
        journal = is_journal_write(io)
        for done in doer.untold:
            doer.tell(saw[done][0])
        own_commit = None
        if doer.wrote_record is not None:
            own_commit = own_copy(doer, doer.wrote_record)
            doer.tell(saw[own_commit[0]][0])
        key, thread = who, doer
        logged = in_log(doer, io)
        if logged:
            key = log_of(io)
            thread = threads.setdefault(key, Thread(at, machine))
        chain_of[ordinal] = key
        begins = journal and not thread.committing
        part = None
        if begins:
            thread.commit = None
            if not logged and thread.commits and not thread.for_itself and not is_commit_record(io):
                thread.for_itself = False
            if logged or thread.commits and thread.for_itself is False and not is_commit_record(io):
                begun += 1
                part = WHOLE if is_commit_record(io) else BEGINS
        elif (journal or logged) and thread.commit is not None:
            part = ENDS if is_commit_record(io) else WITHIN
        number = begun if part in (BEGINS, WHOLE) else thread.commit if part else None
        if begins or part == ENDS:
            thread.commit = number if part == BEGINS else None
        if part == BEGINS:
            written[number] = {"journal": key, "began": at, "end": None, "recorded": False}
        elif part == ENDS and number in written:
            written[number]["recorded"] = True

        if own_commit is not None and (begins or not logged):
            doer.wrote = doer.wrote_record = None
            flush = threads[doer.wrote_in].flush_after
            if flush is not None:
                like, think_ns = flush
                yield Wait(like, COPIES + ordinal, who, [own_commit], think_ns, None, False, None, WRITES, None, 0, True,
                           0, own_commit)
                own_commit = (like, COPIES + ordinal)
        gates, writing, how, after, unless = [], None, WRITES, None, None

        def name(gate, copy=0):
            gates.append((gate, copy))
            thread.tell(saw[gate][0])

        def wait_to_the_end(record):
            nonlocal writing, how
            if commit_of.get(record) in asked_for:
                writing, how = chain_of[record], TO_THE_END
                thread.tell(saw[record][0])
            else:
                name(record)

        def unexplained():
            return at - thread.named > UNEXPLAINED_NS

        untold, thread.untold = thread.untold, []
        for done in untold:
            thread.tell(saw[done][0])
        if part in (BEGINS, WHOLE):
            find_askers(thread, io["device"], doer if logged else None)
        asked = bool(part and thread.askers)
        slept = thread.ended is None or (at - saw[thread.ended][0] > UNEXPLAINED_NS and
                                         (io["waker"] is not None or machine not in tell_wakers))
        if part == BEGINS and (asked or not slept):
            asked_for.add(number)
        for done in untold:
            own = commit_of.get(done)  # nobody else's are its own I/Os
            if (own == number if part in (WITHIN, ENDS) else not asked or own is None):
                gates.append((done, 0))
        if own_commit is not None and not logged:
            gates.append(own_commit)
        latest = None
        if begins:
            latest = last_to_end(None, *(last_of_all.get(("device", device)) for device in {io["device"], *thread.journal_on}))
        if latest is None:
            latest = last_of_all.get(("machine", machine))
        if (part in (WITHIN, ENDS) or journal and not begins) and latest is not None:
            arrived, issued = thread.latest
            if at - arrived > UNEXPLAINED_NS and at - issued <= WOKEN_NS:
                thread.tell(saw[latest][0])
        of_none = thread.ended is None or not is_foreground(io) or begins or is_of_worker(io)
        of_waker = by_waker(io, thread) if of_none and not journal and not part and is_foreground(io) else None
        if of_waker is not None:
            name(of_waker)
        elif of_none:
            if not asked and latest is not None and (thread.named is None or saw[latest][0] > thread.named):
                name(latest)
        elif part is None:
            if not journal:
                commit = commit_after(thread) if thread.synced else None
                if commit is not None:
                    if commit_of.get(commit) == thread.asked[0]:
                        name(*own_copy(thread, commit))
                    else:
                        wait_to_the_end(commit)
                    if threads[chain_of[commit]].commit is not None:
                        thread.shares_blocks = False
                    if (io["op"] == "flush" and chain_of[commit] == log_of(io) and commit_of.get(commit) == thread.asked[0] and
                            not unexplained()):
                        unless = gates[-1]
            paused, until = (False, None) if journal or not thread.synced else paused_first(thread, io["device"])
            record, held_until = (None, None) if journal else woken_from(io, thread)
            just_ended = []
            if record is not None:
                wait_to_the_end(record)
            if held_until is not None:
                writing, how = (thread.machine, "thread", io["waker"]), AND_THE_NEXT if how == TO_THE_END else WRITES
                thread.tell(held_until)
                if at - thread.named <= WOKEN_NS:
                    thread.shares_blocks, thread.goes_on_ns = True, at - thread.named
            elif record is None:
                if paused:
                    writing = chain_of[last_journal["device", io["device"]]]
                    how = AND_THE_NEXT if how == TO_THE_END else WRITES
                if until is not None:
                    thread.tell(until)
                places = [("device", device) for device in (io["device"], thread.last[1]["device"])]
                if not any(place in last_journal for place in places):
                    places = [("machine", machine)]
                just_ended = [last_journal[place] for place in places if place in last_journal] if unexplained() else []
            just_ended = [one for one in just_ended if saw[one][0] > thread.named and
                          went_on_after(one, io, thread) - saw[one][0] <= (2 * WOKEN_NS if journal else WOKEN_NS)]
            if just_ended:
                one = just_ended[0]
                if is_commit_record(trace[one]):
                    wait_to_the_end(one)
                elif one in commit_of:
                    writing, how = chain_of[one], WRITES
                    passed, _ = writes_after(thread.named, writing)
                    if passed is not None and passed != commit_of[one]:
                        how = AND_THE_NEXT
                    thread.tell(saw[one][0])
                    thread.shares_blocks, thread.goes_on_ns = True, at - saw[one][0]
                else:
                    name(one)
            if not journal and commit is not None and commit in commit_of and thread.shares_blocks:
                after = chain_of[commit]
            if not journal and machine in tell_wakers:
                of_waker = by_waker(io, thread)
                if of_waker is not None:
                    name(of_waker)
            looks = not journal and machine not in tell_wakers and io["process"]
            program = programs.get((machine, io["process"]))
            if looks and program:
                if not thread.in_flight and thread.idle and thread.idle[0] is program:
                    program.begins(at, thread.idle[1:3])
                if program.takes_turns() and program.last is not None and saw[program.last][0] > thread.named:
                    name(program.last)
            if looks and unexplained() and program and not thread.in_flight:
                others = just_after[machine]
                if thread.idle and thread.idle[0] is program and thread.idle[1] == thread.named:
                    _, since, _, before = thread.idle
                    idle_us = (at - since - WOKEN_NS) // 1000
                    program.woken[1] += min(max(0, others.until(at) - before) // 1000, idle_us) * SHARE // idle_us
                    program.woken[0] += SHARE * (at - saw[others.last][0] <= WOKEN_NS)
                    if max(program.woken) >= 128 * SHARE:
                        program.woken = [count // 2 for count in program.woken]
                if program.is_woken() and thread.named < saw[others.last][0] and at - saw[others.last][0] <= WOKEN_NS:
                    name(others.last)
            if not journal and unexplained():
                started = [end_of(other) for other in births
                           if other.machine == machine and other.born > arrival(thread.last[1]) and
                           other.ended is not None and other.works]
                started = [end for end in started if saw[end[0]][0] > thread.named]
                if started:
                    name(*max(started, key=lambda end: when(end[0])))
        writers_gates = [(done, 0) for done in {doer.ended, *doer.untold}] + ([own_commit] if own_commit is not None else [])
        before, asks_after_ns = thread.commit_from, 0
        if logged and begins and before is not None and at - doer.named > UNEXPLAINED_NS:
            asks_after_ns = max(0, before - doer.named)
        if begins:
            thread.committing, thread.commit_from = True, at
            if logged:
                thread.writer, doer.wrote, doer.wrote_in, doer.wrote_record, doer.synced = doer, number, key, None, False
        if not logged:
            thread.works = thread.works or not journal
            if thread.committing and io["op"] == "flush":
                thread.for_itself = True
            thread.synced = asks_for_commit(io)
            thread.last = (ordinal, io)
        thread.latest = (at, io["issue"] if io["issue"] is not None else at)
        if journal:
            thread.journal_on.add(io["device"])
        if part:
            commit_of[ordinal] = number
        for copy in range(max(1, len(thread.askers)) if part else 1):
            own = [(gate, copy if part and commit_of.get(gate) == number else of) for gate, of in gates]
            since = [first, thread.named]
            if asked:
                ended, last, asker = thread.askers[copy]
                since.append(ended)
                if part in (BEGINS, WHOLE):
                    own += writers_gates if logged and asker is doer else [(last, 0)]
            of_writer = bool(asked and logged and thread.askers[copy][2] is doer)
            think_ns = max(0, at - max(x for x in since if x is not None))
            if unless:
                threads[chain_of[unless[0]]].flush_after = (ordinal, think_ns)
            yield Wait(ordinal, copy, key, own, think_ns, part, asked, writing, how, after, thread.goes_on_ns if after else 0,
                       io["complete"] is not None, asks_after_ns if of_writer else 0, unless)
        if io["complete"] is not None:
            if io["process"] and is_foreground(io) and not journal and not part:
                program = of_program[ordinal] = programs[machine, io["process"]]
                program.in_flight += 1
                if program.in_flight == 1:
                    program.since, program.together = at, min(TOGETHER_NS, max(0, io["complete"] - at) // 4)
            thread.in_flight += 1
            heapq.heappush(pending, (saw[ordinal][1], ordinal))


class Chain:
    def __init__(self, start):
        self.queue = collections.deque()
        self.opens = self.due = start
        self.scheduled = None   # its first one's entry among those that are due some time
        self.parked = False
        self.paused = False     # its first has waited to the end of a commit, or for a journal's writes after its think time
        self.end = 0            # latest completion


class Copy(Chain):
    def __init__(self, start, journal, asked):
        super().__init__(start)
        self.journal, self.asked = journal, asked
        self.state = "waits"
        self.writes = True      # something before its record
        self.whole = False
        self.undone = 0


class Journal:
    def __init__(self):
        self.rests_since = None
        self.running = None
        self.writing = False
        self.asking, self.joining, self.parked = [], [], []

    def is_writing(self, to_the_end):
        if self.running:
            return self.writing or to_the_end
        return any(copy.asked and (copy.writes or to_the_end) for copy in self.asking)


class Replay:
    """When the Waits are due, given when each I/O completed: `due` of (ordinal, copy). `completions` are of each ordinal
    pairs of a due time and a completion, and left over; `strangers` are due times that none of them has."""

    def __init__(self, planned, start, completions):
        self.start = start
        self.completions = {ordinal: list(pairs) for ordinal, pairs in completions.items()}
        self.due, self.left_out, self.strangers = {}, set(), []
        self.done, self.waiting = {}, collections.defaultdict(list)  # chains that wait for a gate
        self.chains, self.journals = {}, collections.defaultdict(Journal)
        self.events, self.chain_of = [], {}
        open_copies = collections.defaultdict(dict)
        for place, wait in enumerate(planned):
            chain = self.chains.get(wait.thread)
            if wait.part in (BEGINS, WHOLE):
                if wait.copy == 0:
                    for copy in open_copies[wait.thread].values():
                        copy.whole = True
                    open_copies[wait.thread].clear()
                chain = open_copies[wait.thread][wait.copy] = Copy(start, self.journals[wait.thread], wait.asked)
                chain.writes, chain.whole = wait.part == BEGINS, wait.part == WHOLE
            elif wait.part:
                chain = open_copies[wait.thread][wait.copy]
                chain.whole = chain.whole or wait.part == ENDS
            elif chain is None:
                chain = self.chains[wait.thread] = Chain(start)
            chain.queue.append((place, wait))
            self.chain_of[wait.ordinal, wait.copy] = chain
            if wait.part:
                chain.undone += 1
        for chain in list(dict.fromkeys(self.chain_of.values())):
            self.look_at(chain)
        now = start
        while True:
            now = max(now, self.run())
            unfinished = [copy for copies in open_copies.values() for copy in copies.values() if not copy.whole]
            if not unfinished:
                break
            for copy in unfinished:
                copy.whole = True
                if copy.undone == 0:
                    copy.end = max(copy.end, now)
                    self.finish(copy)

    def run(self):
        at = self.start
        while self.events:
            event = heapq.heappop(self.events)
            time, kind, _, what = event
            if kind == 0:
                at = time
                self.complete(*what, at)
            elif what.scheduled == event[:3]:  # still
                at = time
                self.take(what, at)
        return at

    def schedule(self, chain, opens):
        chain.due = max(max(chain.opens, opens) + chain.queue[0][1].think_ns, chain.due)
        self.push(chain)

    def push(self, chain):
        chain.scheduled = (chain.due, 1, chain.queue[0][0])
        heapq.heappush(self.events, (*chain.scheduled, chain))

    def look_at(self, chain):
        if chain.scheduled or chain.parked or not chain.queue or (isinstance(chain, Copy) and
                                                                  chain.state not in ("waits", "runs")):
            return
        wait = chain.queue[0][1]
        missing = [gate for gate in wait.gates if gate not in self.done]
        if missing:
            self.waiting[missing[0]].append(chain)
            return
        journal = self.journals[wait.writing] if wait.writing else None
        if journal and journal.is_writing(self.to_the_end(chain)):
            chain.parked = "before"
            journal.parked.append(chain)
            return
        chain.paused = False
        if wait.unless and wait.unless not in self.left_out:
            chain.queue.popleft()
            chain.opens = max([chain.opens, *(self.done[gate] for gate in wait.gates)])
            self.left_out.add((wait.ordinal, wait.copy))
            self.open_gate((wait.ordinal, wait.copy), chain.opens)
            self.look_at(chain)
            return
        self.open(chain, wait)

    def to_the_end(self, chain):
        how = chain.queue[0][1].how
        return chain.parked != "after" and (how == TO_THE_END or how == AND_THE_NEXT and not chain.paused)

    def open(self, chain, wait):
        chain.opens = max([chain.opens, *(self.done[gate] for gate in wait.gates)])
        if wait.part in (BEGINS, WHOLE):
            chain.opens += wait.asks_after_ns
            chain.state = "asks"
            chain.journal.asking.append(chain)
            if not chain.journal.running:
                self.schedule(chain, chain.journal.rests_since or self.start)
            return
        written = max(chain.opens, chain.due)
        self.schedule(chain, chain.opens)
        if wait.part == ENDS:
            self.wrote(chain.journal, written)

    def take(self, chain, at):
        chain.scheduled = None
        wait = chain.queue[0][1]
        if wait.after and not chain.paused and self.journals[wait.after].is_writing(False):
            chain.parked = "after"
            self.journals[wait.after].parked.append(chain)
            return
        chain.paused = False
        chain.queue.popleft()
        if wait.part in (BEGINS, WHOLE):
            journal = chain.journal
            chain.opens = max(chain.opens, journal.rests_since or self.start)
            chain.state, journal.running, journal.writing = "runs", chain, chain.writes
            others = [copy for copy in journal.asking if copy is not chain]
            for copy in others:
                copy.scheduled = None
            joins = lambda copy: copy.asked and copy.opens <= at
            journal.joining += filter(joins, others)
            journal.asking = [copy for copy in others if not joins(copy)]
            for copy in journal.joining:
                copy.state = "joins"
        self.due[wait.ordinal, wait.copy] = at
        pairs = self.completions.get(wait.ordinal, [])
        found = next((pair for pair in pairs if pair[0] == at), None)
        if found is None:
            self.strangers.append((wait, at, pairs))
            found = (at, at)
        else:
            pairs.remove(found)
        heapq.heappush(self.events, (found[1], 0, len(self.due), ((wait.ordinal, wait.copy), wait.part and wait.gates_others)))
        if wait.part and not wait.gates_others:
            chain.end = max(chain.end, at)
            self.did_one_of(chain)
        self.look_at(chain)

    def complete(self, key, part, at):
        if part:
            copy = self.chain_of[key]
            copy.end = max(copy.end, at)
            self.did_one_of(copy)
        self.open_gate(key, at)

    def did_one_of(self, copy):
        copy.undone -= 1
        if copy.undone == 0 and copy.whole:
            self.finish(copy)

    def finish(self, copy):
        if copy.state != "runs":
            return
        journal = copy.journal
        copy.state = "done"
        journal.running, journal.rests_since = None, copy.end
        for asks in journal.asking:
            self.schedule(asks, copy.end)
        self.wrote(journal, copy.end, to_the_end=True)
        joining, journal.joining = journal.joining, []
        for joined in joining:
            joined.state = "left out"
            for _, wait in joined.queue:
                self.left_out.add((wait.ordinal, wait.copy))
                self.open_gate((wait.ordinal, wait.copy), copy.end)
            joined.queue.clear()

    def wrote(self, journal, at, to_the_end=False):
        journal.writing = False
        parked = [chain for chain in journal.parked if to_the_end or not self.to_the_end(chain)]
        journal.parked = [chain for chain in journal.parked if chain not in parked]
        for chain in parked:
            where, chain.parked = chain.parked, False
            wait = chain.queue[0][1]
            if where == "after":
                if at > chain.due:
                    chain.paused = True
                    chain.due = at + wait.goes_on_ns
                self.push(chain)
            elif wait.how == AND_THE_NEXT and not chain.paused:
                chain.paused = True
                chain.opens = max(chain.opens, at)
                self.look_at(chain)
            else:
                chain.opens, chain.paused = max(chain.opens, at), False
                self.open(chain, wait)

    def open_gate(self, key, at):
        self.done[key] = at
        # Who asks for a commit comes first, next who may through a flush that is not needed: others may wait for what that
        # writes.
        rank = lambda wait: 0 if wait.part in (BEGINS, WHOLE) else 1 if wait.unless == key else 2
        for chain in sorted(self.waiting.pop(key, []), key=lambda chain: rank(chain.queue[0][1])):
            self.look_at(chain)
