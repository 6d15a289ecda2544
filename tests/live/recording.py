"""A recording that runs beside a test: `with Recording(test, device) as recorder: ...`."""

import os
import signal
import subprocess
import tempfile
import time

from tests.harness import blktape, cases


class BySource:
    """Tests of a class that has check(source): by each source that records live."""

    def test_by_tracefs(self):
        self.check("tracefs")

    def test_by_bpf(self):
        cases.need(os.path.exists("/sys/kernel/btf/vmlinux"), "this kernel has no type information")
        self.check("bpf")


class Recording:
    """Begun when entered; finished, which must succeed, when left. Then `trace` is whole."""

    def __init__(self, test, device, source="auto", trace=None, options=(), statuses=(0,), environment=None):
        self._test = test
        if trace is None:
            folder = tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR"))
            test.addCleanup(folder.cleanup)
            trace = os.path.join(folder.name, "a.tape")
        self.trace = trace
        self.partial = trace + ".partial"
        self._words = ["record", "--source=" + source, "--device", device, "-o", trace, *options]
        self._statuses = statuses
        self._environment = {**os.environ, **(environment or {})}
        self._stopped = False
        self.said = ""

    def __enter__(self):
        self._log = tempfile.TemporaryFile(dir=os.environ.get("TEST_TMPDIR"))
        self._test.addCleanup(self._log.close)
        self._process = subprocess.Popen([blktape.PROGRAM, *self._words], stdin=subprocess.DEVNULL,
                                         stdout=self._log, stderr=self._log, env=self._environment)
        self._test.addCleanup(self._process.wait)
        self._test.addCleanup(self._process.kill)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if "recording " in self._read():
                return self
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError("no recording: " + self._read())

    def __exit__(self, kind, *_):
        if kind is None and not self._stopped:
            self.stop()

    @property
    def pid(self):
        return self._process.pid

    def stop(self, how=signal.SIGTERM):
        self._stopped = True
        self._process.send_signal(how)
        status = self._wait(time.monotonic() + 60)
        self.said = self._read()
        if how != signal.SIGKILL and status not in self._statuses:
            raise AssertionError("recording ended with %d: %s" % (status, self.said))

    def _wait(self, until):
        """As Popen.wait, and keeps what the process has used (as in getrusage)."""
        while True:
            pid, status, self.usage = os.wait4(self.pid, os.WNOHANG)
            if pid != 0:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return self._process.returncode
            if time.monotonic() > until:
                raise AssertionError("the recording does not end: " + self._read())
            time.sleep(0.005)

    def _read(self):
        # At a place of its own: the file's position is shared with the writer.
        return os.pread(self._log.fileno(), 1 << 20, 0).decode(errors="replace")
