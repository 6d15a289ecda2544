"""Runs a shell script as root on a kernel of its own: the distribution's, booted by qemu (TCG) in a few seconds.

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

With `systemd=True` the guest is brought up by the systemd installed here, and the script runs as its last service.

A guest can lose its power: run_until(script, text) kills qemu once the console (/dev/console) shows `text`. What its
disks had been given by then is in the images of `Disk(..., image=PATH)`; see there what becomes of a write cache.
"""

import contextlib
import ctypes
import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

from tests.guest import initramfs, systemd, write_log
from tests.harness import blktape

OUTBOX_BYTES = 256 << 20
SLEEP_S = 2
# Of a guest that hangs. One that took 50 s alone took 184 s beside other tests, on a machine of two processors.
TIMEOUT_S = 600
# How much longer it has for what is outside its script, before it is taken for dead.
GRACE_S = 60
# What the kernel says of an NVMe drive that has not answered for half a minute. Seen now and then, while CPUs were idle;
# why is not known, but a program in the guest can neither lose a request of the kernel's nor find it again.
LOST_REQUEST = re.compile(r"nvme nvme[0-9]+: I/O .*timeout, ")
# How often a guest is run at most, until none is lost.
RUNS_MOST = 3

# Of what is dear in emulation: the clock is the processors' own, which agree here, not a device, and memory is not
# cleared once more when the kernel takes it.
KERNEL_ARGUMENTS = "console=ttyS0 no_timer_check tsc=reliable init_on_alloc=0 mitigations=off quiet loglevel=3 panic=-1 "

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
# Once a module was missing, and nobody knew why: so it is tried again, and the reason kept with what a script leaves.
while read -r module; do
  for wait in 1 0; do
    said=$(insmod $module 2>&1) && break
    echo "guest: $said" > /dev/kmsg
    sleep $wait
  done
done < /modules.order
"""

# A root of its own kind, as PID 1 of a machine has: the first one cannot be exchanged, as mount
# namespaces of services do.
INTO_SYSTEMD = r"""
umount /sys/kernel/debug /sys/kernel/tracing /dev/pts /tmp /run
mkdir /root.new
mount -t tmpfs -o mode=755 root /root.new
for name in /*; do
  case $name in
    /root.new | /proc | /sys | /dev) ;;
    *) cp -a $name /root.new/ ;;
  esac
done
mkdir -p /root.new/var/lib /root.new/home
for name in proc sys dev; do
  mkdir /root.new/$name
  mount --move /$name /root.new/$name
done
exec switch_root /root.new /lib/systemd/systemd
"""

WORK = r"""#!/bin/busybox sh
# Not busybox's shell: it runs its own applets before it looks for the programs that came along.
dash -eu /script > /out/stdout 2> /out/stderr &
script=$!
echo $script > /run/script.pid
# A script that hangs is ended here, so that what it left tells where it was.
(
  sleep %(timeout_s)d
  {
    ps -o pid,ppid,stat,args
    for process in /proc/[0-9]*; do
      arguments=$(tr '\0' ' ' < $process/cmdline)
      if [ -n "$arguments" ]; then
        echo "${process#/proc/}: $arguments"
        cat $process/task/*/stack
      fi
    done
    tail -n 5 /out/*.err
  } > /out/hung 2>&1
  kill $script
) &
# And at once one whose drive has lost a request, which would go on waiting.
(grep -q -m 1 -E '%(lost_request)s' /dev/kmsg && kill $script) &
wait $script
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
    have further paths; "virtio" /dev/vda, vdb ...

    With `image` its content is that file, which is kept. Has it a write cache, then run_until, which
    takes away its power, leaves in the file what had been flushed, and nothing written later.
    """
    kind: str
    size_bytes: int
    serial: str = ""
    image: str = ""


class GuestResult:
    """What a guest left behind. `folder` is removed with the process's other temporary files."""

    def __init__(self, folder, console, status):
        self.folder, self.console, self.status = folder, console, status

    def path(self, name):
        return os.path.join(self.folder, name)

    def text(self, name):
        return _text(self.path(name))

    def rows(self, name):
        """The records in a file that `blktape dump --csv` wrote."""
        return blktape.rows(self.text(name))

    def rc(self, name):
        return int(self.text(name + ".rc"))

    def check(self):
        if self.status != 0:
            hung = "\n--- hung\n" + self.text("hung") if os.path.exists(self.path("hung")) else ""
            raise AssertionError("the guest's script ended with %s\n--- stdout\n%s\n--- stderr\n%s\n--- dmesg\n%s%s" % (
                self.status, self.text("stdout")[-4000:], self.text("stderr")[-4000:], self.text("dmesg")[-3000:], hung))
        return self


def _kernel_variable():
    """A test of guest_test(newest_kernel = True) runs on the newest one there is, any other on the distribution's."""
    return "BLKTAPE_NEWEST_GUEST_KERNEL" if os.environ.get("ON_NEWEST_KERNEL") else "BLKTAPE_GUEST_KERNEL"


def kernel_folder():
    """Where vmlinuz and modules/ lie (tools/setup test puts them there), or None."""
    named = os.environ.get(_kernel_variable())
    if named and os.path.exists(os.path.join(named, "vmlinuz")):
        return named
    return None


def _kernel(by_firmware):
    """The kernel itself, which boots four seconds sooner than the compressed image, where tools/setup could take it out."""
    kernel = os.path.join(kernel_folder(), "vmlinux")
    if by_firmware or not os.path.exists(kernel):
        kernel = os.path.join(kernel_folder(), "vmlinuz")
    return os.path.realpath(kernel)


def missing():
    """Why no guest can run here, or an empty string."""
    if shutil.which("qemu-system-x86_64") is None:
        return "qemu-system-x86_64 is not installed (tools/setup test)"
    if kernel_folder() is None:
        return "no guest kernel: %s names no folder with vmlinuz (run by ./test)" % _kernel_variable()
    if not os.path.exists("/bin/busybox"):
        return "busybox-static is not installed (tools/setup test)"
    return ""


def _text(path):
    with open(path, errors="replace") as file:
        return file.read()


def _die_with_parent():
    # Bazel kills a test that takes too long with SIGKILL; qemu must not outlive it.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _wake_whenever_asleep(monitor):
    """Speaks qemu's machine protocol (docs/interop/qmp-spec) over it, until qemu ends."""
    with monitor.makefile("rw") as lines:
        try:
            print('{"execute": "qmp_capabilities"}', file=lines, flush=True)
            for line in lines:
                if json.loads(line).get("event") == "SUSPEND":
                    time.sleep(SLEEP_S)
                    print('{"execute": "system_wakeup"}', file=lines, flush=True)
        except ConnectionError:
            pass  # It ended.


class Guest:
    def __init__(self, programs=(), modules=(), disks=(), files=None, memory_mib=1024, cpus=2,
                 kernel_arguments="", timeout_s=TIMEOUT_S, systemd=False, suspends=False):
        """`files` maps a path in the guest to a path here; `programs` are names found in PATH.

        One that `suspends` to memory is booted by its firmware, which wakes no kernel that it did not boot. It is
        woken SLEEP_S after it fell asleep: an alarm that it set itself could ring while it still falls asleep, unheard.
        """
        self.programs, self.modules, self.disks = list(programs), list(modules), list(disks)
        self.files = dict(files or {})
        self.memory_mib, self.cpus, self.timeout_s = memory_mib, cpus, timeout_s
        self.kernel_arguments = kernel_arguments
        self.systemd, self.suspends = systemd, suspends

    def run(self, script):
        for run in range(RUNS_MOST):
            result = self._run_once(script)
            lost = LOST_REQUEST.search(result.text("dmesg"))
            if not lost or any(disk.image for disk in self.disks) or run + 1 == RUNS_MOST:
                return result
            print("guest: once more, as the emulated drive lost a request: " + lost.group(), file=sys.stderr)

    def _run_once(self, script):
        with self._folder() as work:
            return self._result(work, self._boot(script, work))

    def run_until(self, script, text):
        """Takes away the power once the console shows `text`; returns what it showed."""
        with self._folder() as work:
            console = self._boot(script, work, until=text)
            for number, disk in enumerate(self.disks):
                if disk.image:
                    write_log.apply_flushed(os.path.join(work, "log%d" % number), disk.image)
            return console

    @contextlib.contextmanager
    def _folder(self):
        work = tempfile.mkdtemp(prefix="guest.", dir=os.environ.get("TEST_TMPDIR"))
        try:
            yield work
        finally:
            for name in os.listdir(work):
                if name != "out":
                    os.unlink(os.path.join(work, name))

    def _pack(self, script, path):
        archive = initramfs.Archive()
        for folder in ("proc", "sys", "dev", "bin", "sbin", "usr/bin", "usr/sbin", "usr/lib", "etc"):
            archive.folder(folder)
        # As distributions have it: a program may look for its like below either.
        archive.link("lib", "usr/lib")
        archive.file("init", (INIT + (INTO_SYSTEMD if self.systemd else "exec /work\n")).encode(), 0o755)
        archive.file("work", (WORK % {"timeout_s": self.timeout_s, "lost_request": LOST_REQUEST.pattern}).encode(), 0o755)
        if self.systemd:
            systemd.add(archive, last_service="/work")
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

    def _drive(self, disk, number, work, loses_power):
        """What qemu is told of a disk."""
        path = disk.image or os.path.join(work, "disk%d" % number)
        if not os.path.exists(path):
            with open(path, "wb") as file:
                file.truncate(disk.size_bytes)
        node = "d%d" % number
        if loses_power and disk.image:
            # The image stays as it is; what is written to the disk goes to the log, and to a copy to read from.
            log, copy = os.path.join(work, "log%d" % number), os.path.join(work, "copy%d" % number)
            with open(log, "wb"):
                pass
            shutil.copyfile(path, copy)
            drive = ["-blockdev", "driver=blklogwrites,node-name=%s,file.driver=file,file.filename=%s,"
                     "log.driver=file,log.filename=%s,log-sector-size=512" % (node, copy, log)]
        else:
            drive = ["-drive", "file=%s,if=none,format=raw,cache=unsafe,discard=unmap,id=%s" % (path, node)]
        serial = disk.serial or "disk%d" % number
        if disk.kind == "nvme-multipath":
            return [*drive, "-device", "nvme-subsys,id=subsys%d" % number,
                    "-device", "nvme,id=ctrl%d,subsys=subsys%d,serial=%s" % (number, number, serial),
                    "-device", "nvme-ns,drive=%s,bus=ctrl%d" % (node, number)]
        device = {"nvme": "nvme", "virtio": "virtio-blk-pci"}[disk.kind]
        return [*drive, "-device", "%s,drive=%s,serial=%s" % (device, node, serial)]

    def _boot(self, script, work, until=None):
        """Runs it to its end, or until the console shows `until`; returns what that shows."""
        image = os.path.join(work, "initramfs")
        self._pack(script, image)
        outbox = os.path.join(work, "outbox")
        with open(outbox, "wb") as file:
            file.truncate(OUTBOX_BYTES)
        command = [
            # With a thread for each processor qemu 7.2 can go on running an int3 that the kernel, patching its own
            # code, has taken away again: probes attached amid I/O then ended in a processor caught at that place for
            # good (Linux 6.1, one run in ten) or in a panic (Linux 7.2, always).
            # A fifth level of page tables would have to be walked in software at every miss; and a kernel that is told
            # of fast copies by bytes (ERMS) makes them, which are emulated byte by byte.
            "qemu-system-x86_64", "-accel", "tcg,thread=single", "-machine", "pc", "-cpu", "max,la57=off,erms=off",
            "-m", str(self.memory_mib), "-smp", str(self.cpus), "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-serial", "stdio", "-nic", "none",
            "-kernel", _kernel(self.suspends), "-initrd", image,
            "-append", KERNEL_ARGUMENTS + self.kernel_arguments,
        ]
        for number, disk in enumerate(self.disks):
            command += self._drive(disk, number, work, until is not None)
        # Last, so that the disks of the test are vda, vdb ... in their order.
        command += ["-drive", "file=%s,if=none,format=raw,cache=unsafe,id=outbox" % outbox,
                    "-device", "virtio-blk-pci,drive=outbox,serial=outbox"]
        ours, qemus = socket.socketpair()
        command += ["-chardev", "socket,id=monitor,fd=%d" % qemus.fileno(), "-mon", "chardev=monitor,mode=control"]
        console_path = os.path.join(work, "console")
        with open(console_path, "wb") as console_file, ours:
            with qemus:
                qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console_file, stderr=subprocess.STDOUT,
                                        preexec_fn=_die_with_parent, pass_fds=[qemus.fileno()])
            # It ends with qemu, whose end of the monitor closes.
            waker = threading.Thread(target=_wake_whenever_asleep, args=(ours,))
            waker.start()
            try:
                why_not = self._wait(qemu, console_path, until)
            finally:
                qemu.kill()
                qemu.wait()
                waker.join()
        console = _text(console_path)
        if why_not:
            raise AssertionError("the guest %s\n--- console\n%s" % (why_not, console[-6000:]))
        return console

    def _wait(self, qemu, console_path, until):
        """Returns what went wrong, if anything did."""
        if until is None:
            try:
                qemu.wait(self.timeout_s + GRACE_S)
            except subprocess.TimeoutExpired:
                return "did not end within %d s" % (self.timeout_s + GRACE_S)
            return ""
        end_s = time.monotonic() + self.timeout_s
        while until not in _text(console_path):
            if qemu.poll() is not None:
                return "ended before it said " + repr(until)
            if time.monotonic() > end_s:
                return "did not say %r within %d s" % (until, self.timeout_s)
            time.sleep(0.02)
        return ""

    @staticmethod
    def _result(work, console):
        out = os.path.join(work, "out")
        os.mkdir(out)
        try:
            with tarfile.open(os.path.join(work, "outbox")) as tar:
                tar.extractall(out)
        except tarfile.TarError as error:
            raise AssertionError("the guest left nothing (%s)\n--- console\n%s" % (error, console[-6000:]))
        if not os.path.exists(os.path.join(out, "status")):
            raise AssertionError("the guest left %s and no status\n--- console\n%s" % (os.listdir(out), console[-6000:]))
        with open(os.path.join(out, "status")) as file:
            status = int(file.read())
        return GuestResult(out, console, status)
