"""What a disk with a write cache holds once its power has gone, by the log that qemu kept of it (blklogwrites).

The log is that of dm-log-writes: the superblock in its first sector, then entries, each a sector of
its own and the data it describes (drivers/md/dm-log-writes.c).
"""

import struct

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD = 1, 2, 4


def _entries(log):
    """(flags, byte offset, data or None where it was discarded, bytes) in the order of the log."""
    magic, _, _, sector_bytes = struct.unpack("<QQQI", log.read(28))
    if magic != MAGIC:
        raise AssertionError("%s is no log of writes" % log.name)
    at = sector_bytes
    while True:
        log.seek(at)
        head = log.read(sector_bytes)
        if len(head) < sector_bytes:
            return
        sector, sectors, flags, _ = struct.unpack("<QQQQ", head[:32])
        size = sectors * sector_bytes
        at += sector_bytes
        data = None
        if not flags & DISCARD:
            data = log.read(size)
            at += size
            if len(data) < size:
                return
        yield flags, sector * sector_bytes, data, size


def apply_flushed(log_path, image_path):
    """Writes to the image what was durable by the end of the log: all before the last flush, and what was
    written with FUA after it."""
    with open(log_path, "rb") as log, open(image_path, "r+b") as image:
        last_flush = max((i for i, entry in enumerate(_entries(log)) if entry[0] & FLUSH), default=-1)
        log.seek(0)
        for i, (flags, offset, data, size) in enumerate(_entries(log)):
            if i < last_flush or flags & (FLUSH | FUA):
                image.seek(offset)
                image.write(bytes(size) if data is None else data)
