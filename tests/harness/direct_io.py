#!/usr/bin/python3
"""Direct I/O, one at a time, that a test can foretell: each is one bio. As a program: direct_io.py DEVICE WHAT.

forty                          23 writes of 4 KiB and 17 reads of 16 KiB, at the addresses of forty()
mixed SEED COUNT [PAUSE_MS]    COUNT random reads, writes and fsyncs: those of mixed() in 64 MiB
Prints its process id.
"""

import mmap
import os
import random
import sys
import time

MIXED_SPAN_BYTES = 64 << 20
BUFFER_BYTES = 1 << 20


def forty():
    """(op, offset, bytes) in order: addresses that go up, down and come again."""
    ios = [("write", (number * 37 % 101) * 8192 + 4096, 4096) for number in range(23)]
    ios += [("read", (number * 29 % 61) * 65536, 16384) for number in range(17)]
    return ios


def transfers(seed, count, span_bytes):
    """Random reads and writes of whole pages."""
    rng = random.Random(seed)
    ios = []
    for _ in range(count):
        size = rng.choice((4096, 4096, 4096, 16384, 65536))
        ios.append((rng.choice(("read", "write")), rng.randrange(0, span_bytes - size, 4096), size))
    return ios


def mixed(seed, count, span_bytes=MIXED_SPAN_BYTES):
    """Random reads and writes, single sectors among them, and fsyncs: ("flush", 0, 0)."""
    rng = random.Random(seed)
    ios = []
    for _ in range(count):
        size = rng.choice((512, 4096, 4096, 4096, 16384, 131072))
        offset = rng.randrange(0, span_bytes - size, 512 if size == 512 else 4096)
        ios.append(rng.choices((("read", offset, size), ("write", offset, size), ("flush", 0, 0)), (5, 4, 1))[0])
    return ios


def of_row(row):
    """What was done, of a record as `blktape dump --csv` tells it."""
    return row["op"], int(row["lba"] or 0) * 512, int(row["bytes"])


class Disk:
    """A device, open past the page cache."""

    def __init__(self, path):
        self._buffer = mmap.mmap(-1, BUFFER_BYTES)
        self._buffer.write(os.urandom(BUFFER_BYTES))
        self._fd = os.open(path, os.O_RDWR | os.O_DIRECT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._fd)

    def perform(self, op, offset, size):
        if op == "flush":
            os.fsync(self._fd)
            return
        part = memoryview(self._buffer)[:size]
        done = (os.pwritev if op == "write" else os.preadv)(self._fd, [part], offset)
        if done != size:
            raise AssertionError("%s of %d bytes at %d gave %d" % (op, size, offset, done))


def perform(device, ios, pause_s=0):
    with Disk(device) as disk:
        for one in ios:
            disk.perform(*one)
            time.sleep(pause_s)


def main(device, what, *words):
    print(os.getpid(), flush=True)
    if what == "mixed":
        seed, count, *pause_ms = map(int, words)
        perform(device, mixed(seed, count), sum(pause_ms) / 1000)
    elif what == "forty":
        perform(device, forty())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
