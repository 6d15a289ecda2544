"""The notebook example runs as it is, and draws what `blktape analyze` counts."""

from tests.harness import pypi

pypi.enter()

import contextlib
import io
import os
import runpy
import tempfile
import unittest
from pathlib import Path

# The home may be unwritable here.
os.environ["MPLCONFIGDIR"] = os.environ.get("TEST_TMPDIR", tempfile.gettempdir())

import matplotlib

from tests.harness import blktape as tool
from tests.harness import cases
from tests.python import tape_writer

matplotlib.use("agg")
PICTURES = ["addresses", "depth", "idle", "latency", "sizes", "timeline"]


class NotebookTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def look(self, trace):
        """What it computed and what it printed."""
        os.environ.update(TRACE=str(trace), OUT=str(self.folder / "pictures"))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            values = runpy.run_path("examples/notebook/look.py")
        return values, said.getvalue()

    def pictures(self):
        return sorted(path.stem for path in (self.folder / "pictures").glob("*.png"))

    def test_the_trace_that_ships(self):
        values, said = self.look("tests/data/sample.tape")
        told = tool.as_json("analyze", "tests/data/sample.tape")
        self.assertEqual(self.pictures(), PICTURES)
        self.assertEqual((values["busy_ns"], values["observed_ns"]), (told["busy_ns"], told["observed_ns"]))
        self.assertEqual(values["depth_max"], told["queue_depth"]["max"])
        self.assertAlmostEqual(values["depth_mean"], told["queue_depth"]["mean"], 6)
        self.assertEqual(list(values["gap_counts"]), [gap["count"] for gap in told["idle_gaps"]])
        self.assertEqual({row["bytes"]: row["count"] for row in told["queued"]["size_histogram"]},
                         {size: count for size, count in values["asked"].items() if size})
        self.assertEqual(values["issued_bars"].sum(), told["data_requests"])
        self.assertEqual(values["addresses"].sum(), told["data_requests"])
        self.assertEqual(values["latencies"].sum(), told["d2c_ns"]["count"])
        self.assertAlmostEqual(values["share_4k"], told["share_4k"])
        self.assertIn("11,590 I/Os in %.1f s\n" % (told["observed_ns"] / 1e9), said)
        self.assertNotIn("lacks", said)

    def test_every_cell_is_one_that_notebooks_know(self):
        text = Path("examples/notebook/look.py").read_text()
        self.assertTrue(text.startswith("# %% [markdown]\n"))
        cells = [line for line in text.splitlines() if line.startswith("# %%")]
        self.assertEqual(set(cells), {"# %%", "# %% [markdown]"})

    def test_traces_that_lack_much(self):
        plain = {"device": 0, "op": 0, "flags": 0, "bytes": 4096}
        for name, records in {
                "one": [{**plain, "queue": 5}], "a flush": [{**plain, "bytes": 0, "op": 3, "issue": 9, "complete": 10}],
                "no latency and times that cannot be": [
                    {**plain, "queue": 5, "lba": 1}, {**plain, "queue": 5, "issue": 5, "complete": 5, "lba": 0},
                    {**plain, "queue": -2**63, "complete": 2**62}]}.items():
            with self.subTest(name):
                path = self.folder / "a.tape"
                path.write_bytes(tape_writer.trace_of([records]))
                self.look(path)
                self.assertEqual(self.pictures(), PICTURES)
        for records in ([], [plain]):
            path.write_bytes(tape_writer.trace_of([records] if records else []))
            with self.assertRaisesRegex(SystemExit, "nothing to draw"):
                self.look(path)

    def test_what_is_missing_is_told(self):
        path = self.folder / "a.tape"
        path.write_bytes(tape_writer.trace_of([[{"device": 0, "op": 1, "flags": 0, "bytes": 512, "queue": 1}]],
                                              [tape_writer.loss(1, 12)]))
        self.assertIn("Attention: this trace lacks 12 events", self.look(path)[1])


if __name__ == "__main__":
    cases.main()
