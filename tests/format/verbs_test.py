"""blktape info, dump and recover as a person uses them: what they say, and their exit statuses."""

import fcntl
import json
import os
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases

MAKE_TRACE = "tests/support/make_trace"
MAKE_FORMAT_TRACE = "tests/format/make_format_trace"
GOLDEN = "tests/format/golden/v1.tape"


class VerbsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def desktop(self, count, frame=0, name="day.tape"):
        """A trace of `count` I/Os, 600 a second, with a frame ended every `frame`."""
        subprocess.run([MAKE_TRACE, self.path(name), str(count), "600", "kind=desktop", "frame=%d" % frame], check=True)
        return self.path(name)

    def cut(self, trace, to_bytes, name="cut.tape.partial"):
        with open(trace, "rb") as whole, open(self.path(name), "wb") as cut:
            cut.write(whole.read()[:to_bytes])
        return self.path(name)

    def test_info_of_a_whole_trace_exits_0_and_says_so(self):
        done = blktape.run("info", self.desktop(1000))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("whole, nothing lost", done.stdout)
        self.assertIn("disk0", done.stdout)
        for line in done.stdout.replace(self.folder.name, "").splitlines():
            self.assertLess(len(line), 80, line)

    def test_info_counts_what_was_written(self):
        said = json.loads(blktape.run("info", "--json", GOLDEN).stdout)
        self.assertEqual(said["records"], 5)
        self.assertEqual(said["records_by_op"], {"read": 2, "discard": 1, "flush": 1, "zone_append": 1})
        self.assertEqual(said["bytes_by_op"]["read"], 16384 + 4096)
        self.assertEqual((said["first_ns"], said["last_ns"], said["duration_ns"]), (-5, 4000, 4005))
        self.assertEqual(said["start_wall_ns"], 1_700_000_000_000_000_000)
        self.assertEqual(said["losses"], [{"reason": "RING_OVERRUN", "count": 12, "unknowable": 0}])
        self.assertEqual(said["header"]["devices"][0]["name"], "nvme0n1")
        self.assertEqual(said["file_bytes"], os.path.getsize(GOLDEN))

    def test_a_stored_loss_exits_3_in_info_and_dump(self):
        info = blktape.run("info", GOLDEN)
        self.assertEqual(info.returncode, 3)
        self.assertIn("ring overrun: 12 events", info.stdout)
        dump = blktape.run("dump", "--csv", GOLDEN)
        self.assertEqual(dump.returncode, 3)
        self.assertEqual(dump.stderr, "warning: %s: ring overrun: 12 events\n" % GOLDEN)

    def test_an_unfinished_trace_exits_3_and_tells_the_way_out(self):
        partial = self.cut(self.desktop(40_000, 1000), 150_000)
        done = blktape.run("info", partial)
        self.assertEqual(done.returncode, 3)
        self.assertIn("NOT FINISHED", done.stdout)
        self.assertIn("blktape recover", done.stdout)
        said = json.loads(blktape.run("info", "--json", partial).stdout)
        self.assertFalse(said["finished"])
        self.assertEqual(said["losses"][0]["reason"], "TRUNCATED_INPUT")

    def test_what_is_no_trace_fails_with_its_name(self):
        path = self.path("notes.txt")
        with open(path, "w", encoding="utf-8") as notes:
            notes.write("queue_ns,issue_ns\n1,2\n")
        for verb in "info", "dump":
            done = blktape.run(verb, path)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertTrue(done.stderr.startswith("error: " + path), done.stderr)

    def test_dump_reads_standard_input(self):
        trace = self.desktop(500)
        with open(trace, "rb") as source:
            piped = subprocess.run("cat | %s dump --csv -" % blktape.PROGRAM, shell=True, stdin=source,
                                   stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(piped, blktape.run("dump", "--csv", trace).stdout)

    def test_dump_of_a_span_is_those_rows_of_the_whole(self):
        trace = self.desktop(100_000)
        rows = blktape.run("dump", "--csv", trace).stdout.splitlines()
        first = int(rows[1].split(",")[0])
        expected = [row for row in rows[1:]
                    if 20_000_000_000 <= int(row.split(",")[0]) - first < 20_500_000_000]
        self.assertGreater(len(expected), 100)
        span = blktape.run("dump", "--csv", "--from", "20s", "--to", "20500ms", trace)
        self.assertEqual(span.stdout.splitlines()[1:], expected)
        self.assertEqual(span.returncode, 0)

    def test_the_table_stays_below_80_columns(self):
        done = blktape.run("dump", self.desktop(300))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 301)
        for line in lines:
            self.assertLess(len(line), 80, line)

    def test_dump_to_a_full_disk_fails(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([blktape.PROGRAM, "dump", "--csv", self.desktop(50_000)], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count(b"No space left"), 1, done.stderr)

    def test_what_fails_for_a_full_disk_says_so_once(self):
        trace = self.desktop(1000)
        for words in (["export", trace, "--to", "csv", "-o", "-"], ["dump", trace], ["info", trace], ["analyze", trace]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([blktape.PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertEqual(done.stderr.count(b"No space left"), 1, (words, done.stderr))

    def test_one_io_is_no_plural(self):
        trace = self.desktop(1, name="one.tape")
        other = self.desktop(1, name="other.tape")
        for expected, words in (
                ("one.tape: 1 I/O in ", ["analyze", trace]),
                ("cut.tape: 1 I/O\n", ["cut", trace, "--to", "1s", "-o", self.path("cut.tape")]),
                ("anon.tape: 1 I/O\n", ["anonymize", trace, "-o", self.path("anon.tape")]),
                (": 1 I/O as csv\n", ["export", trace, "--to", "csv", "-o", self.path("one.csv")]),
                (": 2 I/Os of 2 traces\n", ["merge", trace, other, "--clock", "start", "-o", self.path("merged.tape")]),
                ("I/Os", ["info", trace])):
            done = blktape.run(*words)
            self.assertIn(expected, done.stdout, words)
            self.assertNotRegex(done.stdout, r"(?<![\d,.])1 (I/Os|events|hardware queues|requests|names|places|devices|marks)")

    def test_recover_gives_a_partial_its_name_and_says_what_is_missing(self):
        partial = self.cut(self.desktop(40_000, 1000), 150_000, "new.tape.partial")
        before = blktape.run("dump", "--csv", partial).stdout
        done = blktape.run("recover", partial)
        self.assertEqual(done.returncode, 3)
        self.assertIn("truncated input: an unknown number of events", done.stdout)
        self.assertFalse(os.path.exists(partial))
        recovered = self.path("new.tape")
        subprocess.run(["zstd", "-tq", recovered], check=True)
        self.assertEqual(blktape.run("dump", "--csv", recovered).stdout, before)
        info = blktape.run("info", recovered)
        self.assertEqual(info.returncode, 3)
        self.assertIn("recovered from an unfinished one", info.stdout)

    def test_recover_to_another_name_keeps_its_input(self):
        partial = self.cut(self.desktop(40_000), 300_000)
        self.assertEqual(blktape.run("recover", partial, "-o", self.path("out.tape")).returncode, 3)
        self.assertTrue(os.path.exists(partial))
        again = blktape.run("recover", partial, "-o", self.path("out.tape"))
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists", again.stderr)

    def test_recover_of_a_folder_recovers_what_dead_recorders_left_in_it(self):
        whole = self.desktop(3000, frame=300)
        for name in ("one.tape.partial", "two.tape.partial", "live.tape.partial"):
            self.cut(whole, blktape.size(whole) * 2 // 3, name)
        os.utime(self.path("one.tape.partial"), (1_000_000, 1_000_000))
        for name in ("empty.tape.partial", "note.partial"):
            self.cut(whole, 0, name)
        rows = len(blktape.dump(self.path("one.tape.partial"), accept=(3,)))
        with open(self.path("live.tape.partial")) as live:
            fcntl.flock(live, fcntl.LOCK_EX)
            done = blktape.run("recover", self.folder.name)
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertEqual(sorted(os.listdir(self.folder.name)),
                         ["day.tape", "live.tape.partial", "note.partial", "one.tape", "two.tape"])
        for name in ("one.tape", "two.tape"):
            self.assertEqual(len(blktape.dump(self.path(name), accept=(3,))), rows)
        # The oldest go first where space is short.
        self.assertEqual(os.stat(self.path("one.tape")).st_mtime, 1_000_000)
        self.assertEqual(blktape.run("recover", self.folder.name, "-o", self.path("x")).returncode, 2)

    def test_recover_of_a_whole_partial_loses_nothing(self):
        whole = self.desktop(1000)
        os.rename(whole, whole + ".partial")
        done = blktape.run("recover", whole + ".partial")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("finished and whole", done.stdout)
        self.assertEqual(blktape.run("info", whole).returncode, 0)

    def test_recover_says_what_was_wrong_with_its_input(self):
        whole = self.desktop(1000)
        with open(whole, "rb") as trace:
            content = bytearray(trace.read())
        content[-20] ^= 1  # of the seek table: 9 bytes of footer follow its entries of 8 bytes
        with open(self.path("damaged.tape"), "wb") as damaged:
            damaged.write(content)
        self.assertEqual(blktape.run("info", self.path("damaged.tape")).returncode, 3)
        done = blktape.run("recover", self.path("damaged.tape"), "-o", self.path("repaired.tape"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("was damaged, but no I/O of it is missing", done.stdout)
        self.assertNotIn("name was missing", done.stdout)
        self.assertEqual(blktape.run("info", self.path("repaired.tape")).returncode, 0)
        done = blktape.run("recover", whole, "-o", self.path("copy.tape"))
        self.assertIn("finished and whole\n", done.stdout)


class HostileTextTest(unittest.TestCase):
    def test_no_text_of_a_trace_reaches_the_terminal_as_an_escape(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "bad.tape")
            subprocess.run([MAKE_FORMAT_TRACE, "escapes", trace], check=True)
            for words in (("info",), ("dump",), ("analyze",), ("diff",), ("replay", "--dry-run", "--engine", "null"),
                          ("replay", "--engine", "null"), ("recover",)):
                with self.subTest(" ".join(words)):
                    rest = {"diff": (trace,), "recover": ("-o", os.path.join(folder, "copy.tape"))}.get(words[0], ())
                    done = blktape.run(words[0], trace, *words[1:], *rest)
                    self.assertIn(done.returncode, (0, 1, 3), done.stderr)
                    self.assertNotRegex((done.stdout + done.stderr).replace("\r\n", "\n"), "[\x00-\x08\x0b-\x1f\x7f-\x9f]")
            said = blktape.run("info", trace).stdout
            for what in ("left out", "written by blktape", "host", "command", "device", "bytes 1 to"):
                self.assertRegex(said, "(?m)%s.*\\[31mred" % what)
            self.assertIn("[31mred", blktape.run("dump", trace).stdout)
            self.assertIn("[31mred", blktape.run("analyze", trace).stdout)


class WindowTest(unittest.TestCase):
    def test_analyze_and_dump_count_from_the_earliest_arrival(self):
        # The golden trace's earliest arrival is its fourth record's, at -5 ns; the others with a time arrive at 1500, 3000 and 4000.
        # Its last record has none.
        done = blktape.run("analyze", GOLDEN, "--from", "1505ns", "--json")
        self.assertEqual(json.loads(done.stdout)["ios"], 3, done.stderr)
        rows = blktape.run("dump", GOLDEN, "--from", "1505ns", "--csv").stdout.splitlines()[1:]
        self.assertEqual([row.split(",")[1] for row in rows], ["2500", "3100", "4000", ""])
        done = blktape.run("analyze", GOLDEN, "--to", "1505ns", "--json")
        self.assertEqual(json.loads(done.stdout)["ios"], 1, done.stderr)


if __name__ == "__main__":
    cases.main()
