"""Loop devices and mounts of a test's own, removed when the test ends however it ends."""

import ctypes
import os
import subprocess
import tempfile

from tests.harness import cases

CLONE_NEWNS = 0x00020000


def need_devices():
    """Skips (in CI: fails) unless this process may make loop devices and mounts."""
    cases.need(os.geteuid() == 0, "making loop devices needs root")
    cases.need(subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode == 0,
               "this system gives no loop devices")


def private_mounts():
    """Mounts made from here on are seen by this process and its children alone, and vanish with them.

    Without it a sandbox that starts meanwhile keeps a copy of a mount, and the device stays busy.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


class Scratch:
    """A folder and what hangs on it. In a test: self.scratch = Scratch(self)."""

    def __init__(self, test):
        self._folder = tempfile.TemporaryDirectory(prefix="blktape-test.", dir=os.environ.get("TEST_TMPDIR"))
        self.folder = self._folder.name
        test.addCleanup(self._folder.cleanup)
        self._test = test

    def path(self, name):
        return os.path.join(self.folder, name)

    def image(self, name, size_bytes):
        path = self.path(name)
        with open(path, "wb") as file:
            file.truncate(size_bytes)
        return path

    def loop(self, size_bytes, name=None, sector=512):
        """A loop device over a new sparse file; gone when the test ends."""
        path = self.image(name or "image%d" % len(os.listdir(self.folder)), size_bytes)
        device = subprocess.check_output(["losetup", "-f", "--show", "--sector-size", str(sector), path],
                                         text=True).strip()
        self._test.addCleanup(subprocess.run, ["losetup", "-d", device], check=True)
        subprocess.run(["blockdev", "--setra", "256", device], check=True)
        return device

    def mount_ext4(self, device, name="mnt"):
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device],
                       check=True)
        point = self.path(name)
        os.mkdir(point)
        subprocess.run(["mount", "-o", "noatime", device, point], check=True)
        self._test.addCleanup(subprocess.run, ["umount", point], check=False, stderr=subprocess.DEVNULL)
        return point


class Zram:
    """A zram device of the test's own, gone when the test ends."""

    def __init__(self, test, size_bytes):
        cases.need(os.path.exists("/sys/class/zram-control/hot_add"), "this kernel has no zram")
        with open("/sys/class/zram-control/hot_add", encoding="ascii") as file:
            self.number = int(file.read())
        test.addCleanup(self._remove)
        with open("/sys/block/zram%d/disksize" % self.number, "w", encoding="ascii") as file:
            file.write(str(size_bytes))
        self.path = "/dev/zram%d" % self.number

    def _remove(self):
        # udev and the like may look at it for a moment.
        subprocess.run(["udevadm", "settle"], check=False)
        with open("/sys/class/zram-control/hot_remove", "w", encoding="ascii") as file:
            file.write(str(self.number))
