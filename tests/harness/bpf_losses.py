"""Recordings by --source=bpf on kernels that restrict BPF: what they may lack, to the last I/O.

Such a kernel (of some virtual machines; none of a distribution is known) runs no BPF program while certain tasks are
current, nor for the interrupts that come then. `auto` takes another source there and says so. A recording by bpf
lacks the issue or the completion of an I/O, counts it and ends with 3. A test of what it holds allows as much as it
counts, and nothing else; on any other kernel nothing at all.
"""

import os
import tempfile

from tests.harness import blktape

STATUSES = (0, 3)
_UNISSUED = "MISSING_START_TIME"
# The tag was used again, or nobody used it any more.
_UNCOMPLETED = "TAG_REUSED", "IN_FLIGHT_AT_END"


def _kernel_restricts_bpf(device):
    with tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR")) as folder:
        said = blktape.ok("record", "--device", "/dev/" + device, "--settle", "0s", "-o", os.path.join(folder, "a.tape"),
                          "--", "true")
    return "this kernel restricts BPF" in said.stdout + said.stderr


class Losses:
    """Of a finished trace: `unissued` I/Os are not in it, `uncompleted` lack their completion."""

    def __init__(self, test, trace):
        self._test = test
        self.info = blktape.as_json("info", trace, accept=STATUSES)
        counts = {loss["reason"]: loss.get("count", 0) for loss in self.info["losses"]}
        self.unissued = counts.pop(_UNISSUED, 0)
        self.uncompleted = sum(counts.pop(reason, 0) for reason in _UNCOMPLETED)
        self._others = counts
        by_bpf = self.info["header"]["source"] == "bpf"
        if by_bpf and self.unissued + self.uncompleted > 0:
            [device] = self.info["header"]["devices"]
            test.assertTrue(_kernel_restricts_bpf(device["name"]), self.info["losses"])

    def check_no_others(self):
        """Nothing else is missing; of a recording by another source than bpf nothing at all."""
        self._test.assertEqual(self._others, {})
        if self.info["header"]["source"] != "bpf":
            self._test.assertEqual((self.unissued, self.uncompleted), (0, 0))

    def follow(self, rows, planned, key):
        """Yields each row with its place in `planned`, of which key(row) is an element, in order."""
        place = missing = 0
        for row in rows:
            while planned[place:place + 1] != [key(row)]:
                self._test.assertLess(place, len(planned), row)
                place, missing = place + 1, missing + 1
                self._test.assertLessEqual(missing, self.unissued, (row, planned[place - 1], self.info["losses"]))
            yield row, place
            place += 1

    def check_whole(self, rows, planned, key):
        """All that was planned is there, in order and complete, but for what is counted."""
        found = sum(1 for _ in self.follow(rows, planned, key))
        self._test.assertLessEqual(len(planned) - found, self.unissued, self.info["losses"])
        self.check_completed(rows)

    def check_completed(self, rows):
        self._test.assertLessEqual(sum(row["complete_ns"] == "" for row in rows), self.uncompleted, self.info["losses"])
