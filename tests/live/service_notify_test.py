"""What the recorder tells systemd (Type=notify, WatchdogSec=), as systemd hears it: a datagram a message on the
socket that NOTIFY_SOCKET names (sd_notify(3))."""

import os
import signal
import socket
import tempfile
import time
import unittest

from tests.harness import blktape, cases, devices, direct_io
from tests.live import recording

WATCHDOG_S = 2.0


class ServiceNotifyTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)
        self.device = self.scratch.loop(16 << 20)
        # A short path: the address of a socket has 108 bytes.
        folder = tempfile.TemporaryDirectory(prefix="blktape-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(os.path.join(folder.name, "notify"))
        self.heard = []  # (moment, key, value)

    def listen(self, seconds, until=None):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and any(key == until for _, key, _ in self.heard)):
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                message = self.socket.recv(4096).decode()
            except TimeoutError:
                continue
            for line in message.splitlines():
                key, _, value = line.partition("=")
                self.heard.append((time.monotonic(), key, value))

    def moments(self, key):
        return [moment for moment, heard, _ in self.heard if heard == key]

    def start(self, **environment):
        recorder = recording.Recording(self, self.device, environment={
            "NOTIFY_SOCKET": self.socket.getsockname(), **environment})
        return recorder.__enter__()

    def test_it_says_when_it_records_and_when_it_stops(self):
        recorder = self.start()
        self.listen(10, until="READY")
        self.assertEqual([value for _, key, value in self.heard if key == "READY"], ["1"])
        # What is done from here on is in the trace.
        direct_io.perform(self.device, direct_io.transfers(seed=1, count=10, span_bytes=16 << 20))
        self.listen(0.2)
        self.assertEqual(self.moments("STOPPING"), [])
        recorder.stop()
        self.listen(10, until="STOPPING")
        self.assertEqual([value for _, key, value in self.heard if key == "STOPPING"], ["1"])
        self.assertEqual(self.moments("WATCHDOG"), [], "nobody asked for it")
        mine = [row for row in blktape.dump(recorder.trace) if int(row["pid"]) == os.getpid()]
        self.assertEqual(len(mine), 10)

    def test_the_watchdog_hears_of_it_in_time_and_no_more_once_it_hangs(self):
        recorder = self.start(WATCHDOG_USEC=str(int(WATCHDOG_S * 1e6)))
        self.listen(10, until="READY")
        begin = time.monotonic()
        self.listen(2.5 * WATCHDOG_S)
        alive = [begin, *self.moments("WATCHDOG"), time.monotonic()]
        self.assertGreaterEqual(len(alive), 2 + 3)
        self.assertLess(max(b - a for a, b in zip(alive, alive[1:])), WATCHDOG_S)
        os.kill(recorder.pid, signal.SIGSTOP)
        self.listen(0.2)
        self.heard.clear()
        self.listen(WATCHDOG_S)
        self.assertEqual(self.heard, [])
        os.kill(recorder.pid, signal.SIGCONT)
        self.listen(10, until="WATCHDOG")
        self.assertNotEqual(self.moments("WATCHDOG"), [])
        recorder.stop()


if __name__ == "__main__":
    cases.main()
