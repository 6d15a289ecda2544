"""Runs a shell script as root on a kernel of its own: Debian's, booted by qemu (TCG) in a few seconds.

In the guest there is no lockdown; NVMe, virtio-blk, null_blk, scsi_debug and device-mapper are there,
and nothing of the host can be harmed. A test says what it needs and looks at what came back:

    result = Guest(programs=["blktrace"], modules=["null_blk"], disks=[Disk("nvme", 64 << 20)]).run('''
        blktape record --device /dev/nvme0n1 -o /out/a.tape -- dd if=/dev/nvme0n1 of=/dev/null count=8
    ''')
    result.check()                    # the script's exit status was 0
    result.text("a.csv"), result.path("a.tape")   # files the script left in /out

The script runs under `dash -eu` with busybox's applets behind the named programs; blktape is always
there. `attempt NAME COMMAND ...` runs a command that may fail and leaves its output and exit status in
/out/NAME.out, .err and .rc. Modules are loaded before the
script starts, except those given as (name, None), which it loads itself: `insmod /modules/NAME.ko ...`.
"""

import ctypes
import dataclasses
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile

from tests.guest import initramfs
from tests.harness import blktape

OUTBOX_BYTES = 256 << 20

INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/tmp LC_ALL=C DM_DISABLE_UDEV=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /out /root /tmp /run /mnt /var/tmp
mount -t devpts pts /dev/pts
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t debugfs debug /sys/kernel/debug
mount -t tracefs trace /sys/kernel/tracing
ip link set lo up 2>/dev/null
hostname guest
while read -r module; do insmod $module || echo "insmod $module failed"; done < /modules.order
# Not busybox's shell: it runs its own applets before it looks for the programs that came along.
dash -eu /script > /out/stdout 2> /out/stderr &
echo $! > /run/script.pid
wait $!
status=$?
dmesg > /out/dmesg
for disk in /sys/block/vd*; do
  if [ "$(cat $disk/serial)" = outbox ]; then outbox=/dev/${disk##*/}; fi
done
echo "$status" > /out/status
tar -C /out -cf "$outbox" .
sync
echo "guest: script ended with $status"
poweroff -f
"""

PRELUDE = r"""
attempt() {  # NAME COMMAND ...: runs it whatever its outcome; see /out/NAME.{out,err,rc}
  attempt_name=$1
  shift
  attempt_rc=0
  "$@" > /out/$attempt_name.out 2> /out/$attempt_name.err || attempt_rc=$?
  echo $attempt_rc > /out/$attempt_name.rc
}
"""


@dataclasses.dataclass
class Disk:
    """An emulated disk: "nvme" becomes /dev/nvme0n1, nvme1n1 ..., as does "nvme-multipath", which is one that could
    have further paths; "virtio" /dev/vda, vdb ..."""
    kind: str
    size_bytes: int
    serial: str = ""


class GuestResult:
    """What a guest left behind. `folder` is removed with the process's other temporary files."""

    def __init__(self, folder, console, status):
        self.folder, self.console, self.status = folder, console, status

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        with open(self.path(name), errors="replace") as file:
            return file.read()

    def rows(self, name):
        """The records in a file that `blktape dump --csv` wrote."""
        return blktape.rows(self.text(name))

    def rc(self, name):
        return int(self.text(name + ".rc"))

    def check(self):
        if self.status != 0:
            raise AssertionError("the guest's script ended with %s\n--- stdout\n%s\n--- stderr\n%s\n--- dmesg\n%s" % (
                self.status, self.text("stdout")[-4000:], self.text("stderr")[-4000:], self.text("dmesg")[-3000:]))
        return self


def kernel_folder():
    """Where vmlinuz and modules/ lie (tools/setup test puts them there), or None."""
    named = os.environ.get("BLKTAPE_GUEST_KERNEL")
    if named and os.path.exists(os.path.join(named, "vmlinuz")):
        return named
    return None


def missing():
    """Why no guest can run here, or an empty string."""
    if shutil.which("qemu-system-x86_64") is None:
        return "qemu-system-x86_64 is not installed (tools/setup test)"
    if kernel_folder() is None:
        return "no guest kernel: BLKTAPE_GUEST_KERNEL names no folder with vmlinuz (run by ./test)"
    if not os.path.exists("/bin/busybox"):
        return "busybox-static is not installed (tools/setup test)"
    return ""


def _die_with_parent():
    # Bazel kills a test that takes too long with SIGKILL; qemu must not outlive it.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Guest:
    def __init__(self, programs=(), modules=(), disks=(), files=None, memory_mib=1024, cpus=2,
                 kernel_arguments="", timeout_s=240):
        """`files` maps a path in the guest to a path here; `programs` are names found in PATH."""
        self.programs, self.modules, self.disks = list(programs), list(modules), list(disks)
        self.files = dict(files or {})
        self.memory_mib, self.cpus, self.timeout_s = memory_mib, cpus, timeout_s
        self.kernel_arguments = kernel_arguments

    def run(self, script):
        work = tempfile.mkdtemp(prefix="guest.", dir=os.environ.get("TEST_TMPDIR"))
        try:
            return self._run(script, work)
        finally:
            for name in os.listdir(work):
                if name != "out":
                    os.unlink(os.path.join(work, name))

    def _pack(self, script, path):
        archive = initramfs.Archive()
        for folder in ("proc", "sys", "dev", "bin", "sbin", "usr/bin", "usr/sbin", "etc", "lib"):
            archive.folder(folder)
        archive.file("init", INIT.encode(), 0o755)
        archive.file("script", (PRELUDE + script).encode(), 0o755)
        initramfs.add_program(archive, os.path.realpath("/bin/dash"), "usr/bin/dash")
        archive.link("usr/bin/sh", "dash")
        archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
        archive.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        archive.link("etc/mtab", "/proc/self/mounts")
        with open("/bin/busybox", "rb") as file:
            archive.file("bin/busybox", file.read(), 0o755)
        initramfs.add_program(archive, os.path.realpath("cli/blktape"), "usr/bin/blktape")
        for program in self.programs:
            found = shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")
            if found is None:
                raise AssertionError("%s is not installed (tools/setup test)" % program)
            initramfs.add_program(archive, found, "usr/bin/" + os.path.basename(found))
        for inside, outside in self.files.items():
            with open(outside, "rb") as file:
                archive.file(inside, file.read(), os.stat(outside).st_mode & 0o777)
        loaded = [m for m in self.modules if isinstance(m, str)]
        kinds = {disk.kind for disk in self.disks}
        if kinds & {"nvme", "nvme-multipath"}:
            loaded.insert(0, "nvme")
        folder = os.path.join(kernel_folder(), "modules")
        order = initramfs.add_modules(archive, folder, initramfs.BASE_MODULES + loaded)
        kept = [m[0] for m in self.modules if not isinstance(m, str)]
        extra = initramfs.add_modules(archive, folder, kept)
        # What a kept module needs is loaded; the module itself is the script's.
        order += [m for m in extra if m not in order
                  and os.path.basename(m)[:-3].replace("-", "_") not in [k.replace("-", "_") for k in kept]]
        archive.file("modules.order", "".join(m + "\n" for m in order).encode())
        archive.write(path)

    def _run(self, script, work):
        image = os.path.join(work, "initramfs")
        self._pack(script, image)
        outbox = os.path.join(work, "outbox")
        with open(outbox, "wb") as file:
            file.truncate(OUTBOX_BYTES)
        command = [
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "pc", "-cpu", "max",
            "-m", str(self.memory_mib), "-smp", str(self.cpus), "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-serial", "stdio", "-nic", "none",
            "-kernel", os.path.realpath(os.path.join(kernel_folder(), "vmlinuz")), "-initrd", image,
            "-append", "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off " + self.kernel_arguments,
        ]
        for number, disk in enumerate(self.disks):
            path = os.path.join(work, "disk%d" % number)
            with open(path, "wb") as file:
                file.truncate(disk.size_bytes)
            command += ["-drive", "file=%s,if=none,format=raw,cache=unsafe,discard=unmap,id=d%d" % (path, number)]
            serial = disk.serial or "disk%d" % number
            if disk.kind == "nvme-multipath":
                command += ["-device", "nvme-subsys,id=subsys%d" % number,
                            "-device", "nvme,id=ctrl%d,subsys=subsys%d,serial=%s" % (number, number, serial),
                            "-device", "nvme-ns,drive=d%d,bus=ctrl%d" % (number, number)]
                continue
            device = {"nvme": "nvme", "virtio": "virtio-blk-pci"}[disk.kind]
            command += ["-device", "%s,drive=d%d,serial=%s" % (device, number, serial)]
        # Last, so that the disks of the test are vda, vdb ... in their order.
        command += ["-drive", "file=%s,if=none,format=raw,cache=unsafe,id=outbox" % outbox,
                    "-device", "virtio-blk-pci,drive=outbox,serial=outbox"]
        console_path = os.path.join(work, "console")
        with open(console_path, "wb") as console_file:
            qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console_file,
                                    stderr=subprocess.STDOUT, preexec_fn=_die_with_parent)
            try:
                qemu.wait(self.timeout_s)
                late = False
            except subprocess.TimeoutExpired:
                late = True
            finally:
                qemu.kill()
                qemu.wait()
        with open(console_path, errors="replace") as file:
            console = file.read()
        if late:
            raise AssertionError("the guest did not end within %d s\n--- console\n%s" % (
                self.timeout_s, console[-6000:]))
        out = os.path.join(work, "out")
        os.mkdir(out)
        try:
            with tarfile.open(outbox) as tar:
                tar.extractall(out)
        except tarfile.TarError as error:
            raise AssertionError("the guest left nothing (%s)\n--- console\n%s" % (error, console[-6000:]))
        with open(os.path.join(out, "status")) as file:
            status = int(file.read())
        return GuestResult(out, console, status)
