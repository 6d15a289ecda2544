"""Every format that `blktape import` knows, by examples written by hand from its definition.

A folder in data/ holds one: trace.* (or a folder of files), what `dump --csv` must say of it (expected.csv), and, where it is
more than that all rows were taken, what `import --json` must say (said.json; "status" is the exit status). A folder is called
as the format, or that and "-" and what is special. To add a format is to add a folder.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import tarfile
import tempfile
import unittest

from tests.harness import blktape, cases

DATA = "tests/capture/import/data"
# blktrace's own files have tests of their own (tests/capture/blktrace).
ELSEWHERE = {"blktrace"}


def formats():
    listed = blktape.ok("import", "--list-formats").stdout
    return [line.split()[0] for line in listed.splitlines() if not line.startswith(" ")]


def inputs(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name not in ("expected.csv", "said.json")]


def contains(found, expected):
    """Whether every key of `expected` is so in `found`, at every depth."""
    if not isinstance(expected, dict):
        return found == expected
    return isinstance(found, dict) and all(key in found and contains(found[key], value) for key, value in expected.items())


class ImportFormatsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.count = 0

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def imported(self, *words, accept=(0,), **options):
        self.count += 1
        trace = self.path("%d.tape" % self.count)
        said = json.loads(blktape.ok("import", *words, "-o", trace, "--json", accept=accept, **options).stdout)
        return trace, said

    def test_every_format_has_an_example(self):
        names = sorted(os.listdir(DATA))
        for name in set(formats()) - ELSEWHERE:
            self.assertIn(name, names)

    def test_every_example_is_recognised_and_read_as_defined(self):
        titles = {}
        for line in blktape.ok("import", "--list-formats").stdout.splitlines():
            if not line.startswith(" "):
                titles[line.split()[0]] = line.partition(" ")[2].strip()
        for name in sorted(os.listdir(DATA)):
            with self.subTest(name):
                folder = os.path.join(DATA, name)
                expected = {}
                if os.path.exists(os.path.join(folder, "said.json")):
                    with open(os.path.join(folder, "said.json"), encoding="utf-8") as file:
                        expected = json.load(file)
                status = expected.pop("status", 0)
                trace, said = self.imported(*inputs(folder), accept=(status,))
                with open(os.path.join(folder, "expected.csv"), encoding="utf-8") as file:
                    self.assertEqual(blktape.ok("dump", "--csv", trace, accept=(status,)).stdout, file.read())
                self.assertTrue(contains(said, expected), "%s\nlacks %s" % (json.dumps(said, indent=1), expected))
                of = max((known for known in titles if name == known or name.startswith(known + "-")), key=len)
                self.assertEqual(said["format"], titles[of])
                if status == 0:
                    self.assertEqual((said["losses"], said["rows"]["dropped"]), ([], []))

    def test_a_cut_in_any_place_ends_in_an_error_or_a_trace_never_in_a_crash(self):
        for name in ("msr", "wpa", "vscsi", "blkparse", "fio-iolog", "xperf"):
            path, = inputs(os.path.join(DATA, name))
            with open(path, "rb") as file:
                whole = file.read()
            for length in range(1, len(whole), max(1, len(whole) // 12)):
                with self.subTest(name, length=length):
                    done = blktape.run("import", self.path("cut", whole[:length]), "--format",
                                       name, "-o", self.path("%s.%d.tape" % (name, length)))
                    self.assertIn(done.returncode, (0, 1, 3), done.stderr)
                    if done.returncode == 1:
                        self.assertIn("error: ", done.stderr)

    def test_compressed_in_every_way_and_by_a_pipe(self):
        path, = inputs(os.path.join(DATA, "msr"))
        with open(path, "rb") as file:
            plain = file.read()
        with open(os.path.join(DATA, "msr", "expected.csv"), encoding="utf-8") as file:
            expected = file.read()
        zstd = subprocess.run(["zstd", "-qc"], input=plain, stdout=subprocess.PIPE, check=True).stdout
        for kind, content in (("gz", gzip.compress(plain)), ("bz2", bz2.compress(plain)), ("xz", lzma.compress(plain)),
                              ("zst", zstd), ("two.bz2", bz2.compress(plain[:90]) + bz2.compress(plain[90:])),
                              ("two.xz", lzma.compress(plain[:90]) + lzma.compress(plain[90:]))):
            with self.subTest(kind):
                trace, _ = self.imported(self.path("rows." + kind, content))
                self.assertEqual(blktape.ok("dump", "--csv", trace).stdout, expected)
                piped = self.path(kind + ".piped.tape")
                subprocess.run([blktape.PROGRAM, "import", "-", "-o", piped], input=content, check=True, capture_output=True)
                self.assertEqual(blktape.ok("dump", "--csv", piped).stdout, expected)

    def test_a_damaged_compressed_file_gives_what_is_before_the_damage(self):
        rows = b"".join(b"%d,R,%d,4096,%d\n" % (i % 3, 4096 * (i * 7919 % 100_000), 1_577_808_144_360_767 + i * 977)
                        for i in range(50_000))
        for compress in (gzip.compress, bz2.compress, lzma.compress):
            with self.subTest(compress.__module__):
                content = compress(rows)
                trace, said = self.imported(self.path("cut.csv", content[:len(content) * 2 // 3]), accept=(3,))
                self.assertEqual([loss["reason"] for loss in said["losses"]][0], "damaged input")
                self.assertTrue(10_000 < said["ios"] < 50_000, said["ios"])

    def test_an_archive_is_read_as_the_files_in_it(self):
        folder = os.path.join(DATA, "octf")
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:xz", dereference=True) as tar:
            tar.add(os.path.join(folder, "queues"), "2026/a name of more than a hundred characters " + "x" * 120)
        trace, said = self.imported(self.path("iotrace.tar.xz", archive.getvalue()), accept=(3,))
        with open(os.path.join(folder, "expected.csv"), encoding="utf-8") as file:
            self.assertEqual(blktape.ok("dump", "--csv", trace, accept=(3,)).stdout, file.read())
        self.assertEqual([loss["reason"] for loss in said["losses"]], ["issue without completion"])

    def test_columns_describe_any_table(self):
        table = self.path("t.txt", "\n".join([
            "# a remark", "when|what|where|how much|who|nr", "0,5|write|2|8|a b|3", "1,25|R|10|16|c|4", ""]).encode())
        trace, said = self.imported(table, "--columns", "time:ms,op,offset:4096,size:sectors,process,pid;separator=bar;decimal=comma;device=sdx")
        self.assertEqual(blktape.dump(trace), [
            dict(zip(blktape.COLUMNS, ("", "500000", "", "sdx", "write", "", "16", "4096", "", "3", "a b", ""))),
            dict(zip(blktape.COLUMNS, ("", "1250000", "", "sdx", "read", "", "80", "8192", "", "4", "c", "")))])
        self.assertEqual(said["rows"]["taken"], 2)

    def test_columns_that_make_no_sense_are_a_mistake_of_the_command_line(self):
        table = self.path("t.csv", b"1,R,0,512\n")
        for columns, why in (("time,op,offset", "size"), ("time:weeks,op,offset,size", "weeks"), ("when,op,offset,size", "when"),
                             ("op,op,offset,size", "twice"), ("op:2,offset,size", "op"), ("op,offset,size;sep=,", "sep")):
            with self.subTest(columns):
                done = blktape.run("import", table, "--columns", columns, "-o", self.path("x.tape"))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(why, done.stderr)
        done = blktape.run("import", table, "--format", "excel", "-o", self.path("x.tape"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("fio-iolog", done.stderr)

    def test_dropped_rows_are_counted_with_their_lines_and_make_it_three(self):
        rows = b"419,W,0,4096,1577808144360767\n419,X,0,4096,1577808144360768\n419,W,0\n419,R,512,4096,1577808144360769\n"
        trace, said = self.imported(self.path("a.csv", rows), "--format", "alibaba", accept=(3,))
        self.assertEqual(said["rows"]["dropped"], [
            {"what": "an operation of no known name", "count": 1, "first": ["line 2"]},
            {"what": "too few columns", "count": 1, "first": ["line 3"]}])
        self.assertEqual(len(blktape.dump(trace, accept=(3,))), 2)
        info = json.loads(blktape.ok("info", "--json", trace, accept=(3,)).stdout)
        self.assertEqual(info["losses"], [{"reason": "UNDECODABLE_EVENT", "count": 2, "unknowable": 0}])
        text = blktape.run("import", self.path("a.csv"), "--format", "alibaba", "-o", self.path("b.tape")).stdout
        self.assertIn("dropped   1: too few columns (line 3)", text)

    def test_a_csv_that_does_not_say_what_an_io_was_is_refused(self):
        header, row = b"queue_ns,issue_ns,complete_ns,device,op,flags,lba,bytes", b"100,200,300,sda,write,,8,4096"
        self.imported(self.path("whole.csv", header + b"\n" + row + b"\n"))
        for column in ("op", "lba", "bytes"):
            with self.subTest(column):
                table = self.path(column + ".csv", header.replace(column.encode(), b"other") + b"\n" + row + b"\n")
                done = blktape.run("import", table, "--format", "csv", "-o", self.path("x.tape"))
                self.assertEqual(done.returncode, 1)
                self.assertIn('names no column "%s"' % column, done.stderr)
        table = self.path("backlog.csv", header + b",backlog_ns\n" + row + b",-1\n" + row + b",1\n")
        _, said = self.imported(table, accept=(3,))
        self.assertEqual(said["rows"]["dropped"], [{"what": "a column that is no number", "count": 1, "first": ["line 2"]}])

    def test_a_csv_that_a_spreadsheet_saved_is_known_by_its_columns(self):
        table = self.path("saved.csv", b"\xef\xbb\xbfop,lba,bytes,device,queue_ns,mine\r\nwrite,8,4096,sda,100,7\r\n")
        trace, said = self.imported(table)
        self.assertEqual(said["rows"]["dropped"], [])
        self.assertEqual([(row["op"], row["lba"], row["bytes"], row["queue_ns"]) for row in blktape.dump(trace)],
                         [("write", "8", "4096", "100")])

    def test_rows_out_of_order_are_sorted_within_the_bound_and_refused_beyond_it(self):
        def row(i):
            return b"1,R,%d,512,%d\n" % (512 * i, 1_577_808_144_000_000 + i)
        # Pairs exchanged: 100 of 200.
        swapped = b"".join(row(i ^ 1) for i in range(200))
        trace, said = self.imported(self.path("swapped.csv", swapped))
        self.assertEqual(said["rows"]["sorted"], 100)
        lbas = [int(io_row["lba"]) for io_row in blktape.dump(trace)]
        self.assertEqual(lbas, list(range(200)))
        # The first of all comes last of 140,000.
        late = b"".join(row(i) for i in range(1, 140_000)) + row(0)
        done = blktape.run("import", self.path("late.csv", late), "-o", self.path("late.tape"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 140000: earlier than rows more than 131,072 rows before it", done.stderr)
        self.assertFalse(os.path.exists(self.path("late.tape.partial")))

    def test_several_files_are_one_trace_in_order(self):
        one = self.path("one.csv", b"".join(b"1,R,%d,512,%d\n" % (512 * i, 1_577_808_144_000_000 + 2 * i) for i in range(3000)))
        two = self.path("two.csv", b"".join(b"2,R,%d,512,%d\n" % (512 * i, 1_577_808_144_000_001 + 2 * i) for i in range(3000)))
        trace, said = self.imported(two, one)
        self.assertEqual((said["devices"], said["rows"]["sorted"]), (["volume2", "volume1"], 0))
        times = [int(row["issue_ns"]) for row in blktape.dump(trace)]
        self.assertEqual(times, sorted(times))
        self.assertEqual(len(times), 6000)

    def test_what_two_formats_may_be_is_refused_until_one_is_named(self):
        # Nothing but header lines that say no more than the delimiter.
        done = blktape.run("import", self.path("words.txt", b"neither this\nnor that\n"), "-o", self.path("x.tape"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("--columns", done.stderr)

    def test_a_wall_clock_of_the_epoch_is_kept(self):
        path, = inputs(os.path.join(DATA, "systor17"))
        trace, _ = self.imported(path, accept=(3,))
        info = json.loads(blktape.ok("info", "--json", trace, accept=(3,)).stdout)
        self.assertEqual(info["start_wall_ns"], 1_456_066_800_011_613_000)

    def test_memory_is_bounded(self):
        """A million rows, by a pipe, in less than 160 MiB of address space beyond the program's own."""
        script = ("import sys\nfor i in range(1_000_000): sys.stdout.write('%d,R,%d,4096,%d\\n' % "
                  "(i % 7, 4096 * (i * 7919 % 1000003), 1577808144360767 + i * 13))\n")
        done = subprocess.run("/usr/bin/python3 -c \"$SCRIPT\" | (ulimit -v 400000; exec %s import - -o %s)" % (
            blktape.PROGRAM, self.path("m.tape")), shell=True, env={**os.environ, "SCRIPT": script}, capture_output=True,
            text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("I/Os      1,000,000", done.stdout)


if __name__ == "__main__":
    cases.main()
