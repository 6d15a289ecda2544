"""cut, merge, diff, anonymize and pack, each against what its help promises."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tests.harness import blktape, cases

MAKE_TRACE = "tests/support/make_trace"
MAKE_FORMAT_TRACE = "tests/format/make_format_trace"
DATA = "tests/capture/data"
HEADER = ",".join(blktape.COLUMNS) + "\n"


class TraceToolsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self, name, rows):
        with open(self.path(name + ".csv"), "w", encoding="utf-8") as file:
            file.write(HEADER + "".join(rows))
        blktape.ok("import", self.path(name + ".csv"), "-o", self.path(name))
        return self.path(name)

    def desktop(self, count=20_000, name="day.tape"):
        subprocess.run([MAKE_TRACE, self.path(name), str(count), "600", "kind=desktop"], check=True)
        return self.path(name)

    def recording(self, disk="nvme0n1"):
        trace = self.path(disk + ".tape")
        blktape.ok("import", "%s/%s.blktrace.0.zst" % (DATA, disk), "%s/%s.blktrace.1.zst" % (DATA, disk), "-o", trace)
        return trace

    def cut(self, trace, *words, accept=(0,)):
        out = self.path("cut.tape")
        if os.path.exists(out):
            os.remove(out)
        blktape.ok("cut", trace, *words, "-o", out, accept=accept)
        return blktape.dump(out, accept=accept)

    def test_analyze_looks_at_what_it_is_told_to(self):
        """A filter of analyze and one of cut are the same: what is left of the trace says so."""
        for trace in (self.recording(), self.desktop(30_000)):
            device = blktape.as_json("info", trace)["header"]["devices"][0]["name"]
            process = blktape.as_json("analyze", trace)["processes"][0]["name"]
            for words in (("--op", "write,flush"), ("--size", "8k-64k"), ("--lba", "0-4095", "--lba", "8388608-"),
                          ("--device", device, "--op", "read"), ("--process", process),
                          ("--process", process, "--size", "4k", "--from", "2s", "--to", "20s")):
                here = blktape.as_json("analyze", trace, *words)
                out = self.path("cut.tape")
                if os.path.exists(out):
                    os.remove(out)
                blktape.ok("cut", trace, *words, "-o", out)
                there = blktape.as_json("analyze", out)
                self.assertGreater(here["ios"], 0, words)
                self.assertEqual(len(here["filters"]), sum(word in ("--op", "--size", "--lba", "--device", "--process")
                                                           for word in words) + ("write,flush" in words), words)
                for figures in (here, there):  # rows that tie may stand in any order
                    figures["processes"].sort(key=lambda row: row["name"])
                # Not what is of the file, and what nobody can tell of a part.
                for key in here.keys() & there.keys():
                    if key not in ("filters", "window", "queued", "flushes_asked", "recorded_ns", "losses", "devices",
                                   "lost_events", "activity", "events"):
                        self.assertEqual(here[key], there[key], (words, key))

    def test_analyze_of_a_window_seeks(self):
        """Frames that lie outside the window are not read: damage there is not met, and all figures are the same."""
        trace = self.desktop(400_000)
        whole = blktape.as_json("analyze", trace, "--from", "200s", "--to", "240s")
        with open(trace, "r+b") as file:
            for place in (os.path.getsize(trace) // 5, os.path.getsize(trace) * 4 // 5):
                file.seek(place)
                file.write(b"damage" * 20)
        blktape.ok("analyze", "--json", trace, accept=(3,))
        self.assertEqual(blktape.as_json("analyze", trace, "--from", "200s", "--to", "240s"), whole)

    def test_filters_read_only_frames_that_may_hold_what_they_keep(self):
        """Two busy times of others lie around that of "late": all figures and records are those that a reader of
        everything finds (a pipe cannot be sought in), and damage in frames of the others is not met."""
        chance = random.Random(1)  # times that no compressor foretells: all parts take as much of the file

        def row(at, process, op, lba, size):
            at += chance.randrange(90_000)
            return "%d,%d,%d,sda,%s,,%s,%d,0,%d,%s,0\n" % (at, at + 10, at + chance.randrange(500, 70_000), op, lba,
                                                           size, 7, process)
        parts = (("early", "read", 1_000, 4096), ("late", "write", 10_000_000, 65536), ("early", "flush", "", 0))
        rows = [row(100_000 * (40_000 * part + i), process, op, lba and lba + 8 * i, size)
                for part, (process, op, lba, size) in enumerate(parts) for i in range(40_000)]
        trace = self.trace("phases.tape", rows)

        def of_pipe(*words):
            with open(trace, "rb") as file:
                done = subprocess.run([blktape.PROGRAM, *words], input=file.read(), capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        filters = (("--process", "late"), ("--process", "nobody"), ("--op", "write"), ("--size", "64k"),
                   ("--op", "write", "--lba", "10000000-10001000"), ("--process", "late", "--from", "1s", "--to", "5s"))
        figures = {}
        for words in filters:
            with self.subTest(words):
                figures[words] = blktape.as_json("analyze", trace, *words)
                self.assertEqual(figures[words]["ios"] > 0, "nobody" not in words)
                whole = json.loads(of_pipe("analyze", "-", "--json", *words))
                for one in (whole, figures[words]):  # as long as they seem best while not all is known
                    one.pop("activity", None)
                self.assertEqual(figures[words], whole)
                piped = self.path("piped.tape")
                of_pipe("cut", "-", *words, "-o", piped)
                self.assertEqual(self.cut(trace, *words), blktape.dump(piped))
                infos = [json.loads(blktape.ok("info", "--json", path).stdout) for path in (self.path("cut.tape"), piped)]
                if "--from" not in words:  # else those before it are not counted where a file can be sought in
                    self.assertEqual(infos[0]["summary"], infos[1]["summary"])
                os.remove(piped)
        with open(trace, "r+b") as file:
            for place in (os.path.getsize(trace) // 20, os.path.getsize(trace) * 19 // 20):
                file.seek(place)
                file.write(b"damage" * 20)
        blktape.ok("analyze", "--json", trace, accept=(3,))
        for words, figure in figures.items():
            here = blktape.as_json("analyze", trace, *words)
            here.pop("activity", None)
            self.assertEqual(here, figure, words)

    def test_cut_keeps_what_it_is_told_to(self):
        trace = self.recording()
        rows = blktape.dump(trace)
        first = int(rows[0]["queue_ns"])

        def arrival(row):
            return int(row["queue_ns"] or row["issue_ns"]) - first
        for words, keeps in (
                (("--from", "10s", "--to", "20s"), lambda row: 10e9 <= arrival(row) < 20e9),
                (("--op", "write,flush"), lambda row: row["op"] in ("write", "flush")),
                (("--process", "dpkg", "--process", "git"), lambda row: row["process"] in ("dpkg", "git")),
                (("--device", "nvme0n1", "--size", "4k"), lambda row: row["bytes"] == "4096"),
                (("--size", "8k-64k"), lambda row: 8192 <= int(row["bytes"]) <= 65536),
                (("--size", "1M-"), lambda row: int(row["bytes"]) >= 1 << 20),
                (("--lba", "0-2047"), lambda row: not row["lba"] or int(row["lba"]) <= 2047),
                (("--op", "read", "--to", "5s"), lambda row: row["op"] == "read" and arrival(row) < 5e9)):
            with self.subTest(words):
                expected = [row for row in rows if keeps(row)]
                self.assertTrue(0 < len(expected) < len(rows))
                self.assertEqual(self.cut(trace, *words), expected)

    def test_cut_says_in_the_trace_what_it_left_out(self):
        self.cut(self.recording(), "--op", "read", "--from", "1s")
        info = json.loads(blktape.ok("info", "--json", self.path("cut.tape")).stdout)
        self.assertEqual(info["header"]["filters"], ["op=read", "from 1.00 s"])

    def test_cut_of_what_is_not_there_is_refused(self):
        trace = self.recording()
        for words in ((), ("--device", "sdz"), ("--from", "2s", "--to", "1s"), ("--size", "64k-4k"), ("--from", "10000s")):
            done = blktape.run("cut", trace, *words, "-o", self.path("x.tape"))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertFalse(os.path.exists(self.path("x.tape.partial")))

    def test_merge_puts_traces_on_one_clock(self):
        one = self.trace("one.tape", ["100,,,sda,read,,0,512,,,,\n", "300,400,500,sda,write,,8,512,,,p,\n"])
        two = self.trace("two.tape", ["1200,,,sdb,read,,0,512,,,p,\n", "1250,1260,1300,sdb,read,,8,512,,,q,\n"])
        blktape.ok("merge", one, two, "--clock", "same", "-o", self.path("same.tape"))
        self.assertEqual([(row["queue_ns"], row["device"], row["process"]) for row in blktape.dump(self.path("same.tape"))],
                         [("100", "sda", ""), ("300", "sda", "p"), ("1200", "sdb", "p"), ("1250", "sdb", "q")])
        said = blktape.ok("merge", one, two, "--clock", "start", "-o", self.path("start.tape")).stdout
        self.assertIn("two.tape: -1.10 us", said)
        self.assertEqual([(row["queue_ns"], row["issue_ns"], row["complete_ns"]) for row in blktape.dump(self.path("start.tape"))],
                         [("100", "", ""), ("100", "", ""), ("150", "160", "200"), ("300", "400", "500")])
        refused = blktape.run("merge", one, two, "-o", self.path("wall.tape"))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--clock same", refused.stderr)

    def test_merge_by_the_wall_clock(self):
        # Alibaba's times are of the epoch: clock and wall clock agree.
        paths = []
        for name, times in (("a", (5, 30)), ("b", (10, 20))):
            with open(self.path(name + ".csv"), "w", encoding="utf-8") as file:
                file.writelines("%d,R,0,512,%d\n" % (7 if name == "a" else 8, 1_577_808_144_000_000 + time) for time in times)
            blktape.ok("import", self.path(name + ".csv"), "-o", self.path(name + ".tape"))
            paths.append(self.path(name + ".tape"))
        blktape.ok("merge", *paths, "-o", self.path("m.tape"))
        rows = blktape.dump(self.path("m.tape"))
        self.assertEqual([row["device"] for row in rows], ["volume7", "volume8", "volume8", "volume7"])

    def test_merge_of_parts_is_the_whole(self):
        trace = self.desktop()
        for name, words in (("a", ("--op", "read")), ("b", ("--op", "write,discard,flush"))):
            blktape.ok("cut", trace, *words, "-o", self.path(name + ".tape"))
        blktape.ok("merge", self.path("a.tape"), self.path("b.tape"), "--clock", "same", "-o", self.path("m.tape"))

        def key(row):
            return [row[column] for column in blktape.COLUMNS]
        self.assertEqual(sorted(blktape.dump(self.path("m.tape")), key=key), sorted(blktape.dump(trace), key=key))

    def test_diff_of_a_trace_with_itself_finds_nothing(self):
        trace = self.recording()
        said = json.loads(blktape.ok("diff", trace, trace, "--json").stdout)
        self.assertEqual((said["words"], said["read_sizes_apart"], said["write_sizes_apart"]), ([], 0, 0))
        for effect in said["effects"]:
            self.assertEqual((effect["b_larger"], effect["size"]), (0.5, "none"))
        for figure in said["figures"]:
            self.assertEqual(figure.get("a"), figure.get("b"))

    def test_diff_says_what_differs_by_how_much(self):
        # 100 reads of 4 KiB, service 1 to 100 us; in B 8 KiB, and each 50 us longer. Of the pairs with values i and j + 50,
        # i and j of 1 to 100, B is larger where j > i - 50: 10,000 - (1 + ... + 49) - 50 / 2 of them: 0.875 with ties halved.
        one = self.trace("a.tape", [",%d,%d,sda,read,,%d,4096,,,,\n" % (i * 1_000_000, i * 1_000_000 + (i + 1) * 1000, 100_000 - i * 64)
                                    for i in range(100)])
        two = self.trace("b.tape", [",%d,%d,sda,read,,%d,8192,,,,\n" % (i * 1_000_000, i * 1_000_000 + (i + 51) * 1000, 100_000 - i * 64)
                                    for i in range(100)])
        said = json.loads(blktape.ok("diff", one, two, "--json").stdout)
        self.assertEqual(said["read_sizes_apart"], 1)
        effect, = said["effects"]
        self.assertEqual(effect["name"], "service of reads")
        self.assertAlmostEqual(effect["b_larger"], 0.875, places=3)
        self.assertEqual(effect["size"], "large")
        text = blktape.ok("diff", one, two).stdout
        self.assertIn("service of reads takes longer in B: with probability 0.88 (large effect)", text)
        self.assertIn("the sizes of reads are others: 100 %", text)
        self.assertIn("exactly 4 KiB", text)
        for line in text.replace(self.folder, "").splitlines():
            self.assertLess(len(line), 80, line)

    def test_diff_compares_times_of_one_kind(self):
        # Both have responses of 600 us; only A tells that 500 of them are before the issue.
        one = self.trace("a.tape", ["%d,%d,%d,sda,read,,0,4096,,,,\n" % (i * 1_000_000, i * 1_000_000 + 500_000, i * 1_000_000 + 600_000)
                                    for i in range(100)])
        two = self.trace("b.tape", ["%d,,%d,sda,read,,0,4096,,,,\n" % (i * 1_000_000, i * 1_000_000 + 600_000)
                                    for i in range(100)])
        said = json.loads(blktape.ok("diff", one, two, "--json").stdout)
        self.assertEqual([(effect["name"], effect["b_larger"]) for effect in said["effects"]], [("response of reads", 0.5)])
        median, = (figure for figure in said["figures"] if figure["name"] == "response of reads, p50")
        self.assertEqual(median["a"], median["b"])

    def anonymized(self, trace, *words):
        out = self.path("anonymous.tape")
        if os.path.exists(out):
            os.remove(out)
        blktape.ok("anonymize", trace, *words, "-o", out)
        return out

    def test_anonymize_leaves_no_name(self):
        trace = self.recording()
        out = self.anonymized(trace)
        content = subprocess.run(["zstd", "-dcq", out], stdout=subprocess.PIPE, check=True).stdout
        names = {row["process"] for row in blktape.dump(trace) if row["process"]} | {"nvme0n1", "blktrace.0"}
        for name in names:
            # Shorter words stand by chance among the numbers.
            self.assertFalse(len(name) > 3 and name.encode() in content, name)
        info = json.loads(blktape.ok("info", "--json", out).stdout)
        self.assertFalse(set(info["header"]) & {"host", "kernel", "start", "timezone", "imported_from", "command"})
        self.assertEqual(info["header"]["devices"][0]["name"], "disk0")

    def test_anonymize_keeps_times_and_all_that_depends_on_nearness(self):
        trace = self.recording()
        before = blktape.dump(trace)
        after = blktape.dump(self.anonymized(trace))
        for column in ("queue_ns", "issue_ns", "complete_ns", "op", "flags", "bytes", "error", "cpu"):
            self.assertEqual([row[column] for row in after], [row[column] for row in before], column)
        # The same process, the same name.
        self.assertEqual(len({(old["process"], new["process"]) for old, new in zip(before, after)}),
                         len({row["process"] for row in before}))
        workers = [[row["process"].startswith("kworker/") for row in rows] for rows in (before, after)]
        self.assertIn(True, workers[0])
        self.assertEqual(workers[0], workers[1])
        # Whatever two I/Os touch in common, and in which order, is the same: so is every reuse and overwrite.
        spans = [[(int(row["lba"]), int(row["lba"]) + int(row["bytes"]) // 512) for row in rows
                  if row["lba"] and row["op"] in ("read", "write")] for rows in (before, after)]
        self.assertNotEqual(spans[0], spans[1])
        for i in range(1, len(spans[0])):
            for back in (1, 2, 5, 40):
                if i < back:
                    continue
                (a, b), (c, d) = spans[0][i - back], spans[0][i]
                (e, f), (g, h) = spans[1][i - back], spans[1][i]
                if max(a, c) <= min(b, d):  # overlap or adjoin
                    self.assertEqual(c - a, g - e)
                self.assertEqual(max(a, c) < min(b, d), max(e, g) < min(f, h))
        self.assertEqual([begin % 2048 for begin, _ in spans[0]], [begin % 2048 for begin, _ in spans[1]])
        was, now = (json.loads(blktape.ok("analyze", "--json", one).stdout) for one in (trace, self.path("anonymous.tape")))
        for key in ("addresses", "sequential", "footprint", "sizes"):
            self.assertEqual(was.get(key), now.get(key))

    def test_anonymize_numbers_who_woke_a_thread_like_threads(self):
        with open(self.path("woken.csv"), "w", encoding="utf-8") as file:
            file.write("queue_ns,complete_ns,op,lba,bytes,pid,waker,since_wake_ns\n"
                       "1,5,read,0,512,4711,,\n9,12,read,8,512,815,4711,3\n20,22,read,16,512,4711,4242,1\n")
        blktape.ok("import", self.path("woken.csv"), "-o", self.path("woken.tape"))
        out = self.anonymized(self.path("woken.tape"))
        rows = blktape.rows(blktape.ok("export", out, "--to", "csv", "-o", "-").stdout)
        self.assertEqual([(row["pid"], row["waker"], row["since_wake_ns"]) for row in rows],
                         [("1", "", ""), ("2", "1", "3"), ("1", "3", "1")])

    def test_anonymize_never_gives_the_same_places_twice(self):
        trace = self.desktop()
        first = [row["lba"] for row in blktape.dump(self.anonymized(trace))]
        second = [row["lba"] for row in blktape.dump(self.anonymized(trace))]
        self.assertNotEqual(first, second)
        kept = blktape.dump(self.anonymized(trace, "--keep-addresses"))
        self.assertEqual([row["lba"] for row in kept], [row["lba"] for row in blktape.dump(trace)])

    def test_pack_holds_the_same_in_less(self):
        trace = self.recording("loop2")
        blktape.ok("pack", trace, "-o", self.path("packed.tape"))
        self.assertEqual(blktape.ok("dump", "--csv", self.path("packed.tape")).stdout, blktape.ok("dump", "--csv", trace).stdout)
        self.assertLess(blktape.size(self.path("packed.tape")), 0.97 * blktape.size(trace))
        self.assertLess(blktape.size(self.path("packed.tape")) / 35_086, 6.45)
        was, now = (json.loads(blktape.ok("info", "--json", one).stdout) for one in (trace, self.path("packed.tape")))
        # Another file, so frames of one are not taken for the other's.
        self.assertNotEqual(was["header"].pop("trace_id"), now["header"].pop("trace_id"))
        self.assertEqual(was["header"], now["header"])

    def test_losses_go_with_the_trace(self):
        # Two rows dropped at import.
        with open(self.path("lossy.csv"), "w", encoding="utf-8") as file:
            file.write(HEADER + "1,,,sda,read,,0,512,,,,\n" + "x\n" * 2 + "5,,,sda,read,,8,512,,,,\n")
        blktape.ok("import", self.path("lossy.csv"), "-o", self.path("lossy.tape"), accept=(3,))
        for words in (("cut", self.path("lossy.tape"), "--op", "read"), ("pack", self.path("lossy.tape")),
                      ("anonymize", self.path("lossy.tape")),
                      ("merge", self.path("lossy.tape"), self.path("lossy.tape"), "--clock", "same")):
            with self.subTest(words[0]):
                out = self.path(words[0] + ".tape")
                blktape.ok(*words, "-o", out, accept=(3,))
                info = json.loads(blktape.ok("info", "--json", out, accept=(3,)).stdout)
                self.assertEqual(info["losses"][0]["count"], 4 if words[0] == "merge" else 2)

    def test_pack_leaves_what_is_there_whatever_its_input(self):
        for name, content in (("junk", b"junk"), ("out", b"precious")):
            with open(self.path(name), "wb") as file:
                file.write(content)
        self.assertEqual(blktape.run("pack", self.path("junk"), "-o", self.path("out")).returncode, 1)
        with open(self.path("out"), "rb") as file:
            self.assertEqual(file.read(), b"precious")

    def test_columns_of_a_newer_version_are_not_dropped_in_silence(self):
        trace = self.path("newer.tape")
        subprocess.run([MAKE_FORMAT_TRACE, "newer", trace], check=True)
        for words in (("cut", trace, "--op", "write"), ("merge", trace, trace, "--clock", "same"), ("anonymize", trace), ("pack", trace)):
            with self.subTest(words[0]):
                done = blktape.run(*words, "-o", self.path("x.tape"))
                self.assertEqual(done.returncode, 1)
                self.assertIn("does not know", done.stderr)
                self.assertFalse(os.path.exists(self.path("x.tape")))
                self.assertFalse(os.path.exists(self.path("x.tape.partial")))

    def test_what_is_made_of_an_unfinished_trace_says_so(self):
        with open(self.recording(), "rb") as whole, open(self.path("day.tape.partial"), "wb") as partial:
            partial.write(whole.read()[:-200])
        trace = self.path("day.tape.partial")
        for words in (("cut", trace, "--op", "write"), ("merge", trace, trace, "--clock", "same"), ("anonymize", trace), ("pack", trace)):
            with self.subTest(words[0]):
                blktape.ok(*words, "-o", self.path(words[0] + ".tape"), accept=(3,))
                info = json.loads(blktape.ok("info", "--json", self.path(words[0] + ".tape"), accept=(3,)).stdout)
                self.assertTrue(info["recovered"])

    def test_what_is_refused_leaves_no_made_file(self):
        trace = self.desktop(20)
        target = self.path("scratch.img")
        for said, words in (
                ("somebody waits for, and a score takes", ["score", trace, "-o", self.path("score")]),
                ("somebody waits for, and a score takes", ["bench", trace, "-o", self.path("bench")]),
                ("nothing is ever overwritten", ["replay", trace, "-o", trace])):
            done = blktape.run(*words, "--target", target, "--create")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertNotIn("created", done.stderr)
            self.assertFalse(os.path.exists(target), words)
        blktape.ok("replay", trace, "--target", target, "--create", "--dry-run")
        self.assertFalse(os.path.exists(target))

    def test_nothing_is_overwritten(self):
        trace = self.recording()
        with open(self.path("there.tape"), "w", encoding="utf-8") as file:
            file.write("precious")
        for words in (("cut", trace, "--op", "read"), ("merge", trace, trace, "--clock", "same"), ("anonymize", trace), ("pack", trace)):
            with self.subTest(words[0]):
                done = blktape.run(*words, "-o", self.path("there.tape"))
                self.assertEqual(done.returncode, 1)
                self.assertIn("there.tape", done.stderr)
                with open(self.path("there.tape"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "precious")

    def test_what_another_made_is_left_alone(self):
        """Whatever is wrong with the input, what has the output's name, or one like it, stays as it is."""
        trace = self.recording()
        with open(trace, "rb") as file:
            begin = file.read(50)
        inputs = {"no.tape": b"junk", "cut.tape": begin, "empty.tape": b""}
        for name, content in inputs.items():
            with open(self.path(name), "wb") as file:
                file.write(content)
        os.mkdir(self.path("folder.tape"))
        theirs = ["out", "out.partial", "out.new", "out.recovering", "out.compact"]
        for name in theirs:
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("precious")
        out = self.path("out")
        for verb in (["pack", "-o", out], ["recover", "-o", out], ["export", "--to", "csv", "-o", out],
                     ["analyze", "--html", out], ["analyze", "--csv", out], ["cut", "--op", "read", "-o", out],
                     ["anonymize", "-o", out], ["import", "-o", out], ["replay", "--engine", "null", "-o", out],
                     ["merge", trace, "-o", out]):
            for name in [*inputs, "folder.tape", "missing.tape", os.path.basename(trace)]:
                with self.subTest(" ".join(verb), input=name):
                    done = blktape.run(verb[0], self.path(name), *verb[1:])
                    self.assertNotEqual(done.returncode, 0)
                    for left in theirs:
                        with open(self.path(left), encoding="utf-8") as file:
                            self.assertEqual(file.read(), "precious", left)
        self.assertEqual(sorted(os.listdir(self.folder)),
                         sorted([*theirs, *inputs, "folder.tape", os.path.basename(trace)]))

    def test_names_of_several_lines_go_through_csv(self):
        """A name in quotation marks may hold commas, marks and line ends (RFC 4180)."""
        names = ["plain", 'two\nlines', 'a\r\nb', '"quoted", twice', '\n\n', 'say ""\n,']
        rows = [json.dumps({"queue_ns": i, "device": "sda", "op": "read", "lba": 8 * i, "bytes": 512, "process": name})
                for i, name in enumerate(names)]
        with open(self.path("names.jsonl"), "w", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")
        blktape.ok("import", self.path("names.jsonl"), "-o", self.path("names.tape"))
        blktape.ok("export", self.path("names.tape"), "--to", "csv", "-o", self.path("names.csv"))
        blktape.ok("import", self.path("names.csv"), "-o", self.path("back.tape"))
        blktape.ok("export", self.path("back.tape"), "--to", "jsonl", "-o", self.path("back.jsonl"))
        with open(self.path("back.jsonl"), encoding="utf-8") as file:
            self.assertEqual([json.loads(row)["process"] for row in file], names)

    def test_a_stray_quotation_mark_costs_its_row_only(self):
        rows = ["%d,,,sda,read,,%d,512,,,%s,\n" % (i, 8 * i, '"x' if i == 3 else "x") for i in range(2000)]
        for count in (10, 2000):  # the end of the file comes before that of the longest row, and after it
            with self.subTest(count):
                with open(self.path("rows.csv"), "w", encoding="utf-8") as file:
                    file.write(HEADER + "".join(rows[:count]))
                out = self.path("%d.tape" % count)
                said = json.loads(blktape.ok("import", self.path("rows.csv"), "-o", out, "--json", accept=(3,)).stdout)
                self.assertEqual(said["ios"], count - 1)
                # Line 1 has the names.
                self.assertEqual([(entry["count"], entry["first"]) for entry in said["rows"]["dropped"]], [(1, ["line 5"])])

    def test_the_lines_of_a_long_row_are_counted(self):
        with open(self.path("rows.csv"), "w", encoding="utf-8") as file:
            file.write(HEADER + '0,,,sda,read,,0,512,,,"a\n\nb",\n' + "1,,,sda,read,,8,x,,,c,\n")
        said = json.loads(blktape.ok("import", self.path("rows.csv"), "-o", self.path("a.tape"), "--json",
                                     accept=(3,)).stdout)
        self.assertEqual(said["rows"]["dropped"][0]["first"], ["line 5"])

    def test_appends_to_zones_are_no_writes(self):
        with open(self.path("rows.csv"), "w", encoding="utf-8") as file:
            file.write(HEADER + "0,,,sda,write,,0,4096,,,,\n1,,,sda,zone_append,,8,8192,,,,\n")
        said = blktape.ok("import", self.path("rows.csv"), "-o", self.path("a.tape")).stdout
        self.assertRegex(said, r"(?m)^  write +1  4 KiB$")
        self.assertRegex(said, r"(?m)^  zone_append +1  8 KiB$")
        said = json.loads(blktape.ok("import", self.path("rows.csv"), "-o", self.path("b.tape"), "--json").stdout)
        self.assertEqual((said["write_bytes"], said["zone_append_bytes"]), (4096, 8192))

    def test_info_tells_the_end_by_the_last_of_the_trace(self):
        """A recording of blktrace tells the wall clock once, at its beginning."""
        told = blktape.as_json("info", self.recording())
        self.assertGreater(told["duration_ns"], 10**9)
        anchor = told["header"]["start"]
        self.assertEqual(told["end_wall_ns"], anchor["wall_ns"] + told["last_ns"] - anchor["monotonic_ns"])

    def test_info_tells_bytes_in_hex(self):
        told = blktape.as_json("info", self.desktop(100))
        self.assertRegex(told["header"]["trace_id"], "^[0-9a-f]{32}$")

    def test_recover_removes_only_its_input(self):
        for name in ("a.tape.recovering", "a.tape.compact"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write("precious")
        os.rename(self.desktop(100), self.path("a.tape.partial"))
        os.mkdir(self.path("folder.tape.partial"))
        os.symlink("/dev/null", self.path("link.tape.partial"))
        blktape.run("recover", self.path("a.tape.partial"))
        blktape.run("recover", self.folder)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.tape", "a.tape.compact", "a.tape.recovering",
                                                           "folder.tape.partial", "link.tape.partial"])

    def test_what_is_stopped_leaves_nothing_that_looks_whole(self):
        trace = self.desktop(200_000)  # of several frames
        with open(trace, "rb") as file:
            content = file.read()
        out = self.path("out")
        os.mkdir(out)
        for words in (*(["export", "-", "--to", to, "-o", "out"]
                        for to in ("csv", "jsonl", "fio-iolog", "perfetto", "blktrace")),
                      ["cut", "-", "--op", "read,write", "-o", "out"]):
            for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
                with self.subTest(" ".join(words), how=how):
                    self.stop_halfway(words, content[:len(content) // 2], out, how)
                    self.assertEqual([name for name in os.listdir(out) if name != "out.partial"], [])
                    for name in os.listdir(out):
                        os.remove(os.path.join(out, name))

    def stop_halfway(self, words, content, folder, how):
        """Stops it when it has made its output and waits for more of its input."""
        with subprocess.Popen([os.path.abspath(blktape.PROGRAM), *words], cwd=folder, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(how, signal.SIG_DFL) if how != signal.SIGKILL else None
                              ) as process:
            self.addCleanup(process.kill)
            process.stdin.write(content)
            process.stdin.flush()
            end_s = time.monotonic() + 60
            while not self.writes_below(process.pid, folder):
                self.assertIsNone(process.poll(), process.poll() is not None and process.stderr.read())
                self.assertLess(time.monotonic(), end_s, "no output was made")
                time.sleep(0.001)
            process.send_signal(how)
            self.assertEqual(process.wait(60), -how)

    @staticmethod
    def writes_below(pid, folder):
        """Whether it has a file there open, be it one without a name."""
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                if os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith(folder + "/"):
                    return True
            except OSError:
                pass  # closed meanwhile
        return False

    def test_a_page_or_a_table_is_whole_or_not_there(self):
        trace = self.recording()
        for words in (["--html", "page"], ["--csv", "tables"], ["--csv", "tables/"]):
            blktape.ok("analyze", trace, words[0], self.path(words[1]))
            self.assertIn(words[1].rstrip("/"), os.listdir(self.folder))
            if words[0] == "--csv":
                shutil.rmtree(self.path(words[1]))
        self.assertEqual(sorted(os.listdir(self.folder)), ["nvme0n1.tape", "page"])
        for words in (["analyze", trace, "--html"], ["analyze", trace, "--csv"], ["export", trace, "--to", "csv", "-o"],
                      ["pack", trace, "-o"]):
            done = blktape.run(*words, self.path("no/such"))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("no/such", done.stderr)


if __name__ == "__main__":
    cases.main()
