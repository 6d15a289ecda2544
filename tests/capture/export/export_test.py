"""`blktape export`: round trips through import, and the programs that are meant to read what it writes."""

import collections
import json
import os
import re
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases

DATA = "tests/capture/data"
# Every optional column, and a name that must be quoted in any format.
ROWS = """queue_ns,issue_ns,complete_ns,device,op,flags,lba,bytes,error,pid,process,cpu
1000,2000,3500,sda,read,readahead,2048,4096,0,7,"a ""b"", c\\d",1
1500,2500,9000,sdb,write,sync+fua,8,8192,5,8,x,0
1700,,,sda,discard,,0,1048576,,,,
2000,3000,4000,sda,flush,,,0,0,7,"a ""b"", c\\d",1
5000,5000,6000,sdb,write_zeroes,,64,4096,0,9,y,0
6000,6001,6002,sda,zone_reset,,128,0,0,9,y,3
"""


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        return path

    def recording(self, disk):
        trace = self.path(disk + ".tape")
        blktape.ok("import", "%s/%s.blktrace.0.zst" % (DATA, disk), "%s/%s.blktrace.1.zst" % (DATA, disk), "-o", trace)
        return trace

    def handmade(self):
        trace = self.path("hand.tape")
        blktape.ok("import", self.path("hand.csv", ROWS), "-o", trace)
        return trace

    def export(self, trace, to, name):
        return blktape.ok("export", trace, "--to", to, "-o", self.path(name)).stdout

    def csv(self, trace):
        return blktape.ok("dump", "--csv", trace).stdout

    def test_csv_and_json_lines_come_back_as_they_were(self):
        for trace in (self.handmade(), self.recording("nvme0n1"), self.recording("loop2")):
            for to in ("csv", "jsonl"):
                with self.subTest(trace=os.path.basename(trace), to=to):
                    name = "%s.%s" % (os.path.basename(trace), to)
                    self.export(trace, to, name)
                    back = self.path(name + ".tape")
                    blktape.ok("import", self.path(name), "-o", back)
                    self.assertEqual(self.csv(back), self.csv(trace))
                    again = self.path(name + ".again")
                    blktape.ok("export", back, "--to", to, "-o", again)
                    with open(again, encoding="utf-8") as second, open(self.path(name), encoding="utf-8") as first:
                        self.assertEqual(second.read(), first.read())

    def test_who_woke_its_thread_comes_back(self):
        rows = ROWS.split("\n")
        told = "\n".join([rows[0] + ",waker,since_wake_ns", rows[1] + ",8,1500"] + [row + ",," for row in rows[2:-1]]) + "\n"
        blktape.ok("import", self.path("told.csv", told), "-o", self.path("told.tape"))
        for to in ("csv", "jsonl"):
            with self.subTest(to=to):
                self.export(self.path("told.tape"), to, "told.out." + to)
                blktape.ok("import", self.path("told.out." + to), "-o", self.path(to + ".tape"))
                found = blktape.rows(blktape.ok("export", self.path(to + ".tape"), "--to", "csv", "-o", "-").stdout)
                self.assertEqual([(io["waker"], io["since_wake_ns"]) for io in found], [("8", "1500")] + [("", "")] * 5)

    def test_blktrace_comes_back_as_it_was(self):
        for disk in ("nvme0n1", "loop2"):
            with self.subTest(disk):
                trace = self.recording(disk)
                os.mkdir(self.path("out"))
                self.export(trace, "blktrace", "out/" + disk)
                back = self.path(disk + ".back.tape")
                blktape.ok("import", self.path("out/" + disk), "-o", back)
                self.assertEqual(self.csv(back), self.csv(trace))
                subprocess.run(["rm", "-r", self.path("out")], check=True)

    def test_blkparse_and_btt_read_it_as_they_read_the_original(self):
        trace = self.recording("nvme0n1")
        self.export(trace, "blktrace", "copy")
        for cpu in (0, 1):
            subprocess.run(["zstd", "-dqf", "%s/nvme0n1.blktrace.%d.zst" % (DATA, cpu), "-o", self.path("nvme0n1.blktrace.%d" % cpu)],
                           check=True)
        said = {}
        for name in ("nvme0n1", "copy"):
            out = subprocess.run(["blkparse", "-i", name, "-f", "%a %d %S %N\n", "-d", name + ".bin"], cwd=self.folder,
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
            # blkparse's own rounding: what was issued, and completed with data.
            said[name] = collections.Counter(line for line in out.splitlines() if re.match(r"D \S+ \d+ [1-9]", line))
        self.assertGreater(sum(said["copy"].values()), 1700)
        self.assertEqual({key.split()[0] + " " + " ".join(key.split()[2:]): None for key in said["copy"]},
                         {key.split()[0] + " " + " ".join(key.split()[2:]): None for key in said["nvme0n1"]})
        btt = subprocess.run(["btt", "-i", "copy.bin"], cwd=self.folder, stdout=subprocess.PIPE, text=True, check=True).stdout
        # btt wants a queue event: 1,829 of the 2,035 requests have one, the others are flushes of the block layer's own.
        rows = [row for row in blktape.dump(trace) if row["queue_ns"] and row["complete_ns"] and int(row["bytes"])]
        line = next(line for line in btt.splitlines() if line.startswith("D2C"))
        self.assertEqual(int(line.split()[-1]), len(rows))
        mean_s = sum(int(row["complete_ns"]) - int(row["issue_ns"]) for row in rows) / len(rows) / 1e9
        self.assertAlmostEqual(float(line.split()[2]), mean_s, places=7)

    def test_fio_iolog_is_what_fio_defines(self):
        trace = self.handmade()
        said = self.export(trace, "fio-iolog", "hand.fio")
        with open(self.path("hand.fio"), encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines(), [
                "fio version 3 iolog", "0 sda add", "0 sdb add", "0 sda open", "0 sdb open",
                "0 sda read 1048576 4096", "0 sdb write 4096 8192", "0 sda trim 0 1048576", "1 sda sync",
                "1 sda close", "1 sdb close"])
        self.assertIn("left out  I/Os other than reads, writes, discards and flushes (2 I/Os)", said)
        self.assertIn("left out  completion times", said)

    def test_fio_replays_it(self):
        """fio does each of its reads and writes, and comes to the bytes of the trace."""
        trace = self.path("short.tape")
        blktape.ok("cut", self.recording("loop2"), "--op", "read,write", "--from", "0s", "--to", "2s", "-o", trace)
        self.export(trace, "fio-iolog", "short.fio")
        rows = blktape.dump(trace)
        end = max(int(row["lba"]) * 512 + int(row["bytes"]) for row in rows)
        with open(self.path("target"), "wb") as target:
            target.truncate(end + 4096)
        done = subprocess.run(
            ["fio", "--name=replay", "--ioengine=psync", "--read_iolog=" + self.path("short.fio"), "--replay_no_stall=1",
             "--replay_redirect=" + self.path("target"), "--output-format=json", "--thread=1"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
        for op in ("read", "write"):
            mine = [int(row["bytes"]) for row in rows if row["op"] == op]
            self.assertEqual((job[op]["total_ios"], job[op]["io_bytes"]), (len(mine), sum(mine)))

    def test_fio_iolog_keeps_what_it_can_carry(self):
        trace = self.recording("nvme0n1")
        self.export(trace, "fio-iolog", "n.fio")
        back = self.path("n.back.tape")
        blktape.ok("import", self.path("n.fio"), "-o", back)
        rows = [row for row in blktape.dump(trace) if "derived" not in row["flags"]]
        first = int(blktape.dump(trace)[0]["queue_ns"])
        expected = []
        at = 0
        for row in rows:
            at = max(at, (int(row["queue_ns"] or row["issue_ns"]) - first) // 1000 * 1000)
            expected.append((str(at), row["op"], row["lba"], row["bytes"]))
        found = [(row["issue_ns"], row["op"], row["lba"], row["bytes"]) for row in blktape.dump(back)]
        shift = int(expected[0][0]) - int(found[0][0])
        self.assertEqual([(str(int(time) + shift), *rest) for time, *rest in found], expected)

    def test_perfetto_has_a_slice_an_io_and_the_depth(self):
        trace = self.handmade()
        self.export(trace, "perfetto", "hand.json")
        with open(self.path("hand.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        begins = {event["id"]: event for event in events if event["ph"] == "b"}
        ends = {event["id"]: event for event in events if event["ph"] == "e"}
        self.assertEqual(len(begins), 5)
        self.assertEqual(set(begins), set(ends))
        read = begins[1]
        self.assertEqual((read["name"], read["pid"], read["ts"], ends[1]["ts"]), ("read", 1, 1.0, 2.5))
        self.assertEqual(read["args"]["process"], 'a "b", c\\d')
        # On sda: 2,000 one, 3,000 two, 3,500 one, 4,000 none, 6,001 one, 6,002 none.
        depth = sorted((event["ts"], event["args"]["requests"]) for event in events
                       if event["ph"] == "C" and event["pid"] == 1)
        self.assertEqual(depth, [(1.0, 1), (2.0, 2), (2.5, 1), (3.0, 0), (5.001, 1), (5.002, 0)])

    def test_perfetto_counts_the_depth_in_order_of_issue(self):
        # The scheduler issues the second to arrive first.
        self.path("late.csv", ROWS.split("\n", 1)[0] + "\n1000,5000,7000,sda,read,,0,512,,,,\n2000,3000,6000,sda,read,,8,512,,,,\n")
        blktape.ok("import", self.path("late.csv"), "-o", self.path("late.tape"))
        self.export(self.path("late.tape"), "perfetto", "late.json")
        with open(self.path("late.json"), encoding="utf-8") as file:
            depth = [(event["ts"], event["args"]["requests"]) for event in json.load(file)["traceEvents"] if event["ph"] == "C"]
        self.assertEqual(depth, [(2.0, 1), (4.0, 2), (5.0, 1), (6.0, 0)])

    def test_nothing_is_overwritten_and_mistakes_are_named(self):
        trace = self.handmade()
        target = self.path("there", "precious")
        done = blktape.run("export", trace, "--to", "csv", "-o", target)
        self.assertEqual(done.returncode, 1)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")
        for words, why in ((("--to", "excel", "-o", "x"), "--list-formats"), (("--to", "csv"), "-o FILE"), (("-o", "x"), "--to"),
                           (("--to", "blktrace", "-o", "-"), "several files")):
            done = blktape.run("export", trace, *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)
        # A failed export leaves nothing: the second of its files is there already.
        self.path("set.blktrace.1", "precious")
        self.assertEqual(blktape.run("export", self.recording("loop2"), "--to", "blktrace", "-o", self.path("set")).returncode, 1)
        self.assertFalse(os.path.exists(self.path("set.blktrace.0")))

    def test_standard_output_holds_the_export_alone(self):
        done = blktape.ok("export", self.handmade(), "--to", "csv", "-o", "-")
        self.assertEqual(len(done.stdout.splitlines()), 7)
        self.assertIn("wrote     standard output", done.stderr)


if __name__ == "__main__":
    cases.main()
