"""What is done on a device is what a recording holds: nothing else, nothing less, in order."""

import os
import subprocess
import unittest

from tests.harness import blktape, cases, devices, direct_io

# Two children with one process id, of which the first gives itself a name and the second none; prints that id.
SAME_PID = r"""
import ctypes, os, sys
sys.path.insert(0, sys.argv[2])
from tests.harness import direct_io

def child(name, pid):
    for _ in range(1000):
        if pid:
            with open("/proc/sys/kernel/ns_last_pid", "w") as file:
                file.write(str(pid - 1))
        forked = os.fork()
        if forked == 0:
            if pid in (0, os.getpid()):
                if name:
                    ctypes.CDLL(None).prctl(15, name)
                direct_io.perform(sys.argv[1], [("read", 0, 4096)])
            os._exit(0)
        os.waitpid(forked, 0)
        if pid in (0, forked):
            return forked
    sys.exit("no second process got the id %d" % pid)

pid = child(b"the first", 0)
child(b"", pid)
print(pid)
"""
WORKER = os.path.realpath(direct_io.__file__)


class RecordTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        devices.private_mounts()
        self.scratch = devices.Scratch(self)
        self.device = self.scratch.loop(direct_io.MIXED_SPAN_BYTES)
        self.trace = self.scratch.path("a.tape")

    def record(self, source, *command):
        """Records `command` by `source`; returns its process id and the records of that process."""
        said = blktape.ok("record", "--device", self.device, "--source", source, "--settle", "0s", "-o", self.trace, "--",
                          "/usr/bin/python3", WORKER, self.device, *command).stdout
        pid = said.split("\n", 1)[0]
        return pid, [row for row in blktape.dump(self.trace) if row["pid"] == pid]

    def check_forty(self, source):
        pid, rows = self.record(source, "forty")
        want = [(op, str(offset // 512), str(size)) for op, offset, size in direct_io.forty()]
        self.assertEqual([(row["op"], row["lba"], row["bytes"]) for row in rows], want)
        for row in rows:
            self.assertEqual(row["process"], "python3")
            self.assertEqual(row["device"], os.path.basename(self.device))
            self.assertEqual(row["error"], "0")
            self.assertLessEqual(int(row["queue_ns"]), int(row["issue_ns"]))
            self.assertLess(int(row["issue_ns"]), int(row["complete_ns"]))
        # One at a time: each was complete before the next was queued.
        for before, after in zip(rows, rows[1:]):
            self.assertLess(int(before["complete_ns"]), int(after["queue_ns"]))

    def test_forty_direct_ios_by_tracefs_are_forty_records(self):
        self.check_forty("tracefs")

    def test_forty_direct_ios_by_bpf_are_forty_records(self):
        self.check_forty("bpf")

    def test_a_process_with_the_id_of_a_dead_one_has_its_own_name(self):
        for source in ("bpf", "tracefs"):
            with self.subTest(source):
                said = blktape.ok("record", "--device", self.device, "--source", source, "--settle", "0s", "-o",
                                  self.trace, "--", "/usr/bin/python3", "-c", SAME_PID, self.device, os.getcwd()).stdout
                names = [row["process"] for row in blktape.dump(self.trace) if row["pid"] == said.split()[0]]
                os.unlink(self.trace)
                self.assertEqual(names, ["the first", "python3"])

    def test_auto_says_which_source_it_took(self):
        self.record("auto", "forty")
        self.assertRegex(blktape.ok("info", self.trace).stdout, r"\b(bpf|tracefs)\b")

    def test_a_finished_trace_is_a_zstd_file(self):
        self.record("auto", "mixed", "1", "400")
        subprocess.run(["zstd", "-tq", self.trace], check=True)
        self.assertEqual(os.stat(self.trace).st_mode & 0o777, 0o600)
        self.assertFalse(os.path.exists(self.trace + ".partial"))

    def test_the_exit_status_of_the_command_is_not_lost(self):
        result = blktape.run("record", "--device", self.device, "--settle", "0s", "-o", self.trace, "--", "sh", "-c", "exit 5")
        self.assertEqual(result.returncode, 1)
        self.assertTrue(os.path.exists(self.trace))

    def test_a_recorder_needs_more_files_than_its_command_may_open(self):
        few = 12
        words = ["record", "--device", self.device, "--settle", "0s", "-o", self.trace, "--",
                 "sh", "-c", "ulimit -Sn > %s.limit" % self.trace]
        result = subprocess.run(["sh", "-c", 'ulimit -Sn %d; exec "$@"' % few, "sh", blktape.PROGRAM, *words],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.trace + ".limit", encoding="ascii") as file:
            self.assertEqual(int(file.read()), few)

    def test_an_existing_trace_is_never_overwritten(self):
        with open(self.trace, "w") as file:
            file.write("precious")
        result = blktape.run("record", "--device", self.device, "--settle", "0s", "-o", self.trace, "--", "true")
        self.assertEqual(result.returncode, 1)
        self.assertIn(self.trace, result.stderr)
        with open(self.trace) as file:
            self.assertEqual(file.read(), "precious")

    def test_mixed_work_is_whole_in_count_and_bytes(self):
        pid, rows = self.record("auto", "mixed", "7", "1500")
        requests = direct_io.mixed(7, 1500)
        for op in ("read", "write"):
            want = [(str(offset // 512), str(size)) for kind, offset, size in requests if kind == op]
            self.assertEqual([(row["lba"], row["bytes"]) for row in rows if row["op"] == op], want, op)
        # Flush requests are issued by a kernel worker or by the process itself, as the kernel likes.
        flushes = [row for row in blktape.dump(self.trace) if row["op"] == "flush"]
        self.assertEqual(len(flushes), sum(kind == "flush" for kind, _, _ in requests))

    def test_info_of_a_recording_names_device_host_and_wholeness(self):
        self.record("auto", "forty")
        info = blktape.ok("info", self.trace).stdout
        self.assertIn(os.path.basename(self.device), info)
        self.assertIn(os.uname().release, info)

    def test_nothing_stays_behind_in_tracefs(self):
        if not os.path.ismount("/sys/kernel/tracing"):
            subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=True)
        before = set(os.listdir("/sys/kernel/tracing/instances"))
        self.record("tracefs", "forty")
        self.assertLessEqual(set(os.listdir("/sys/kernel/tracing/instances")), before)


if __name__ == "__main__":
    cases.main()
