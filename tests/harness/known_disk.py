"""A disk of known speed: a FUSE file in memory, whose requests take as long as asked, under a loop device."""

import os
import subprocess
import time

PROGRAM = "tests/harness/known_disk_program"


def set_queue(device):
    """A loop device keeps the queue that somebody gave it before."""
    queue = "/sys/block/%s/queue/" % os.path.basename(device)
    for setting, value in (("scheduler", "none"), ("nomerges", "0"), ("read_ahead_kb", "128")):
        with open(queue + setting, "w", encoding="ascii") as file:
            file.write(value)


class KnownDisk:
    """Mounts on the new folder `folder`; `callback(function, *arguments, **named)` is called for each thing to undo
    at the end, last first. `speed` is (read us, write us, flush us, ns a byte of a unit, units), with a sixth where
    all bytes cross one link: its ns a byte. `run_by` are words before the program's command."""

    def __init__(self, folder, size_mib, speed, callback, run_by=()):
        self.folder = folder
        os.mkdir(folder)
        # The disk goes before all who wait for it: else its speed would be that of the processor.
        read_us, write_us, flush_us, ns_a_byte, units, link_ns_a_byte = (*speed, 0)[:6]
        numbers = (size_mib, read_us, write_us, flush_us, ns_a_byte, units, link_ns_a_byte)
        program = subprocess.Popen([*run_by, "chrt", "-r", "50", PROGRAM, folder, *map(str, numbers)])
        callback(self._end, program)
        disk = os.path.join(folder, "disk")
        for _ in range(200):
            if os.path.exists(disk):
                break
            time.sleep(0.05)
        self.device = subprocess.check_output(["losetup", "-f", "--show", "--direct-io=on", disk], text=True).strip()
        callback(subprocess.run, ["losetup", "-d", self.device], check=True)
        set_queue(self.device)

    def _end(self, program):
        # The kernel lets go of a loop device a moment after its last user.
        for _ in range(50):
            if subprocess.run(["umount", self.folder], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            # Busy for longer than a loop device stays: it goes once its last user has.
            program.terminate()
            subprocess.run(["umount", "-l", self.folder], check=False)
        program.wait()
