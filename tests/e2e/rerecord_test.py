"""Recordings that other programs made, replayed and recorded again: the same requests reach the device.

Of half an hour of applications two parts; BLKTAPE_RERECORD_WHOLE=1 makes it the whole, in some minutes:
  bazel test --test_env=BLKTAPE_RERECORD_WHOLE=1 --test_env=BLKTAPE_SHARED --test_timeout=900 --test_output=all \\
    //tests/e2e:rerecord_test
"""

import collections
import os
import time
import unittest

from tests.harness import blktape, cases, devices

WHOLE = bool(os.environ.get("BLKTAPE_RERECORD_WHOLE"))
OWN = "tests/capture/data/%s.blktrace.%d.zst"
# The first sectors of a target are looked at when it is opened, and others may do so as well.
OTHER_READS = 64


def data(rows):
    """What is to be the same: everything but flushes, which a device without FUA gets more of."""
    return [row for row in rows if row["op"] != "flush"]


def key(row):
    return row["op"], int(row["lba"]), int(row["bytes"])


def pieces(row, limit):
    """The requests a device gets that takes no more than `limit` bytes of data at once."""
    op, lba, size = key(row)
    if op not in ("read", "write"):
        return [(op, lba, size)]
    return [(op, lba + at // 512, min(limit, size - at)) for at in range(0, size, limit)]


class RerecordTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)

    @staticmethod
    def set_nomerges(queue, value):
        with open(queue + "nomerges", "r+") as setting:
            before = setting.read()
            setting.seek(0)
            setting.write(value)
        return before

    def check(self, files, size_bytes, requests, spans=((),)):
        """`requests` is how many the recording of `files` holds; each of `spans` is replayed by itself."""
        trace = self.scratch.path("trace.tape")
        blktape.ok("import", *files, "-o", trace)
        self.assertEqual(blktape.as_json("analyze", trace)["ios"], requests)
        for span in spans:
            with self.subTest(" ".join(span)):
                self.check_span(trace, size_bytes, span)

    def check_span(self, trace, size_bytes, span):
        target = self.scratch.loop(size_bytes)
        again = self.scratch.path("again%d.tape" % len(os.listdir(self.scratch.folder)))
        queue = "/sys/block/%s/queue/" % os.path.basename(target)
        # A loop device keeps its settings after it is given back.
        self.addCleanup(self.set_nomerges, queue, self.set_nomerges(queue, "2"))
        with open(queue + "max_sectors_kb") as setting:
            limit = int(setting.read()) * 1024
        begin_s = time.monotonic()
        blktape.ok("record", "--device", target, "--settle", "0s", "-o", again, "--",
                   os.path.realpath(blktape.PROGRAM), "replay", trace, "--target", target, "--overwrite", "--yes",
                   "--max", "--engine", "io_uring", *span, timeout_s=800)
        recorded, replayed = data(blktape.dump(trace, *span)), data(blktape.dump(again))
        print("%d requests in %.0f s" % (len(recorded), time.monotonic() - begin_s), flush=True)
        extra = collections.Counter(map(key, replayed))
        extra.subtract(piece for row in recorded for piece in pieces(row, limit))
        self.assertEqual({what: count for what, count in extra.items() if count and what[0] != "read"}, {})
        self.assertGreaterEqual(min(extra.values()), 0)
        self.assertLessEqual(sum(extra.values()), OTHER_READS)
        # User space cannot ask for a flush and a write in one request: a write with PREFLUSH waits for
        # the flush before it, and others pass. What the device does not take whole, io_uring hands
        # to a worker. All others are in the recorded order.
        plain = [key(row) for row in recorded if "fua" not in row["flags"] and len(pieces(row, limit)) == 1]
        split = collections.Counter(piece for row in recorded for piece in pieces(row, limit)
                                    if len(pieces(row, limit)) > 1)
        seen = []
        for row in replayed:
            if split[key(row)] > 0:
                split[key(row)] -= 1
            elif "fua" not in row["flags"]:
                seen.append(key(row))
        seen = seen[len(seen) - len(plain):]
        wrong = [at for at in range(len(plain)) if seen[at] != plain[at]]
        self.assertEqual(wrong, [], [(seen[at], plain[at]) for at in wrong[:8]])

    def test_takeoverjp(self):
        self.check(cases.shared("traces/blktrace-takeoverjp/sample.blktrace.0"), 1300 << 30, 963)

    def test_a_desktop_on_nvme(self):
        self.check([OWN % ("nvme0n1", cpu) for cpu in (0, 1)], 16 << 30, 2035)

    def test_a_desktop_on_a_loop_device(self):
        self.check([OWN % ("loop2", cpu) for cpu in (0, 1)], 16 << 30, 35_086)

    def test_half_an_hour_of_applications(self):
        # From the log-in to the photographs; a virtual machine, a virus scan, and a cron job's many discards.
        parts = (("--to", "12m"), ("--from", "21m", "--to", "26m"))
        files = cases.shared(*("traces/own/desktop-session/loop0.blktrace.%d.zst" % cpu for cpu in (0, 1)))
        self.check(files, 40 << 30, 421_548, ((),) if WHOLE else parts)


if __name__ == "__main__":
    cases.main()
