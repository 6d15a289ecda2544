"""Direct I/O, one at a time, that a test can foretell: each is one bio."""

import mmap
import os
import random


def plan(span_bytes, count, seed=1):
    """(op, offset, bytes) in order."""
    rng = random.Random(seed)
    todo = []
    for _ in range(count):
        size = rng.choice((4096, 4096, 4096, 16384, 65536))
        todo.append((rng.choice(("read", "write")), rng.randrange(0, span_bytes - size, 4096), size))
    return todo


class Disk:
    """A device, open past the page cache."""

    def __init__(self, path):
        self._buffer = mmap.mmap(-1, 1 << 20)
        self._buffer.write(os.urandom(1 << 20))
        self._fd = os.open(path, os.O_RDWR | os.O_DIRECT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._fd)

    def perform(self, op, offset, size):
        part = memoryview(self._buffer)[:size]
        done = (os.pwritev if op == "write" else os.preadv)(self._fd, [part], offset)
        if done != size:
            raise AssertionError("%s of %d bytes at %d gave %d" % (op, size, offset, done))


def perform(device, todo):
    with Disk(device) as disk:
        for io in todo:
            disk.perform(*io)
