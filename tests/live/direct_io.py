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


def perform(device, todo):
    buffer = mmap.mmap(-1, 1 << 20)
    buffer.write(os.urandom(1 << 20))
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    try:
        for op, offset, size in todo:
            part = memoryview(buffer)[:size]
            if op == "write":
                done = os.pwritev(fd, [part], offset)
            else:
                done = os.preadv(fd, [part], offset)
            if done != size:
                raise AssertionError("%s of %d bytes at %d gave %d" % (op, size, offset, done))
    finally:
        os.close(fd)
