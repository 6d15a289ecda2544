"""Makes the systemd installed here the first process of a guest."""

import os

from tests.guest import initramfs

PROGRAMS = {
    "/lib/systemd/systemd": None,
    "/lib/systemd/systemd-journald": None,
    "/usr/bin/systemctl": None,
    "/usr/bin/journalctl": None,
}
# What starts services, from systemd 255 on.
EXECUTOR = "/lib/systemd/systemd-executor"
UNIT_FOLDER = "/lib/systemd/system"
# No udev, no logins, no network: what a service, its log and the kernel's file systems need.
UNITS = [
    "basic.target", "local-fs-pre.target", "local-fs.target", "multi-user.target", "paths.target", "shutdown.target",
    "slices.target", "sockets.target", "sysinit.target", "swap.target", "timers.target", "umount.target",
    "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
    "systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket",
]
WANTED = [
    ("sockets.target", "systemd-journald.socket"), ("sockets.target", "systemd-journald-dev-log.socket"),
    ("sysinit.target", "systemd-journald.service"), ("sysinit.target", "sys-kernel-debug.mount"),
    ("sysinit.target", "sys-kernel-tracing.mount"), ("multi-user.target", "last.service"),
]
LAST_SERVICE = """\
[Unit]
Description=The test
After=basic.target
[Service]
Type=oneshot
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DM_DISABLE_UDEV=1
ExecStart=%s
TimeoutStartSec=infinity
"""


def missing():
    """Why no guest can be brought up by systemd, or an empty string."""
    for path in PROGRAMS:
        if not os.path.exists(path):
            return "%s is not installed (tools/setup test)" % path
    return ""


def add(archive, last_service):
    """`last_service` is the path in the guest of the program that runs once all is up."""
    for program in PROGRAMS:
        initramfs.add_program(archive, program)
    if os.path.exists(EXECUTOR):
        initramfs.add_program(archive, EXECUTOR)
    for unit in UNITS:
        with open(os.path.join(UNIT_FOLDER, unit), "rb") as file:
            archive.file(os.path.join(UNIT_FOLDER, unit), file.read())
    folder = "etc/systemd/system"
    archive.file(folder + "/last.service", (LAST_SERVICE % last_service).encode())
    archive.link(folder + "/default.target", UNIT_FOLDER + "/multi-user.target")
    for target, unit in WANTED:
        where = folder if unit == "last.service" else UNIT_FOLDER
        archive.link("%s/%s.wants/%s" % (folder, target, unit), "/%s/%s" % (where.strip("/"), unit))
    archive.file("etc/machine-id", b"%032x\n" % 7)
    archive.file("etc/os-release", b"ID=guest\n")
