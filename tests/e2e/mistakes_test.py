"""What goes wrong at a user's hands: named, explained, with the exit status that fits, harming nothing."""

import glob
import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import tempfile
import unittest

from tests.harness import blktape, cases, devices

SAMPLE = "tests/data/sample.tape"


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class MissingFileTest(unittest.TestCase):
    def check_refused(self, code, *words, says=()):
        result = blktape.run(*words)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        for text in says:
            self.assertIn(text, result.stderr)

    def test_a_trace_that_is_not_there_is_named(self):
        for verb in (["info"], ["analyze"], ["dump"], ["replay", "--target", "/dev/null"],
                     ["score", "--target", "/dev/null"], ["import", "-o", "/nonexistent/x.tape"]):
            with self.subTest(verb[0]):
                self.check_refused(1, verb[0], "no-such.tape", *verb[1:], says=["no-such.tape"])

    def test_a_file_that_is_no_trace_is_called_so(self):
        for verb in (["info"], ["analyze"], ["dump"], ["replay", "--target", "/dev/null"],
                     ["import", "-o", "/nonexistent/x.tape"]):
            with self.subTest(verb[0]):
                self.check_refused(1, verb[0], "/bin/true", *verb[1:], says=["/bin/true"])

    def test_a_folder_is_no_trace(self):
        for verb in ("info", "analyze", "dump"):
            with self.subTest(verb):
                self.check_refused(1, verb, "/tmp", says=["/tmp"])

    def test_an_empty_file_is_no_trace(self):
        for verb in ("info", "analyze", "dump"):
            with self.subTest(verb):
                self.check_refused(1, verb, "/dev/null", says=["/dev/null"])

    def test_a_trace_that_is_replayed_is_a_file(self):
        for verb in (["replay", "-", "--engine", "null"], ["score", "-", "--target", SAMPLE]):
            self.check_refused(2, *verb, says=["standard input", "read more than once"])

    def test_a_trace_without_anything_to_wait_for_has_no_score(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            empty, target = os.path.join(folder, "empty.tape"), os.path.join(folder, "target.img")
            blktape.ok("replay", SAMPLE, "--engine", "null", "--max", "--to", "0s", "-o", empty)
            with open(target, "wb") as file:
                file.truncate(1 << 20)
            self.check_refused(1, "score", empty, "--target", target, "-o", os.path.join(folder, "score"),
                               says=["nothing to score"])
            self.assertEqual(sorted(os.listdir(folder)), ["empty.tape", "target.img"])

    def test_a_missing_argument_is_usage(self):
        for verb in ("info", "analyze", "dump", "replay", "score", "import", "record", "prepare", "recover"):
            with self.subTest(verb):
                self.check_refused(2, verb)

    def test_a_preparation_takes_only_flags_of_its_state(self):
        for state, other, words in (("used", "fresh", ["--trace", SAMPLE]), ("fresh", "used", ["--rounds", "5"])):
            self.check_refused(2, "prepare", "--state", state, "--target", "/dev/null", *words,
                               says=[words[0] + " goes with --state " + other])

    def test_a_queue_depth_beyond_all_is_refused(self):
        for flag in ("--queue-depth", "--depth"):
            for depth in ("32768", "99999999999"):
                self.check_refused(2, "replay", SAMPLE, "--engine", "null", flag, depth, says=["at most 32767"])

    def test_an_impossible_speed_is_refused(self):
        for speed in ("0", "-1", "nan", "inf", "1e-9", "1e9"):
            self.check_refused(2, "replay", SAMPLE, "--engine", "simulated", "--speed", speed, says=["0.001 to 1000000"])

    def test_a_replay_no_times_is_refused(self):
        self.check_refused(2, "replay", SAMPLE, "--engine", "null", "--max", "--loop", "0", says=["--repeat"])

    def test_a_piece_beyond_the_end_of_the_trace_is_refused(self):
        times = [int(row["queue_ns"] or row["issue_ns"]) for row in blktape.dump(SAMPLE)]
        length = max(times) - min(times)
        for verb in (["replay", "--engine", "null"], ["replay", "--engine", "null", "--dry-run"], ["analyze"],
                     ["dump"]):
            with self.subTest(" ".join(verb)):
                self.check_refused(2, verb[0], SAMPLE, *verb[1:], "--from", "%dns" % (length + 1),
                                   says=["beyond the end of the trace", "%d ns" % length])
        self.assertEqual(len(blktape.dump(SAMPLE, "--from", "%dns" % length)), 1)

    def test_a_plan_without_an_end_is_refused(self):
        for words in ([], ["--max"], ["--max", "--duration", "1s"]):
            self.check_refused(2, "replay", SAMPLE, "--engine", "null", "--dry-run", "--repeat", *words,
                               says=["has no end"])

    def test_a_replay_needs_a_target(self):
        self.check_refused(2, "replay", SAMPLE, says=["--target"])

    def test_a_target_that_is_not_there_is_named(self):
        self.check_refused(1, "replay", SAMPLE, "--target", "/dev/no-such-disk", "--overwrite", "--yes",
                           says=["/dev/no-such-disk"])

    def test_no_target_is_made_where_the_result_cannot_be_kept(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            target, result = os.path.join(folder, "target.img"), os.path.join(folder, "result.tape")
            with open(result, "w", encoding="ascii") as file:
                file.write("precious")
            self.check_refused(1, "replay", SAMPLE, "--target", target, "--create", "-o", result, says=[result])
            self.assertEqual(os.listdir(folder), ["result.tape"])
            with open(result, encoding="ascii") as file:
                self.assertEqual(file.read(), "precious")

    def test_no_target_is_left_where_no_run_began_on_it(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            target, out = os.path.join(folder, "target.img"), os.path.join(folder, "out")
            for verb in ("score", "bench"):
                # That no window fits into the budget is known once the reference is computed.
                refused = blktape.run(verb, SAMPLE, "--target", target, "--create", "--budget", "1ms", "--no-db", "-o", out)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn("the budget is too small", refused.stderr)
                self.assertIn("removed " + target, refused.stderr)
                self.assertEqual(os.listdir(folder), [])

    def test_a_record_of_a_device_that_is_not_there_is_named(self):
        self.check_refused(1, "record", "--device", "/dev/no-such-disk", "-o", "/tmp/never.tape", "--", "true",
                           says=["no-such-disk"])
        self.assertFalse(os.path.exists("/tmp/never.tape"))


class SharedTargetTest(unittest.TestCase):
    """Several recorded devices sent to the same addresses of one target: done, and told."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.trace, self.target = (os.path.join(folder.name, name) for name in ("two.tape", "target.img"))
        blktape.ok("import", "-o", self.trace, *sorted(glob.glob("tests/capture/data/*.zst")))
        self.shared = "loop2, nvme0n1 on " + self.target

    def test_a_replay_warns_and_its_result_says_so(self):
        words = ["replay", self.trace, "--target", self.target, "--create", "--max", "--unsupported", "skip", "--json"]
        done = blktape.ok(*words, "--to", "1s")
        self.assertIn("warning: %s: their I/Os go to the same addresses\n  try:  --map " % self.shared, done.stderr)
        self.assertEqual(json.loads(done.stdout)["shared"], [self.shared])
        done = blktape.ok(*words[:-1], "--map", "loop2=none", "--to", "1s")
        self.assertNotIn("same addresses", done.stderr + done.stdout)

    def test_a_preview_says_so(self):
        done = blktape.ok("replay", self.trace, "--target", self.target, "--create", "--unsupported", "skip", "--dry-run",
                          "--to", "1s")
        self.assertIn("warning: " + self.shared, done.stderr)


class WithoutRightsTest(unittest.TestCase):
    """What an ordinary user may not: refused by name, with a way out, and nothing left behind."""

    NOBODY = 65534

    def setUp(self):
        devices.need_devices()  # root, who can become somebody else
        self.scratch = devices.Scratch(self)
        # The build's own folders are closed to others.
        self.folder = tempfile.mkdtemp(prefix="blktape-test.", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        self.program = shutil.copy(blktape.PROGRAM, self.folder)
        self.trace = shutil.copy(SAMPLE, self.folder)
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)
        os.chown(self.home, self.NOBODY, self.NOBODY)

    def run_as_nobody(self, *words):
        return subprocess.run([self.program, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              user=self.NOBODY, group=self.NOBODY, extra_groups=[], cwd=self.home,
                              env={"HOME": self.home, "PATH": os.environ["PATH"]}, check=False)

    def check_refused(self, *words, says):
        result = self.run_as_nobody(*words)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        self.assertRegex(result.stderr, r"\n  try:  (sudo blktape|as root)")
        for text in says:
            self.assertIn(text, result.stderr)
        self.assertEqual(os.listdir(self.home), [])

    def test_a_recording_is_refused(self):
        device = self.scratch.loop(1 << 20)
        for source in ("auto", "tracefs", "bpf"):
            with self.subTest(source):
                self.check_refused("record", "--device", device, "--source", source, "-o", "a.tape", "--", "true",
                                   says=["root"])

    def test_another_users_device_is_no_target(self):
        device = self.scratch.loop(1 << 30, "disk.img")
        before = digest(self.scratch.path("disk.img"))
        for words in (["replay", self.trace], ["score", self.trace], ["prepare", "--state", "used"]):
            with self.subTest(words[0]):
                self.check_refused(*words, "--target", device, "--overwrite", "--yes", says=[device])
        self.assertEqual(digest(self.scratch.path("disk.img")), before)

    def test_an_unreadable_trace_is_named(self):
        os.chmod(self.trace, 0o600)
        for words in (["info"], ["analyze"], ["dump"], ["recover", "-o", "b.tape"], ["import", "-o", "b.tape"],
                      ["replay", "--engine", "null"], ["score", "--target", "scratch.img", "--create"]):
            with self.subTest(words[0]):
                self.check_refused(words[0], self.trace, *words[1:], says=[self.trace])

    def test_a_folder_closed_to_the_user_takes_no_trace(self):
        closed = os.path.join(self.folder, "closed")
        os.mkdir(closed, 0o700)
        trace = os.path.join(closed, "b.tape")
        for words in (["replay", self.trace, "--engine", "null", "--max"], ["recover", self.trace]):
            with self.subTest(words[0]):
                self.check_refused(*words, "-o", trace, says=[trace, "Permission denied"])

    def test_what_needs_no_rights_works(self):
        target = os.path.join(self.home, "scratch.img")
        result = self.run_as_nobody("replay", self.trace, "--target", target, "--create", "--max", "--to", "1s")
        self.assertEqual(result.returncode, 0, result.stderr)


class TargetRefusalTest(unittest.TestCase):
    """Each is refused before one byte changes."""

    @classmethod
    def setUpClass(cls):
        devices.need_devices()
        devices.private_mounts()

    def setUp(self):
        self.scratch = devices.Scratch(self)

    def check_refused(self, device, image, *words, says):
        before = digest(image)
        for verb in (["replay", SAMPLE], ["score", SAMPLE],
                     ["prepare", "--state", "fresh", "--trace", SAMPLE]):
            result = blktape.run(*verb, "--target", device, "--yes", *words)
            self.assertEqual(result.returncode, 1, verb[0] + ": " + result.stderr)
            self.assertRegex(result.stderr, says)
        self.assertEqual(digest(image), before)

    def test_a_mounted_device_even_with_overwrite(self):
        device = self.scratch.loop(256 << 20, "disk.img")
        point = self.scratch.mount_ext4(device)
        subprocess.run(["sync", "-f", point], check=True)
        self.check_refused(device, self.scratch.path("disk.img"), "--overwrite", says=" mounted on ")

    def test_a_file_system_without_overwrite(self):
        device = self.scratch.loop(1 << 30, "disk.img")
        subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
        self.check_refused(device, self.scratch.path("disk.img"), says="ext4")

    def test_swap_in_use(self):
        device = self.scratch.loop(64 << 20, "disk.img")
        subprocess.run(["mkswap", "-q", device], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["swapon", device], check=True)
        self.addCleanup(subprocess.run, ["swapoff", device], check=True)
        self.check_refused(device, self.scratch.path("disk.img"), "--overwrite", says="is swap")

    def test_a_target_that_is_too_small(self):
        device = self.scratch.loop(8 << 20, "disk.img")
        self.check_refused(device, self.scratch.path("disk.img"), "--overwrite", says="is too small: the trace reaches")

    def test_a_control_c_at_the_question(self):
        device = self.scratch.loop(1 << 30, "disk.img")
        subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "attic", device], check=True)
        before = digest(self.scratch.path("disk.img"))
        for verb in (["replay", SAMPLE], ["score", SAMPLE], ["prepare", "--state", "used"]):
            with self.subTest(verb[0]):
                ours, theirs = pty.openpty()
                with subprocess.Popen([blktape.PROGRAM, *verb, "--target", device, "--overwrite"], stdin=theirs,
                                      stderr=subprocess.PIPE) as process:
                    self.addCleanup(process.kill)
                    asked = b""
                    while not asked.endswith(b"Type yes to go on: "):
                        asked += process.stderr.read1()
                    process.send_signal(signal.SIGINT)
                    said = process.stderr.read()
                os.close(theirs)
                os.close(ours)
                self.assertEqual(process.returncode, 1)
                # What would have gone is named before the question.
                self.assertIn(device.encode(), asked)
                self.assertIn(b"which holds an ext4 file system (label attic)", asked)
                self.assertIn(b"error: not confirmed; nothing was written", said)
        self.assertEqual(digest(self.scratch.path("disk.img")), before)

    def test_a_device_that_became_another_one_at_the_question(self):
        device = self.scratch.loop(1 << 30, "disk.img")
        other = self.scratch.image("other.img", 1 << 30)
        ours, theirs = pty.openpty()
        with subprocess.Popen([blktape.PROGRAM, "replay", SAMPLE, "--target", device, "--overwrite"], stdin=theirs,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            said = b""
            while not said.endswith(b"Type yes to go on: "):
                said += process.stderr.read1()
            subprocess.run(["losetup", "-d", device], check=True)
            subprocess.run(["losetup", device, other], check=True)
            os.write(ours, b"yes\n")
            said = process.stderr.read()
        os.close(theirs)
        os.close(ours)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(said, b"error: %s is not what it was when this began" % device.encode())
        self.assertEqual(os.stat(other).st_blocks, 0)

    def test_a_read_only_device(self):
        device = self.scratch.loop(1 << 30, "disk.img")
        subprocess.run(["blockdev", "--setro", device], check=True)
        self.addCleanup(subprocess.run, ["blockdev", "--setrw", device], check=True)
        self.check_refused(device, self.scratch.path("disk.img"), "--overwrite", says="is read-only")


if __name__ == "__main__":
    cases.main()
