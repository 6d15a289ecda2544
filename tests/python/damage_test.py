"""What is left of a damaged trace, and what is said to be missing, is the same by the Python package and the program."""

from tests.harness import pypi

pypi.enter()

import os
import random
import subprocess
import tempfile
import unittest
from io import BytesIO
from pathlib import Path

import blktape
from blktape import reader
from tests.harness import blktape as tool
from tests.harness import cases
from tests.python import program, tape_writer


def io(queue_ns, **more):
    return {"device": 0, "op": 1, "flags": 0, "bytes": 4096, "lba": queue_ns * 8, "queue": queue_ns, **more}


IDS = [bytes(range(16)), bytes(range(100, 116))]


def frames_with_identity(trace_id=IDS[0], **header_fields):
    """Likewise, of a trace that has an id; the frames 2 and 4 and that of the summary have a copy of the header."""
    trace = int.from_bytes(trace_id[:8], "little")
    header = {"trace_id": trace_id, **header_fields}
    copy = tape_writer.header(kind=tape_writer.HEADER_COPY, **header)

    frames = [tape_writer.frame(tape_writer.header(**header))]
    for number in range(1, 6):
        frames.append(tape_writer.frame(
            tape_writer.frame_start(number, 20 * number - 20, trace) + (copy if number in (2, 4) else b"") +
            tape_writer.batch([io(100 * number + i) for i in range(20)])))
    return frames + [tape_writer.frame(tape_writer.frame_start(6, 100, trace) + tape_writer.summary(100) + copy)]


def small_frames():
    """Five frames of 20 records between those of header and summary; two of them hold losses."""
    before = [tape_writer.loss(1, 5), tape_writer.process_names(["dd", "cp"])]
    frames = tape_writer.frames_of([[io(100 * batch + i, process=i % 2) for i in range(20)] for batch in range(5)], before)
    frames[-1] = tape_writer.frame(tape_writer.frame_start(6, 100) + tape_writer.summary(
        100, names=["dd", "cp"], losses=[(1, 5)], first_ns=0, last_ns=419))
    return frames


class DamageTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.frames = small_frames()
        self.trace = tape_writer.finish(self.frames)

    def write(self, content):
        path = self.folder / ("%d.tape" % len(os.listdir(self.folder)))
        path.write_bytes(content)
        return str(path)

    def check_same(self, *contents):
        """Both tell the same of each: exit status, rows, warnings or error."""
        def one(content):
            path = self.write(content)
            done = subprocess.run([tool.PROGRAM, "dump", "--csv", path], capture_output=True, check=False)
            # What the protobuf library says of text that is none comes on top.
            said = "".join(line for line in done.stderr.decode().splitlines(True) if not line.startswith("[libprotobuf"))
            return path, (done.returncode, done.stdout.decode(), said)

        for content in contents:
            path, said = one(content)
            self.assertEqual(program.dump(path), said, path)
        return said

    def losses(self, content):
        with blktape.open_trace(self.write(content)) as trace:
            rows = sum(batch.num_rows for batch in trace.batches())
        return rows, trace

    def test_a_damaged_frame_is_skipped_and_reported_with_its_bytes(self):
        begin = sum(map(len, self.frames[:3]))
        end = begin + len(self.frames[3])
        damaged = bytearray(self.trace)
        damaged[end - 1] ^= 1  # its checksum
        rows, trace = self.losses(bytes(damaged))
        self.assertEqual(rows, 80)
        [loss] = [loss for loss in trace.losses if loss.reason_name != "RING_OVERRUN"]
        self.assertEqual((loss.reason_name, loss.count, loss.from_bytes, loss.to_bytes),
                         ("DAMAGED_INPUT", 20, begin, end))
        self.assertEqual(loss.from_ns, 119)  # arrival of the last record before
        self.assertEqual(trace.lost_events, 5 + 20)
        self.assertEqual(trace.records, 100)
        self.check_same(bytes(damaged))

    def test_a_loss_in_a_damaged_frame_is_known_from_the_summary(self):
        damaged = bytearray(self.trace)
        damaged[len(self.frames[0]) + len(self.frames[1]) - 1] ^= 1
        rows, trace = self.losses(bytes(damaged))
        self.assertEqual(rows, 80)
        self.assertEqual(trace.loss_totals, {"RING_OVERRUN": blktape.LossTotal(5, 0),
                                             "DAMAGED_INPUT": blktape.LossTotal(20, 0)})
        self.check_same(bytes(damaged))

    def test_a_bit_changed_anywhere(self):
        chosen = random.Random(3)
        changed = []
        for at in range(0, len(self.trace), 5):
            content = bytearray(self.trace)
            content[at] ^= 1 << chosen.randrange(8)
            changed.append(bytes(content))
        self.check_same(*changed)

    def test_cut_anywhere(self):
        self.check_same(*(self.trace[:size] for size in range(0, len(self.trace), 7)))

    def test_frames_missing_repeated_exchanged_and_of_another_trace(self):
        frames = self.frames
        other = tape_writer.frame(tape_writer.header(host="another"))
        nothing = tape_writer.frame(b"")
        for name, arranged in {
                "missing": frames[:2] + frames[4:], "missing two ranges": frames[:2] + frames[3:4] + frames[5:],
                "repeated": frames[:3] + frames[2:], "exchanged": frames[:2] + [frames[3], frames[2]] + frames[4:],
                "another header": frames[:3] + [other] + frames[3:], "of no trace": frames[:3] + [nothing] + frames[3:],
                "after the summary": frames + frames[2:3], "no summary": frames[:-1], "only the header": frames[:1],
                "summary alone": [frames[0], frames[-1]], "no header": frames[1:]}.items():
            with self.subTest(name):
                self.check_same(tape_writer.finish(arranged), b"".join(arranged))
        self.assertEqual(self.losses(tape_writer.finish(frames[:2] + frames[4:]))[1].loss_totals["DAMAGED_INPUT"].count, 40)

    def test_what_lies_between_frames(self):
        skippable = b"\x52\x2a\x4d\x18\x05\x00\x00\x00hello"
        for name, between in {"another's skippable frame": skippable, "rubbish": b"rubbish" * 50,
                              "a magic number": b"\x28\xb5\x2f\xfd", "half a frame": self.frames[2][:40],
                              "a seek table": tape_writer.seek_table(self.frames[:2]), "zeroes": bytes(4096),
                              "an endless skippable frame": b"\x52\x2a\x4d\x18\xff\xff\xff\xffabc",
                              "a table that is too large": b"\x5e\x2a\x4d\x18\xff\xff\xff\xffabc"}.items():
            with self.subTest(name):
                self.check_same(b"".join(self.frames[:2]) + between + tape_writer.finish(self.frames)[
                    sum(map(len, self.frames[:2])):])

    def test_frames_that_the_format_does_not_allow(self):
        import zstandard
        inside = tape_writer.frame_start(3, 40) + tape_writer.batch([io(1)])
        for name, options in {"no checksum": {"write_checksum": False, "write_content_size": True},
                              "no size": {"write_checksum": True, "write_content_size": False}}.items():
            with self.subTest(name):
                frame = zstandard.ZstdCompressor(**options).compress(inside) if "size" not in name else \
                    b"".join((z := zstandard.ZstdCompressor(**options).compressobj(), z.compress(inside) + z.flush())[1:])
                self.check_same(tape_writer.finish(self.frames[:3]) + frame + self.frames[4])

    def test_batches_that_contradict_themselves(self):
        column, data, number = tape_writer.column, tape_writer.data, tape_writer.number
        two = {"device": [0, 0], "op": [1, 1], "flags": [0, 0], "bytes": [1, 2]}

        def batch(count=2, raw=b"", **changes):
            columns = {**two, **changes}
            content = number(1, count) + b"".join(
                data(tape_writer.FIELD_NUMBERS[name], values if isinstance(values, bytes) else column(values))
                for name, values in columns.items() if values is not None)
            return tape_writer.message(tape_writer.BATCH, content + raw)

        wrong = {
            "no device": batch(device=None), "a device for some": batch(device=[0, None]), "no bytes": batch(bytes=None),
            "an op of a newer version": batch(op=[1, 12]), "a device of no header": batch(device=[0, 7]),
            "too many records": batch(count=262_145), "fewer values than records": batch(count=3),
            "more values than records": batch(count=1), "a plane too many": batch(op=number(1, 3) + data(3, b"\1\1\1\1")),
            "planes without a mask": batch(pid=data(3, b"\1\1")), "a bitmap too long": batch(pid=data(2, b"\1\0")),
            "a bit beyond the count": batch(pid=data(2, b"\4") + number(1, 1) + data(3, b"\1")),
            "bits without values": batch(pid=data(2, b"\3") + number(1, 1) + data(3, b"\1")),
            "a mask beyond 32 bits": batch(pid=number(1, 1 << 31)), "no records": batch(count=0),
            "no records and no columns": tape_writer.message(tape_writer.BATCH, b""),
            "a bitmap of all": batch(pid=data(2, b"\3") + number(1, 1) + data(3, b"\1\2")),
            "a bitmap of none": batch(pid=data(2, b"\0")),
            "an unknown column": batch(raw=data(99, column([1, 2]))),
        }
        for name, message in wrong.items():
            with self.subTest(name):
                frames = list(self.frames)
                frames[3] = tape_writer.frame(tape_writer.frame_start(3, 40) + tape_writer.batch([io(7)]) + message +
                                              tape_writer.batch([io(8)]))
                self.check_same(tape_writer.finish(frames))

    def test_records_of_an_op_of_a_newer_version(self):
        # Between reads of 8 sectors, each where the one before ended; the arrival of the last counts from theirs.
        def record(op, queue_ns, lba, device=0):
            return {"device": device, "op": op, "flags": 0, "bytes": 4096, "lba": lba, "queue": queue_ns}

        records = [record(0, 10, 0), record(12, 11, 900), record(0, 12, 8), record(0, 13, 700, 1), record(255, 14, 5),
                   record(12, 15, 908), record(0, 16, 16), record(0, 17, 708, 1)]
        frames = tape_writer.frames_of([records, [record(200, 20, 3)], [record(1, 30, 4)]], devices=["sda", "sdb"])
        content = tape_writer.finish(frames)
        rows, trace = self.losses(content)
        self.assertEqual(rows, 6)
        self.assertEqual((trace.records, trace.received, trace.lost_events), (10, 6, 4))
        self.assertEqual([(loss.reason_name, loss.count, loss.from_ns) for loss in trace.losses],
                         [("UNDECODABLE_EVENT", 3, None), ("UNDECODABLE_EVENT", 1, 17)])
        table = blktape.read_table(self.write(content), ["lba", "queue_ns"])
        self.assertEqual(table.to_pydict(), {"lba": [0, 8, 700, 16, 708, 4], "queue_ns": [10, 12, 13, 16, 17, 30]})
        self.assertEqual(self.check_same(content)[0], 3)

    def test_frames_know_their_trace(self):
        ours, other, old = frames_with_identity(), frames_with_identity(IDS[1]), small_frames()
        for name, frames in {"another's that would fit": ours[:3] + other[3:4] + ours[4:],
                             "the rest is another's": ours[:3] + other[3:],
                             "the summary is another's": ours[:-1] + other[-1:],
                             "one without identity": ours[:3] + old[3:4] + ours[4:],
                             "one with, in a trace without": old[:3] + ours[3:4] + old[4:],
                             "an id that is too short": frames_with_identity(IDS[0][:15])}.items():
            with self.subTest(name):
                self.check_same(tape_writer.finish(frames), b"".join(frames))
        rows, trace = self.losses(tape_writer.finish(ours))
        self.assertEqual((rows, trace.header.trace_id, trace.losses), (100, IDS[0], []))
        rows, trace = self.losses(tape_writer.finish(ours[:3] + other[3:4] + ours[4:]))
        self.assertEqual((rows, [(loss.count, loss.detail) for loss in trace.losses]), (80, [(20, "a frame of another trace")]))
        rows, trace = self.losses(tape_writer.finish(ours[:-1] + other[-1:]))
        self.assertEqual((rows, trace.summary), (100, None))

    def test_a_copy_stands_in_for_a_header_that_is_damaged_or_missing(self):
        frames = frames_with_identity(host="web1")
        bad = frames[0][:-1] + bytes([frames[0][-1] ^ 1])
        at = len(bad) + len(frames[1])
        for name, begin, lost in (("damaged", [bad], 0), ("missing", [], 0), ("and the first records", [bad, bad], 20),
                                  ("replaced by rubbish", [b"rubbish" * 20], 0)):
            with self.subTest(name):
                content = b"".join(begin) + tape_writer.finish(frames)[sum(map(len, frames[:2 if lost else 1])):]
                rows, trace = self.losses(content)
                self.assertEqual((rows, trace.header.host, trace.header.trace_id), (100 - lost, "web1", IDS[0]))
                self.assertEqual(trace.lost_events, lost)
                self.check_same(content, content[:-3])
        _, trace = self.losses(tape_writer.finish([bad] + frames[1:]))
        self.assertEqual([loss.detail for loss in trace.losses], [
            "a frame whose checksum does not hold: the header, read from its copy in the frame at byte %d" % at])
        # Only that of the summary is left, and none.
        for name, rest in {"of the summary": frames[3:4] + frames[5:], "of no frame": frames[3:4] + frames[5:6],
                           "of another trace": frames[3:4] + [tape_writer.frame(
                               tape_writer.frame_start(4, 60, 7) + tape_writer.header(
                                   kind=tape_writer.HEADER_COPY, trace_id=IDS[0]))],
                           "of version 0": [tape_writer.frame(tape_writer.frame_start(4, 60) + tape_writer.header(
                               kind=tape_writer.HEADER_COPY, version=0))]}.items():
            with self.subTest(name):
                self.check_same(tape_writer.finish([bad] + rest), tape_writer.finish(rest))

    def test_a_copy_that_needs_more_is_refused_by_name(self):
        self.assertEqual(self.check_same(tape_writer.finish(frames_with_identity(version=2, needs=["x"])[1:]))[0], 1)

    def test_a_pipe_cannot_go_back_for_a_copy(self):
        class Pipe(BytesIO):
            def seekable(self):
                return False

        content = tape_writer.finish(frames_with_identity()[1:])
        self.assertEqual(self.losses(content)[0], 100)
        with self.assertRaisesRegex(blktape.TraceError, "is no blktape trace"):
            blktape.open_trace(Pipe(content))

    def test_a_bit_changed_anywhere_in_a_trace_with_identity(self):
        chosen = random.Random(5)
        whole = tape_writer.finish(frames_with_identity())
        changed = []
        for at in range(0, len(whole), 9):
            content = bytearray(whole)
            content[at] ^= 1 << chosen.randrange(8)
            changed.append(bytes(content))
        self.check_same(*changed)

    def test_messages_that_are_none_or_out_of_place(self):
        start = tape_writer.frame_start(3, 40)
        for name, inside in {
                "cut": tape_writer.batch([io(1)])[:-1], "a length beyond the end": b"\xff\xff\x03abc",
                "an endless length": b"\xff" * 12, "no message": b"\x03abc", "a second header": tape_writer.header(),
                "a copy of the header": tape_writer.header(kind=tape_writer.HEADER_COPY),
                "a second start": start, "an unknown kind": tape_writer.message(77, b"abc"), "an empty one": b"\0",
                "a loss of an unknown reason": tape_writer.loss(300, 2), "a loss without a reason": tape_writer.loss(0, 2),
                "a loss of a negative reason": tape_writer.loss(-5, 2), "a loss of reason 200": tape_writer.loss(200, 2),
                "a loss of no device": tape_writer.loss(1, 2, device=9),
                "a large message that is no batch": tape_writer.message(tape_writer.MARK, bytes(
                    tape_writer.data(4, "x" * (9 << 20)))),
                "a name that is no text": tape_writer.process_names([b"\xff\xfe"]),
                "a long name": tape_writer.process_names(["ä" * 100, "b" * 64, "c" * 65]),
                "a name beyond the last": tape_writer.process_names(["x", "y"], 65535)}.items():
            with self.subTest(name):
                frames = list(self.frames)
                frames[3] = tape_writer.frame(start + inside + tape_writer.batch([io(i, process=i % 3) for i in range(20)]))
                self.check_same(tape_writer.finish(frames))

    def test_a_frame_of_more_than_the_format_allows(self):
        start = tape_writer.frame_start(3, 40)
        # Columns of which every value is 0, and so no plane is there.
        half = tape_writer.message(tape_writer.BATCH, tape_writer.number(1, 131_073) + b"".join(
            tape_writer.data(field, b"") for field in range(2, 6)))
        allowed = tape_writer.message(tape_writer.PROCESS_NAMES, tape_writer.data(2, b"") * 60_000)
        too_many = tape_writer.message(tape_writer.PROCESS_NAMES, tape_writer.data(2, b"") * 263_000)
        strange = tape_writer.message(tape_writer.MARK, b"\x23" * 70_000)  # groups, of which there are none
        for name, inside in {"records": half * 2, "names": too_many,
                             "names that are allowed": allowed, "groups": strange}.items():
            with self.subTest(name):
                frames = list(self.frames)
                frames[3] = tape_writer.frame(start + inside + tape_writer.batch([io(9)]))
                self.check_same(tape_writer.finish(frames))

    def test_a_frame_of_more_messages_than_the_format_allows(self):
        # Fewer here than the million of the format, for time.
        allowed, reader.MAX_FRAME_MESSAGES = reader.MAX_FRAME_MESSAGES, 5
        self.addCleanup(setattr, reader, "MAX_FRAME_MESSAGES", allowed)
        marks = tape_writer.message(tape_writer.MARK, b"") * 6
        frames = list(self.frames)
        frames[3] = tape_writer.frame(tape_writer.frame_start(3, 40) + marks + tape_writer.batch([io(9)]))
        rows, trace = self.losses(tape_writer.finish(frames))
        self.assertEqual((rows, len(trace.marks)), (80, 5))
        self.assertEqual(trace.losses[-1].detail, "a frame of more messages than the format allows")
        self.assertEqual(trace.losses[-1].count, 20)

    def test_frames_whose_headers_promise_what_they_do_not_hold(self):
        content = self.trace[:len(self.frames[0])]
        for name, blocks in {"more plain bytes than content": b"\x40\x01\x00" + bytes(40),
                             "a run beyond the content": b"\x02\xff\x0f\x00", "a block of a kind that is none": b"\x07\0\0",
                             "an endless row of blocks": b"\0\0\0" * 3000}.items():
            with self.subTest(name):
                frame = b"\x28\xb5\x2f\xfd\x24\x0a" + blocks + b"\x01\0\0abcd"
                self.check_same(content + frame + self.trace[len(content):])

    def test_text_of_a_trace_is_never_a_command_of_the_terminal(self):
        bad = self.frames[3][:-1] + b"?"
        stored = tape_writer.loss(10, 3, from_bytes=1, to_bytes=2)
        frames = list(self.frames)
        frames[3] = tape_writer.frame(tape_writer.frame_start(3, 40) + tape_writer.message(
            tape_writer.LOSS, tape_writer.number(1, 10) + tape_writer.number(2, 3) + tape_writer.number(7, 1) +
            tape_writer.data(9, "\x1b[31mred\u0085\u202e\x7f " + "ä" * 2000)) + stored +
            tape_writer.batch([io(i) for i in range(20)]))
        self.check_same(tape_writer.finish(frames), self.trace.replace(self.frames[3], bad))

    def test_summaries_that_cannot_be_of_this_trace(self):
        number, data = tape_writer.number, tape_writer.data

        def extent(device, records, begin=0, end=4096):
            return data(17, number(1, device) + number(2, records) + number(3, begin) + number(4, end))

        def index(offset, first):
            return data(13, number(1, offset) + number(3, first))

        for name, content in {
                "an extent of no device": number(1, 100) + extent(3, 100), "two of one": number(1, 100) + extent(0, 50) * 2,
                "too many records": number(1, 100) + extent(0, 101), "too few": number(1, 100) + extent(0, 99),
                "backwards": number(1, 100) + extent(0, 100, 8192, 4096), "right": number(1, 100) + extent(0, 100),
                "an index beyond the end": number(1, 100) + index(1 << 40, 5),
                "an index beyond the records": number(1, 100) + index(5, 101),
                "an index out of order": number(1, 100) + index(9, 5) + index(7, 6),
                "ops of too many": number(1, 100) + data(6, number(1, 1) + number(2, 101)),
                "completions of too many": number(1, 100) + number(18, 101),
                "last before first": number(1, 100) + number(2, 9) + number(3, 8),
                "a negative disorder": number(1, 100) + number(19, -1),
                "too many names": number(1, 100) + data(16, "x") * 65_537}.items():
            with self.subTest(name):
                frames = self.frames[:-1] + [tape_writer.frame(
                    tape_writer.frame_start(6, 100) + tape_writer.message(tape_writer.SUMMARY, content))]
                self.check_same(tape_writer.finish(frames), tape_writer.finish(frames)[:-5])

    def test_a_recording_that_was_not_finished(self):
        content = Path("tests/data/sample.tape").read_bytes()
        status, _, warned = self.check_same(content[:len(content) // 2])
        self.assertEqual(status, 3)
        self.assertIn("truncated input: an unknown number of events", warned)
        # Without its seek table alone no record is missing.
        status, _, warned = self.check_same(content[:-1])
        self.assertEqual(status, 0)
        self.assertIn("truncated input: 0 events", warned)

    def test_many_damages_of_a_recording(self):
        chosen = random.Random(4)
        content = Path("tests/data/sample.tape").read_bytes()
        damaged = []
        for _ in range(12):
            each = bytearray(content)
            for _ in range(chosen.choice([1, 3, 30])):
                at = chosen.randrange(len(each))
                kind = chosen.randrange(3)
                if kind == 0:
                    each[at] ^= 1 << chosen.randrange(8)
                elif kind == 1:
                    del each[at:at + chosen.randrange(1, 2000)]
                else:
                    each[at:at] = chosen.randbytes(chosen.randrange(1, 200))
            damaged.append(bytes(each))
        self.check_same(*damaged)


if __name__ == "__main__":
    cases.main()
