"""The reader that docs/trace_format.md shows, run as a stranger would run it."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from tests.harness import cases

BLKTAPE = "cli/blktape"
MAKE_TRACE = "tests/support/make_trace"
MAKE_FORMAT_TRACE = "tests/format/make_format_trace"
GOLDEN = "tests/format/golden/v1.tape"
GOLDEN_CSV = """\
queue_ns,issue_ns,complete_ns,device,op,flags,lba,bytes,error,pid,process,cpu
1500,2500,90000,nvme0n1,read,meta+readahead,2048,16384,0,77,updatedb,3
3000,3100,80000,nvme0n1,read,meta+readahead,2080,4096,5,77,updatedb,3
,4000,5000000004000,nvme0n1,flush,preflush+derived,,0,,,,
-5,,,sda,discard,,1099511627776,3298534883328,,,fstrim,
,,,nvme0n1,zone_append,0x80000000,,0,,,,
"""


def decompressed(trace):
    # The program zstd passes over symbolic links, which files are in a Bazel sandbox.
    return subprocess.run(["zstd", "-dcq", os.path.realpath(trace)], stdout=subprocess.PIPE, check=True).stdout


class DocReaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open("docs/trace_format.md", encoding="utf-8") as doc:
            blocks = re.findall(r"^```python\n(.*?)^```$", doc.read(), re.S | re.M)
        assert len(blocks) == 1, "the document shows one program"
        cls.script = os.path.join(cls.folder.name, "read_trace.py")
        with open(cls.script, "w", encoding="utf-8") as script:
            script.write(blocks[0])
        subprocess.run(["protoc", "--python_out=" + cls.folder.name, "-I", "format", "format/trace.proto"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def read_as_documented(self, trace):
        plain = decompressed(trace)
        return subprocess.run([sys.executable, self.script], input=plain, stdout=subprocess.PIPE,
                              check=True).stdout.decode()

    def dump(self, trace):
        return subprocess.run([BLKTAPE, "dump", "--csv", trace], stdout=subprocess.PIPE, check=False).stdout.decode()

    def test_golden_trace_reads_as_written_down_here(self):
        self.assertEqual(self.read_as_documented(GOLDEN), GOLDEN_CSV)
        self.assertEqual(self.dump(GOLDEN), GOLDEN_CSV)

    def test_any_records_read_the_same_by_both_readers(self):
        for seed in "1", "2", "3":
            with self.subTest(seed=seed):
                trace = os.path.join(self.folder.name, "random%s.tape" % seed)
                subprocess.run([MAKE_FORMAT_TRACE, "random", seed, trace], check=True)
                ours, theirs = self.dump(trace), self.read_as_documented(trace)
                self.assertEqual(len(ours.splitlines()), 2001)
                self.assertEqual(ours, theirs)

    def test_zstd_itself_finds_finished_traces_whole(self):
        trace = os.path.join(self.folder.name, "desktop.tape")
        subprocess.run([MAKE_TRACE, trace, "20000", "600", "kind=desktop", "frame=300"], check=True)
        for path in trace, os.path.realpath(GOLDEN):
            subprocess.run(["zstd", "-tq", path], check=True)

    def test_every_message_decodes_with_protoc(self):
        plain = decompressed(GOLDEN)
        kinds = []
        while plain:
            size, shift = 0, 0
            while True:
                byte, plain = plain[0], plain[1:]
                size |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            text = subprocess.run(["protoc", "--decode=blktape.proto.Message", "-I", "format", "format/trace.proto"],
                                  input=plain[:size], stdout=subprocess.PIPE, check=True).stdout.decode()
            kinds.append(text.split()[0])
            plain = plain[size:]
        self.assertEqual(kinds, ["header", "frame", "process_names", "batch", "frame", "loss", "process_names",
                                 "batch", "queued_sizes", "frame", "summary"])


if __name__ == "__main__":
    cases.main()
