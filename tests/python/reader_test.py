"""The Python package reads what the program reads, of every trace there is."""

from tests.harness import pypi

pypi.enter()

import io
import os
import random
import subprocess
import tempfile
import tracemalloc
import unittest
from pathlib import Path

import pyarrow as pa

import blktape
from blktape import reader
from tests.harness import blktape as tool
from tests.harness import cases
from tests.python import program, tape_writer

I64, U32, U64 = 2**63, 2**32, 2**64

# Recordings beside the repository that the program imports; of others that it does not (yet), nothing is asked.
SHARED_IMPORTS = [
    ["own/desktop-session/loop0.blktrace.0.zst", "own/desktop-session/loop0.blktrace.1.zst"],
    ["own/loop-desktop/loop2.blktrace.0", "own/loop-desktop/loop2.blktrace.1"],
    ["own/nvme-desktop/nvme0n1.blktrace.0", "own/nvme-desktop/nvme0n1.blktrace.1"],
    ["blktrace-takeoverjp/sample.blktrace.0"],
]


def any_records(chosen, count, devices):
    """Records in which each property is absent or has any value that its column can hold."""
    wide = {"lba": U64, "ordinal": U64, "backlog": U64}
    records = []
    for _ in range(count):
        record = {"device": chosen.randrange(devices), "op": chosen.randrange(12), "flags": chosen.getrandbits(32),
                  "bytes": chosen.getrandbits(chosen.choice([0, 12, 20, 64]))}
        for name in ("queue", "issue", "complete"):
            if chosen.random() < 0.7:
                record[name] = chosen.choice([0, -1, 1, I64 - 1, -I64, chosen.randrange(-I64, I64), chosen.randrange(10**6)])
        for name in tape_writer.COLUMNS[8:] + ["lba"]:
            if chosen.random() < 0.6:
                record[name] = chosen.randrange(wide.get(name, U32)) >> chosen.randrange(33)
        records.append(record)
    return records


class Case(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, content, name="a.tape"):
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def check_same(self, path):
        done = subprocess.run([tool.PROGRAM, "dump", "--csv", "--result", path], capture_output=True, check=False)
        status, out, warnings = program.dump(path, result=True)
        said = done.stdout.decode()
        if out != said:  # a difference of many MB is no message
            for number, (ours, theirs) in enumerate(zip(out.splitlines(), said.splitlines())):
                self.assertEqual(ours, theirs, "row %d" % number)
            self.assertEqual(len(out), len(said))
        self.assertEqual(warnings, done.stderr.decode())
        self.assertEqual(status, done.returncode)
        return out


class AgainstTheProgram(Case):
    def test_the_trace_that_ships(self):
        self.assertEqual(self.check_same("tests/data/sample.tape").count("\n"), 11591)

    def test_the_golden_traces(self):
        self.check_same("tests/format/golden/v1.tape")
        path = "tests/format/golden/v1_identity.tape"
        self.assertEqual(self.check_same(path).count("\n"), 1 + 5)
        with blktape.open_trace(path) as trace:
            self.assertEqual(len(trace.header.trace_id), 16)
            list(trace.batches())
        # As tests/format/trace_golden_test.cc has it.
        self.assertEqual(trace.losses, [blktape.Loss(1, 12, cpu=1)])

    def test_recordings_in_the_repository(self):
        for name in ("nvme0n1", "loop2"):
            with self.subTest(name):
                trace = str(self.folder / (name + ".tape"))
                tool.ok("import", *("tests/capture/data/%s.blktrace.%d.zst" % (name, cpu) for cpu in (0, 1)), "-o", trace,
                        accept=(0, 3))
                self.check_same(trace)

    def test_recordings_beside_the_repository(self):
        [folder] = cases.shared("traces")
        for number, names in enumerate(SHARED_IMPORTS):
            with self.subTest(names[0]):
                trace = str(self.folder / ("%d.tape" % number))
                tool.ok("import", *(os.path.join(folder, name) for name in names), "-o", trace, accept=(0, 3))
                self.check_same(trace)

    def test_generated_loads(self):
        for kind in ("mixed", "random-read", "desktop"):
            with self.subTest(kind):
                trace = str(self.folder / (kind + ".tape"))
                subprocess.run(["tests/support/make_trace", trace, "40000", "3000", "kind=" + kind], check=True)
                self.check_same(trace)

    def test_any_records_that_the_program_can_write(self):
        for seed in ("1", "2", "3"):
            with self.subTest(seed):
                trace = str(self.folder / (seed + ".tape"))
                subprocess.run(["tests/format/make_format_trace", "random", seed, trace], check=True)
                self.check_same(trace)

    def test_any_records_of_another_writer(self):
        chosen = random.Random(1)
        for devices in (1, 3, 40):
            with self.subTest(devices=devices):
                batches = [any_records(chosen, count, devices) for count in (1, 7, 8, 500)]
                names = tape_writer.process_names(["a", "b,\"c\"", "a"], first_id=0)
                path = self.write(tape_writer.trace_of(batches, [names], devices=["disk%d" % i for i in range(devices)]))
                self.check_same(path)


class Values(Case):
    def test_every_value_comes_back(self):
        chosen = random.Random(2)
        records = any_records(chosen, 3000, 4096) + any_records(chosen, 3000, 2)
        path = self.write(tape_writer.trace_of([records], devices=["d%d" % i for i in range(4096)]))
        rows = blktape.read_table(path).to_pylist()
        self.assertEqual(len(rows), len(records))
        fields = {column.field: column.name for column in blktape.COLUMNS if column.field not in ("device", "op", "process")}
        for row, record in zip(rows, records):
            self.assertEqual({name: row[name] for name in fields.values()},
                             {name: record.get(field) for field, name in fields.items()})
            self.assertEqual((row["device"], row["op"]), ("d%d" % record["device"], tape_writer.OPS[record["op"]]))

    def test_a_column_that_no_record_has_and_one_that_all_have(self):
        whole = {"device": 0, "op": 1, "flags": 0, "bytes": 4096, "lba": 8, "queue": 5, "issue": 6, "complete": 9, "error": 0,
                 "pid": 1, "process": 0, "cpu": 0, "merged_bios": 0, "prio": 0, "ordinal": 3, "backlog": 0,
                 "waker": 1, "since_wake": 0}
        for name in tape_writer.COLUMNS[4:]:
            for absent in (True, False):
                with self.subTest(name, absent=absent):
                    record = {key: value for key, value in whole.items() if key != name or not absent}
                    table = blktape.read_table(self.write(
                        tape_writer.trace_of([[record] * 9], [tape_writer.process_names(["dd"])])))
                    arrow = next(column.name for column in blktape.COLUMNS if column.field == name)
                    self.assertEqual(table.column(arrow).null_count, 9 if absent else 0)
                    self.assertEqual(table.schema.names, [column.name for column in blktape.COLUMNS])

    def test_the_example_of_the_format_page(self):
        records = [{"device": 0, "op": 1, "flags": 0, "bytes": 4096, "lba": 0, "queue": 1000},
                   {"device": 0, "op": 1, "flags": 0, "bytes": 4096, "lba": 8, "queue": 1500}]
        stored, base_ns, _ = tape_writer.coded(records)
        self.assertEqual(([io["queue"] for io in stored], base_ns), ([0, 1000], 1000))
        table = blktape.read_table(self.write(tape_writer.trace_of([records])), ["lba", "queue_ns"])
        self.assertEqual(table.to_pydict(), {"lba": [0, 8], "queue_ns": [1000, 1500]})

    def test_only_the_columns_asked_for(self):
        table = blktape.read_table("tests/data/sample.tape", ["complete_ns", "op"])
        self.assertEqual(table.schema.names, ["complete_ns", "op"])
        whole = blktape.read_table("tests/data/sample.tape")
        self.assertEqual(table.column("complete_ns"), whole.column("complete_ns"))
        with self.assertRaisesRegex(ValueError, "no column size; it has queue_ns"):
            blktape.open_trace("tests/data/sample.tape", ["size"])

    def test_names_that_come_late_or_change(self):
        io_of = lambda process: {"device": 0, "op": 0, "flags": 0, "bytes": 0, "process": process}
        content = [tape_writer.frame(tape_writer.header())]
        content.append(tape_writer.frame(
            tape_writer.frame_start(1, 0) + tape_writer.process_names(["a"], 7) + tape_writer.batch([io_of(7), io_of(8)]) +
            tape_writer.process_names(["b", "c"], 7) + tape_writer.batch([io_of(7), io_of(8), io_of(65536)])))
        path = self.write(b"".join(content))
        self.assertEqual(blktape.read_table(path).column("process").to_pylist(), ["a", None, "b", "c", None])
        self.check_same(path)

    def test_pandas_and_polars_keep_every_nanosecond(self):
        late = 2**62 + 1  # not a float
        records = [{"device": 0, "op": 0, "flags": 1, "bytes": 512, "lba": 1, "queue": late, "process": 0},
                   {"device": 0, "op": 3, "flags": 0, "bytes": 0}]
        path = self.write(tape_writer.trace_of([records, records], [tape_writer.process_names(["dd"])]))
        pandas = blktape.read_pandas(path)
        self.assertEqual(pandas["queue_ns"][0], late)
        self.assertTrue(pandas["queue_ns"].isna()[1])
        self.assertEqual(list(pandas["op"]), ["read", "flush"] * 2)
        self.assertEqual(pandas["process"].dropna().tolist(), ["dd", "dd"])
        polars = blktape.read_polars(path)
        self.assertEqual(polars["queue_ns"].to_list(), [late, None] * 2)
        self.assertEqual(polars["process"].to_list(), ["dd", None] * 2)


class Ranges(Case):
    class Counting(io.FileIO):
        """A file that counts the bytes read of it."""
        read_bytes = 0

        def read(self, size=-1):
            got = super().read(size)
            self.read_bytes += len(got)
            return got

    def make(self, count=200_000):
        path = str(self.folder / "long.tape")
        subprocess.run(["tests/support/make_trace", path, str(count), "3000", "kind=desktop", "frame=1000"], check=True)
        return path

    def test_a_range_holds_what_arrived_in_it(self):
        path = self.make(20_000)
        whole = blktape.read_table(path).to_pylist()
        first, last = whole[0]["queue_ns"], whole[-1]["queue_ns"]
        third = (last - first) // 3
        for from_ns, to_ns in ((None, None), (first, None), (first + third, None), (None, first + third), (last, None),
                               (first + third, first + 2 * third), (last + 1, None), (None, first), (-2**70, 2**70)):
            with self.subTest(from_ns=from_ns, to_ns=to_ns), blktape.open_trace(path) as trace:
                rows = trace.read_all(from_ns, to_ns).to_pylist()
                self.assertEqual(rows, [row for row in whole if (from_ns is None or row["queue_ns"] >= from_ns) and
                                        (to_ns is None or row["queue_ns"] < to_ns)])
                self.assertEqual((trace.lost_events, trace.losses), (0, []))

    def test_only_the_part_that_holds_it_is_read(self):
        path = self.make()
        with blktape.open_trace(path) as trace:
            span = trace.summary.last_ns - trace.summary.first_ns
            begin = trace.summary.first_ns + span * 8 // 10
        source = self.Counting(path)
        with blktape.open_trace(source, ["queue_ns"]) as trace:
            before = source.read_bytes
            table = trace.read_all(begin, begin + span // 100)
        self.assertGreater(table.num_rows, 500)
        # A hundredth, by pieces of a MiB.
        self.assertLessEqual(source.read_bytes - before, 2 << 20)
        self.assertGreater(os.path.getsize(path), 2 << 20)

    def test_it_agrees_with_the_program(self):
        path = self.make(20_000)
        with blktape.open_trace(path) as trace:
            first = trace.summary.first_ns
            text = program.csv_rows(pa.Table.from_batches(list(trace.batches(first + 2 * 10**9, first + 3 * 10**9)),
                                                          trace.schema))
        said = tool.ok("dump", "--csv", path, "--from", "2s", "--to", "3s").stdout
        self.assertEqual(said.split("\n", 1)[1], text)

    def test_records_that_stand_late(self):
        at = lambda ns: {"device": 0, "op": 0, "flags": 0, "bytes": 0, "queue": ns}
        frames = tape_writer.frames_of([[at(10), at(11)], [at(20), at(5)], [{"device": 0, "op": 0, "flags": 0, "bytes": 0}]])
        for late in (None, 15):
            end = {} if late is None else {"late_ns_max": late}
            frames[-1] = tape_writer.frame(tape_writer.frame_start(4, 5) + tape_writer.summary(5, **end))
            with blktape.open_trace(self.write(tape_writer.finish(frames))) as trace:
                self.assertEqual(trace.read_all(5, 11).column("queue_ns").to_pylist(), [10, 5])

    def test_a_pipe_is_read_from_its_begin(self):
        content = Path(self.make(5_000)).read_bytes()
        whole = blktape.read_table(io.BytesIO(content)).column("queue_ns").to_pylist()

        class Pipe(io.BytesIO):
            def seekable(self):
                return False

        with blktape.open_trace(Pipe(content)) as trace:
            self.assertEqual(trace.read_all(whole[4000]).column("queue_ns").to_pylist(), whole[4000:])


class WhatElseItHolds(Case):
    def setUp(self):
        super().setUp()
        self.record = {"device": 0, "op": 0, "flags": 0, "bytes": 4096, "queue": 100}
        before = [tape_writer.anchor(200, 1_000_200), tape_writer.loss(1, 12, cpu=3, from_ns=50, to_ns=60),
                  tape_writer.loss(3), tape_writer.loss(12, 4), tape_writer.mark(1, 70, 5_000, "lid"),
                  tape_writer.queued_sizes([(1, 4096, 7)], flushes_asked=2, flagged_writes=1),
                  tape_writer.process_names(["dd"], 3)]
        self.path = self.write(tape_writer.trace_of([[self.record]], before, devices=["sda", "sdb"], host="web1",
                                                    start=(0, 1_000_000)))

    def test_header_losses_marks_and_anchors(self):
        with blktape.open_trace(self.path) as trace:
            self.assertEqual((trace.header.host, trace.header.format_version, trace.header.is_replay), ("web1", 1, False))
            self.assertEqual([device.name for device in trace.header.devices], ["sda", "sdb"])
            self.assertIsNone(trace.header.devices[0].rotational)
            self.assertEqual(trace.summary.records, 1)
            list(trace.batches())
        self.assertEqual(trace.losses, [blktape.Loss(1, 12, from_ns=50, to_ns=60, cpu=3), blktape.Loss(3),
                                        blktape.Loss(12, 4)])
        self.assertEqual([loss.reason_name for loss in trace.losses], ["RING_OVERRUN", "SEQUENCE_GAP", "IN_FLIGHT_AT_START"])
        # 12, one of unknown extent, and none of what was in flight.
        self.assertEqual(trace.lost_events, 13)
        self.assertEqual(trace.loss_totals["SEQUENCE_GAP"], blktape.LossTotal(0, 1))
        self.assertEqual(trace.marks, [blktape.Mark(1, 70, 5_000, "lid")])
        self.assertEqual(trace.marks[0].kind_name, "SUSPEND")
        self.assertEqual(trace.queued_sizes, [blktape.QueuedSizes((blktape.QueuedSize(1, 4096, 7),), 2, 1)])
        self.assertEqual(trace.process_names, {3: "dd"})
        self.assertEqual(trace.anchors, [blktape.ClockAnchor(0, 1_000_000), blktape.ClockAnchor(200, 1_000_200)])

    def test_the_wall_clock_is_that_of_the_last_anchor_before(self):
        with blktape.open_trace(self.write(tape_writer.trace_of(
                [[self.record]], [tape_writer.anchor(200, 5_000)], start=(100, 1_000)))) as trace:
            list(trace.batches())
        self.assertEqual([trace.wall_ns(at) for at in (90, 100, 199, 200, 250)], [990, 1_000, 1_099, 5_000, 5_050])

    def test_events_come_in_their_places(self):
        with blktape.open_trace(self.path) as trace:
            kinds = [type(item).__name__ for item in trace.events()]
        self.assertEqual(kinds, ["ClockAnchor", "Loss", "Loss", "Loss", "Mark", "QueuedSizes", "RecordBatch"])

    def test_a_trace_is_read_once(self):
        with blktape.open_trace(self.path) as trace:
            list(trace.batches())
            with self.assertRaisesRegex(ValueError, "is read already"):
                next(trace.batches())

    def test_a_pipe_gives_the_same(self):
        class Pipe(io.RawIOBase):
            def __init__(self, content):
                self.content = content

            def readable(self):
                return True

            def readinto(self, buffer):
                piece, self.content = self.content[:min(7, len(buffer))], self.content[min(7, len(buffer)):]
                buffer[:len(piece)] = piece
                return len(piece)

        content = Path("tests/data/sample.tape").read_bytes()
        for each in (content, content[:-3]):
            with blktape.open_trace(Pipe(each)) as piped:
                self.assertIsNone(piped.summary)
                table = piped.read_all()
            with blktape.open_trace(io.BytesIO(each)) as whole:
                self.assertEqual(table, whole.read_all())
            self.assertEqual(piped.losses, whole.losses)

    def test_a_summary_is_there_before_the_records(self):
        with blktape.open_trace("tests/data/sample.tape") as trace:
            self.assertEqual(trace.summary.records, 11590)
            self.assertEqual(sum(trace.summary.records_by_op.values()), 11590)
            table = trace.read_all()
        self.assertEqual(trace.summary.read_bytes, sum(
            row["bytes"] for row in table.select(["op", "bytes"]).to_pylist() if row["op"] == "read"))

    def test_memory_does_not_grow_with_the_trace(self):
        def peak(records):
            path = str(self.folder / ("%d.tape" % records))
            subprocess.run(["tests/support/make_trace", path, str(records), "3000"], check=True)
            before = pa.total_allocated_bytes()
            tracemalloc.start()
            with blktape.open_trace(path) as trace:
                for _ in trace.batches():
                    self.assertLess(pa.total_allocated_bytes() - before, 64 << 20)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return most

        short, long = peak(200_000), peak(2_000_000)
        self.assertLess(long, short * 1.5)

    def test_what_is_kept_of_marks_is_bounded(self):
        count = reader.MAX_KEPT + 5
        path = self.write(tape_writer.trace_of([[self.record]], [tape_writer.mark(1, i, 1) for i in range(count)]))
        with blktape.open_trace(path) as trace:
            self.assertEqual(sum(isinstance(item, blktape.Mark) for item in trace.events()), count)
            self.assertEqual(len(trace.marks), reader.MAX_KEPT)


class Refusals(Case):
    def test_a_newer_version_is_refused_clearly(self):
        path = self.write(tape_writer.trace_of([], version=3))
        self.check_same(path)
        with self.assertRaisesRegex(blktape.NewerFormatError, "a.tape: format version 3, and .* up to version 2, written by "
                                                              "blktape 9.9"):
            blktape.open_trace(path)

    def test_a_trace_that_needs_what_is_not_known_is_refused_by_name(self):
        path = self.write(tape_writer.trace_of([], version=2, needs=["wide_planes", "x"]))
        self.check_same(path)
        with self.assertRaisesRegex(blktape.NewerFormatError, 'a.tape: needs "wide_planes", which .* blktape 9.9'):
            blktape.open_trace(path)

    def test_a_trace_of_version_2_that_needs_nothing_is_read(self):
        path = self.write(tape_writer.trace_of([[{"device": 0, "op": 0, "flags": 0, "bytes": 512}]], version=2))
        self.assertEqual(self.check_same(path).count("\n"), 2)

    def test_more_devices_than_the_format_allows(self):
        for count in (4096, 4097):
            path = self.write(tape_writer.trace_of([], devices=["d"] * count))
            self.check_same(path)
        with self.assertRaisesRegex(blktape.TraceError, "has 4097 devices, and a trace has at most 4096"):
            blktape.open_trace(path)

    def test_what_is_no_trace_is_refused_as_the_program_refuses_it(self):
        for name, content in (("empty", b""), ("text", b"no trace at all\n" * 100),
                              ("zstd of something", tape_writer.frame(b"something")),
                              ("half a header", tape_writer.frame(tape_writer.header())[:-3]),
                              ("version 0", tape_writer.frame(tape_writer.header(version=0)))):
            with self.subTest(name):
                path = self.write(content)
                self.check_same(path)
                with self.assertRaises(blktape.TraceError):
                    blktape.open_trace(path)

    def test_a_file_that_is_not_there(self):
        with self.assertRaises(FileNotFoundError):
            blktape.open_trace(str(self.folder / "none.tape"))


class Schema(Case):
    def test_it_is_that_of_the_repository(self):
        made = self.folder / "trace.binpb"
        subprocess.run(["protoc", "--descriptor_set_out=%s" % made, "-I", "format", "trace.proto"], check=True)
        from google.protobuf import descriptor_pb2
        described = [descriptor_pb2.FileDescriptorSet.FromString(Path(path).read_bytes())
                     for path in (made, "python/src/blktape/trace.binpb")]
        self.assertEqual(*described, "format/trace.proto has changed; run:  protoc "
                                     "--descriptor_set_out=python/src/blktape/trace.binpb -I format trace.proto")

    def test_every_column_of_a_batch_is_described(self):
        from blktape import schema
        batch = schema.POOL.FindMessageTypeByName("blktape.proto.RecordBatch")
        fields = {field.name for field in batch.fields if field.message_type is not None}
        self.assertEqual(fields, {column.field for column in blktape.COLUMNS})


if __name__ == "__main__":
    cases.main()
