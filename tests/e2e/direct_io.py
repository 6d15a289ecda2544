#!/usr/bin/python3
"""Direct I/O that a test can foretell: direct_io.py DEVICE WHAT.

writes-and-reads  23 writes of 4 KiB and 17 reads of 16 KiB, one at a time, at the addresses of plan().
mixed SEED COUNT [PAUSE_MS]  COUNT random reads, writes and fsyncs.
Prints its process id.
"""

import mmap
import os
import random
import sys
import time


def plan():
    """(op, offset, bytes) in order: addresses that go up, down and come again."""
    todo = [("write", (number * 37 % 101) * 8192 + 4096, 4096) for number in range(23)]
    todo += [("read", (number * 29 % 61) * 65536, 16384) for number in range(17)]
    return todo


def mixed(seed, count, span):
    rng = random.Random(seed)
    for _ in range(count):
        size = rng.choice((512, 4096, 4096, 4096, 16384, 131072))
        offset = rng.randrange(0, span - size, 512) if size == 512 else rng.randrange(0, span - size, 4096)
        yield rng.choices((("read", offset, size), ("write", offset, size), ("flush", 0, 0)), (5, 4, 1))[0]


def perform(device, todo, pause_s=0):
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    buffer = mmap.mmap(-1, 1 << 20)
    buffer.write(os.urandom(1 << 20))
    for op, offset, size in todo:
        part = memoryview(buffer)[:size]
        if op == "write":
            assert os.pwritev(fd, [part], offset) == size
        elif op == "read":
            assert os.preadv(fd, [part], offset) == size
        else:
            os.fsync(fd)
        time.sleep(pause_s)
    os.close(fd)


if __name__ == "__main__":
    print(os.getpid(), flush=True)
    if sys.argv[2] == "mixed":
        perform(sys.argv[1], mixed(int(sys.argv[3]), int(sys.argv[4]), 64 << 20),
                int(sys.argv[5]) / 1000 if len(sys.argv) > 5 else 0)
    else:
        perform(sys.argv[1], plan())
