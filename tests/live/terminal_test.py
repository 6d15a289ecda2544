"""What a person at a terminal sees while a recording runs."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
import unittest

from tests.harness import blktape, cases, devices, direct_io

NUMBER = r"\d[\d,]*(?:\.\d+)?"
LINE = re.compile(r"\d+:\d\d:\d\d  (\d+) I/Os?  %s/s  4K (%s) %%  depth %s  lost (\d+)  %s [KMG]?i?B" % ((NUMBER,) * 4))
SHORT = re.compile(r"\d+:\d\d:\d\d  40 I/Os(?:  %s/s)?  lost 0(?:  .*)?" % NUMBER)


class Terminal:
    """A terminal of so many columns and what has been written to it."""

    def __init__(self, test, columns):
        ours, self.theirs = pty.openpty()
        self._ours = os.fdopen(ours, "rb")
        test.addCleanup(self._ours.close)
        test.addCleanup(os.close, self.theirs)
        os.set_blocking(ours, False)
        self.resize(columns)
        self.text = ""

    def resize(self, columns):
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def take(self, hangup=signal.SIG_DFL):
        """In a child: makes it the terminal of a session of its own."""
        signal.signal(signal.SIGHUP, hangup)
        os.setsid()
        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)

    def close(self):
        self._ours.close()

    def read(self):
        try:
            self.text += os.read(self._ours.fileno(), 1 << 16).decode()
        except BlockingIOError:
            pass
        return self.text

    def live_lines(self):
        """What each carriage return began, up to the clearing of the rest of the line."""
        return [line.split("\033[K")[0] for line in self.read().split("\r")[1:] if "\033[K" in line]


class TerminalTest(unittest.TestCase):
    def setUp(self):
        devices.need_devices()
        self.scratch = devices.Scratch(self)
        self.disk = self.scratch.loop(64 << 20)

    def record(self, stderr, stdout=subprocess.DEVNULL, first=None, **variables):
        process = subprocess.Popen([blktape.PROGRAM, "record", "--device", self.disk, "-o", self.scratch.path("a.tape")],
                                   stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, preexec_fn=first,
                                   env={**os.environ, **variables})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, what, condition):
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def test_a_line_of_figures_fits_the_terminal_and_goes_when_the_recording_ends(self):
        terminal = Terminal(self, columns=100)
        process = self.record(terminal.theirs, TERM="xterm")
        self.wait_for("recording", lambda: "recording " in terminal.read())
        self.assertIn("^C ends it", terminal.text)
        self.wait_for("a first line", lambda: any(LINE.search(line) for line in terminal.live_lines()))
        # By hand: 30 of 40 are of 4 KiB.
        direct_io.perform(self.disk, [("write", 8192 * i, 4096) for i in range(30)] +
                          [("read", 65536 * i, 16384) for i in range(10)])
        self.wait_for("the 40 I/Os", lambda: any(line[1] == "40" for line in
                                                 map(LINE.search, terminal.live_lines()) if line))
        figures = [LINE.search(line) for line in terminal.live_lines()]
        counted = next(line for line in figures if line and line[1] == "40")
        self.assertEqual((counted[2], counted[3]), ("75.0", "0"))
        self.assertLess(max(map(len, terminal.live_lines())), 100)
        for columns in 40, 30:
            terminal.resize(columns)
            wide = len(terminal.live_lines())
            # The one that was under way may still be wide.
            self.wait_for("narrow lines", lambda wide=wide: len(terminal.live_lines()) >= wide + 3)
            for line in terminal.live_lines()[wide + 1:]:
                self.assertLess(len(line), columns, line)
                self.assertRegex(line, SHORT)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertTrue(terminal.read().endswith("\r\033[K"), repr(terminal.text[-100:]))

    def test_a_terminal_that_takes_no_escapes_gets_none(self):
        terminal = Terminal(self, columns=80)
        process = self.record(terminal.theirs, TERM="dumb")
        self.wait_for("recording", lambda: "recording " in terminal.read())
        # Longer than the second after which another would have had its next line.
        time.sleep(2.5)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 0)
        said = terminal.read().replace("\r\n", "\n")
        self.assertNotRegex(said, r"[\r\033]")
        self.assertRegex(said, r"\Arecording [^\n]* into [^\n]*a\.tape; \^C ends it\n(not used: [^\n]*\n)*\Z")

    def test_where_there_is_no_terminal_there_is_no_line(self):
        with open(self.scratch.path("log"), "w+b") as log:
            process = self.record(log)
            self.wait_for("recording", lambda: b"recording " in os.pread(log.fileno(), 1 << 16, 0))
            # Longer than the second after which a terminal would have had its next line.
            time.sleep(2.5)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), 0)
            said = os.pread(log.fileno(), 1 << 16, 0).decode()
        # What it says when it begins is the last.
        self.assertRegex(said, r"\Arecording [^\n]* into [^\n]*a\.tape\n(not used: [^\n]*\n)*\Z")
        self.assertNotRegex(said, r"[\r\033]")

    def test_it_goes_on_when_whoever_read_what_it_says_has_gone(self):
        theirs, ours = os.pipe()
        process = self.record(ours, stdout=ours)
        os.close(ours)
        with open(theirs, encoding="utf-8") as said:
            self.assertIn("recording ", said.readline())
        direct_io.perform(self.disk, direct_io.forty())
        process.send_signal(signal.SIGTERM)
        # What it says at the end reaches nobody, which is no success; the trace is.
        self.assertEqual(process.wait(timeout=60), 1)
        self.check_forty()

    def check_forty(self):
        told = blktape.as_json("info", self.scratch.path("a.tape"))
        self.assertTrue(told["whole"])
        self.assertEqual(told["records"], 40)

    def test_it_ends_in_order_with_its_terminal(self):
        terminal = Terminal(self, columns=80)
        process = self.record(terminal.theirs, first=terminal.take)
        self.wait_for("recording", lambda: "recording " in terminal.read())
        direct_io.perform(self.disk, direct_io.forty())
        terminal.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.check_forty()
        self.assertEqual(os.listdir(self.scratch.folder).count("a_2.tape"), 0)

    def test_under_nohup_it_outlives_its_terminal(self):
        terminal = Terminal(self, columns=80)
        process = self.record(terminal.theirs, first=lambda: terminal.take(signal.SIG_IGN))
        self.wait_for("recording", lambda: "recording " in terminal.read())
        terminal.close()
        direct_io.perform(self.disk, direct_io.forty())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 0)
        self.check_forty()


if __name__ == "__main__":
    cases.main()
