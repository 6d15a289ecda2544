"""Parquet of a trace: by the functions and by `python -m blktape`, with the exit statuses of the program."""

from tests.harness import pypi

pypi.enter()

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pyarrow.parquet as pq

import blktape
from blktape import __main__
from tests.harness import cases
from tests.python import tape_writer

SAMPLE = "tests/data/sample.tape"


class ParquetTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "out.parquet"
        self.record = {"device": 0, "op": 0, "flags": 0, "bytes": 4096, "lba": 2**64 - 1, "queue": -5}

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def run_module(self, *words):
        """Exit status, and what it said: as `python -m blktape`, without starting one each time."""
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as warned:
            try:
                status = __main__.main([str(word) for word in words])
            except SystemExit as ended:
                status = ended.code
        return status, said.getvalue(), warned.getvalue()

    def test_the_records_come_back(self):
        result = blktape.write_parquet(SAMPLE, self.output, row_group_rows=5000)
        self.assertEqual((result.records, result.lost_events, result.bytes), (11590, 0, self.output.stat().st_size))
        table = pq.read_table(self.output)
        whole = blktape.read_table(SAMPLE)
        self.assertEqual(table.schema.names, whole.schema.names)
        self.assertEqual(table.to_pylist(), whole.to_pylist())
        self.assertGreater(pq.ParquetFile(self.output).metadata.num_row_groups, 1)

    def test_any_value_comes_back(self):
        path = self.write("a.tape", tape_writer.trace_of([[self.record, {**self.record, "queue": 2**63 - 1}]]))
        blktape.write_parquet(path, self.output)
        self.assertEqual(pq.read_table(self.output).to_pylist(), blktape.read_table(path).to_pylist())

    def test_an_empty_trace_has_its_columns(self):
        self.assertEqual(blktape.write_parquet(self.write("a.tape", tape_writer.trace_of([])), self.output).records, 0)
        self.assertEqual(pq.read_table(self.output).schema.names, [column.name for column in blktape.COLUMNS])

    def test_header_marks_and_losses_are_in_its_metadata(self):
        path = self.write("a.tape", tape_writer.trace_of(
            [[self.record]], [tape_writer.loss(1, 12, cpu=0), tape_writer.mark(1, 7, 9)], host="web1", start=(1, 2)))
        blktape.write_parquet(path, self.output)
        metadata = pq.read_metadata(self.output).metadata
        header = json.loads(metadata[b"blktape.header"])
        self.assertEqual((header["host"], header["devices"], header["start"]["wall_ns"]), ("web1", [{"name": "sda"}], "2"))
        self.assertEqual(json.loads(metadata[b"blktape.losses"]), [{"reason": "RING_OVERRUN", "count": 12, "cpu": 0}])
        self.assertEqual(json.loads(metadata[b"blktape.marks"]), [{"kind": "SUSPEND", "at_ns": 7, "value_ns": 9}])
        self.assertEqual(metadata[b"blktape.lost_events"], b"12")

    def test_a_whole_trace_ends_with_0(self):
        status, said, warned = self.run_module(SAMPLE, "-o", self.output)
        self.assertEqual((status, warned), (0, ""))
        self.assertEqual(said, "%s: 11,590 I/Os, %s bytes\n" % (self.output, format(self.output.stat().st_size, ",")))

    def test_one_with_losses_ends_with_3_and_says_what_is_missing(self):
        frames = tape_writer.frames_of([[self.record], [self.record] * 3, [self.record]])
        begin = sum(map(len, frames[:2]))
        path = self.write("a.tape", tape_writer.finish(frames).replace(frames[2], frames[2][:-1] + b"?"))
        status, _, warned = self.run_module(path, "-o", self.output)
        self.assertEqual(status, 3)
        self.assertEqual(warned, "warning: %s: damaged input: 3 events\nwarning: %s:   bytes %d to %d: a frame whose checksum "
                                 "does not hold\n" % (path, path, begin, begin + len(frames[2])))
        self.assertEqual(pq.read_metadata(self.output).num_rows, 2)

    def test_failures_end_with_1_and_leave_nothing(self):
        text = self.write("a.txt", b"hello")
        newer = self.write("newer.tape", tape_writer.trace_of([], version=9))
        for words, expected in (([text], "no blktape trace"), ([newer], "format version 9"),
                                ([self.folder / "none"], "none: No such file or directory"),
                                ([self.folder], "Is a directory")):
            with self.subTest(expected):
                status, said, warned = self.run_module(*words, "-o", self.output)
                self.assertEqual((status, said), (1, ""))
                self.assertRegex(warned, "^error: .*%s" % expected)
                self.assertEqual([name for name in os.listdir(self.folder) if "parquet" in name], [])

    def test_no_file_is_overwritten(self):
        self.output.write_bytes(b"mine")
        status, _, warned = self.run_module(SAMPLE, "-o", self.output)
        self.assertEqual((status, warned), (1, "error: %s: exists, and is not overwritten\n" % self.output))
        self.assertEqual(self.output.read_bytes(), b"mine")

    def test_what_has_the_name_of_an_unfinished_file_stays(self):
        others = self.folder / ("%s.%d.partial" % (self.output.name, os.getpid()))
        others.write_bytes(b"mine")
        with self.assertRaises(FileExistsError):
            blktape.write_parquet(SAMPLE, self.output)
        self.assertEqual(others.read_bytes(), b"mine")
        self.assertFalse(self.output.exists())

    def test_wrong_words_end_with_2(self):
        for words in ([], [SAMPLE], [SAMPLE, SAMPLE, "-o", "x"], [SAMPLE, "-o", "x", "--columns", "size"],
                      ["-", "--dataset", "x"], [SAMPLE, "-o", "x", "--dataset", "y"]):
            with self.subTest(words):
                self.assertEqual(self.run_module(*words)[0], 2)

    def test_standard_input_and_chosen_columns(self):
        done = subprocess.run([sys.executable, "-m", "blktape", "-", "-o", self.output, "--columns", "bytes,op"],
                              input=Path(SAMPLE).read_bytes(), capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(pq.read_table(self.output).to_pydict(), blktape.read_table(SAMPLE, ["bytes", "op"]).to_pydict())

    def test_a_dataset_has_a_file_a_trace_by_machine(self):
        named = self.write("mon day.tape", tape_writer.trace_of([[self.record]], host="web/1"))
        other = self.write("b.tape.partial", tape_writer.frames_of([[self.record]])[0])
        bad = self.write("c.tape", b"nothing")
        fleet = self.folder / "fleet"
        status, said, warned = self.run_module(named, other, bad, "--dataset", fleet)
        self.assertEqual(status, 1, warned)
        self.assertIn("c.tape", warned)
        places = ["machine=b/trace=b", "machine=web%2F1/trace=mon day"]
        self.assertEqual(sorted(str(path.relative_to(fleet)) for path in fleet.rglob("*.parquet")),
                         ["records/%s/records.parquet" % place for place in places] +
                         ["traces/%s/trace.parquet" % place for place in places])
        # Again with one more: what is there stays.
        more = self.write("d.tape", tape_writer.trace_of([[self.record]], host="web/1"))
        status, said, _ = self.run_module(named, more, "--dataset", fleet)
        self.assertEqual(status, 0)
        self.assertIn("mon day.tape: is in %s already" % fleet, said)
        self.assertTrue((fleet / "traces/machine=web%2F1/trace=d/trace.parquet").exists())
        # One that was interrupted begins anew.
        (fleet / "traces/machine=b/trace=b/trace.parquet").unlink()
        self.assertEqual(self.run_module(other, "--dataset", fleet)[0], 3)
        self.assertTrue((fleet / "traces/machine=b/trace=b/trace.parquet").exists())

    def test_a_dataset_tells_of_each_trace_as_a_whole(self):
        frames = tape_writer.frames_of([[self.record], [self.record] * 3, [self.record]], host="web1", start=(10, 5_000))
        # Its summary says when recording ended.
        frames[-1] = tape_writer.frame(tape_writer.frame_start(4, 5) + tape_writer.message(
            tape_writer.SUMMARY, tape_writer.number(1, 5) + tape_writer.data(4, tape_writer.number(1, 910))))
        blktape.add_to_dataset(self.write("a.tape", tape_writer.finish(frames)), self.folder / "fleet")
        del frames[2]  # the frame of three records
        blktape.add_to_dataset(self.write("b.tape", tape_writer.finish(frames)), self.folder / "fleet")
        blktape.add_to_dataset(self.write("c.tape.partial", b"".join(frames[:-1])), self.folder / "fleet")
        common = {"host": "web1", "source": "generator", "kernel": "", "timezone": "", "devices": ["sda"],
                  "is_replay": False, "start_wall_ns": 5_000}
        for name, expected in (
                ("a", {"recorded_ns": 900, "records": 5, "lost_events": 0, "lost_events_is_lower_bound": False,
                       "finished_cleanly": True}),
                ("b", {"recorded_ns": 900, "records": 2, "lost_events": 3, "lost_events_is_lower_bound": False,
                       "finished_cleanly": True}),
                ("c", {"recorded_ns": None, "records": 2, "lost_events": 4, "lost_events_is_lower_bound": True,
                       "finished_cleanly": False})):
            file = self.folder / "fleet/traces/machine=web1" / ("trace=" + name) / "trace.parquet"
            self.assertEqual(pq.ParquetFile(file).read().to_pylist(), [{**common, **expected}], name)


if __name__ == "__main__":
    cases.main()
