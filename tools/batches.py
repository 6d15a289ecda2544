"""Which C++ files of ours can be read as one, by what they declare: each as it stands would have to compile behind the others.

What a text does not show makes a compiler complain, and tools/lint.py read each alone.
"""

import functools
import re

import includes

# How many files are read together at most: one that changes makes its neighbours be read again.
TOGETHER = 24
# Fewer than these are not worth the headers that all files of a room include: such files are read with those of other rooms.
FEW = 8
# What a file of ours declares at the level of a namespace, where nothing is indented. That of `using` may be said twice.
DECLARED = re.compile(r"^(?:(?:class|struct|union|enum(?: class)?) (\w+)|#define (\w+)|TEST(?:_F|_P)?\((\w+, \w+)\)"
                      r"|(?:constexpr|const|static|inline|thread_local) [^=({;]*?\b(\w+)(?: =|\[|\{|;)"
                      r'|[A-Za-z_][\w:<>,&*" ]*?[ &*](\w+)\(([^)]*))', re.MULTILINE)
USING = re.compile(r"^using (?:[\w:]+::)?(\w+)(?: = .*)?;", re.MULTILINE)


@functools.cache
def declared(path):
    """(name, how many parameters a function has, None for what is none, and what it is that may be said twice)."""
    text = includes.read(path)
    found = {(found[1], None, found[0]) for found in USING.finditer(text)}
    for *names, parameters in DECLARED.findall(text):
        found.add((next(filter(None, names)), parameters.count(",") if names[-1] else None, path))
    if "BENCHMARK_MAIN" in text:
        found.add(("main", 2, path))
    return found


def clash(one, other, overloads):
    """Whether a name means two things; overloads: functions may share one."""
    of_other = {}
    for name, parameters, what in other:
        of_other.setdefault(name, []).append((parameters, what))
    return any(what != that and not (overloads and None not in (parameters, others) and parameters != others)
               for name, parameters, what in one for others, that in of_other.get(name, []))


def part_of(path):
    """The room, of tests that of what they test: what changes in one makes nobody read another again."""
    return path.split("/")[:2 if path.startswith("tests/") else 1]


class Batch:

    def __init__(self):
        self.files, self.own, self.seen = [], set(), set()

    def take(self, path):
        """Whether the file could be added: they are few enough, and none declares for itself what another one declares or sees."""
        seen = set().union(*(declared(one) for one in includes.with_included(path) if one != path))
        known = {(name, parameters) for name, parameters, _ in seen}
        own = {one for one in declared(path) if one[:2] not in known}
        if len(self.files) == TOGETHER or (clash(own, self.own, overloads=False) or clash(own, self.seen, overloads=True)
                                           or clash(self.own, seen, overloads=True)):
            return False
        self.files.append(path)
        self.own |= own
        self.seen |= seen
        return True


def packed(files, part):
    """Batches of files of which `part` is the same."""
    made = []
    for path in files:
        if not any(part(batch.files[0]) == part(path) and batch.take(path) for batch in made):
            made.append(Batch())
            made[-1].take(path)
    return made


def of(files):
    """Lists of files to read together."""
    of_one_part = packed(files, part_of)
    few = [path for batch in of_one_part if len(batch.files) < FEW for path in batch.files]
    made = [batch for batch in of_one_part if len(batch.files) >= FEW] + packed(few, lambda path: path.startswith("tests/"))
    # The longest first.
    return sorted((batch.files for batch in made), key=len, reverse=True)
