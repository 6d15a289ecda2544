"""Packs programs, their libraries and kernel modules into an initramfs (cpio, newc)."""

import lzma
import os
import stat
import subprocess

# What every guest has; modules a script names come on top, with what they depend on.
BASE_MODULES = ["virtio_pci", "virtio_blk"]


class Archive:
    """A cpio archive in the newc form, which the kernel unpacks into its first root."""

    def __init__(self):
        self._parts = []
        self._names = set()

    def folder(self, name):
        name = name.strip("/")
        if not name or name in self._names:
            return
        self.folder(os.path.dirname(name))
        self._add(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name, data, mode=0o644):
        name = name.strip("/")
        if name in self._names:
            return
        self.folder(os.path.dirname(name))
        self._add(name, stat.S_IFREG | mode, data)

    def link(self, name, to):
        name = name.strip("/")
        if name in self._names:
            return
        self.folder(os.path.dirname(name))
        self._add(name, stat.S_IFLNK | 0o777, to.encode())

    def _add(self, name, mode, data):
        self._names.add(name)
        self._parts.append(self._entry(name, mode, data))

    @staticmethod
    def _entry(name, mode, data):
        encoded = name.encode() + b"\0"
        fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0]
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        head += b"\0" * (-len(head) % 4)
        return head + data + b"\0" * (-len(data) % 4)

    def write(self, path):
        with open(path, "wb") as out:
            for part in self._parts:
                out.write(part)
            out.write(self._entry("TRAILER!!!", 0, b""))


def add_program(archive, path, name=None):
    """Adds the program at `path` under `name` (default: where it lies) with its shared libraries."""
    with open(path, "rb") as file:
        archive.file(name or path, file.read(), 0o755)
    listing = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    for line in listing.stdout.splitlines():
        words = line.split()
        if "=>" in words:
            if words[2] == "not":
                raise RuntimeError("%s: library not found: %s" % (path, words[0]))
            where, library = words[2], words[2]
        elif words and words[0].startswith("/"):  # the loader
            where = library = words[0]
        else:
            continue
        with open(library, "rb") as file:
            archive.file(where, file.read(), 0o755)


def _module_bytes(path):
    if path.endswith(".xz"):
        with lzma.open(path) as file:
            return file.read()
    if path.endswith(".zst"):
        return subprocess.check_output(["zstd", "-dcq", path])
    with open(path, "rb") as file:
        return file.read()


def _module_name(path):
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def _soft_dependencies(folder):
    """Module to the modules that `softdep ... pre:` names, aliases resolved to the generic one."""
    aliases, soft = {}, {}
    with open(os.path.join(folder, "modules.alias")) as file:
        for line in file:
            words = line.split()
            if len(words) == 3 and words[0] == "alias" and (words[1] not in aliases or words[2].endswith("_generic")):
                aliases[words[1]] = words[2]
    with open(os.path.join(folder, "modules.softdep")) as file:
        for line in file:
            words = line.split()
            if len(words) > 3 and words[0] == "softdep" and words[2] == "pre:":
                names = words[3:words.index("post:")] if "post:" in words else words[3:]
                soft[words[1].replace("-", "_")] = [aliases.get(name, name).replace("-", "_") for name in names]
    return soft


def add_modules(archive, folder, names):
    """Adds modules and what they depend on; returns their paths in the guest in loading order.

    `folder` is a /lib/modules/VERSION. A name that is built into the kernel costs nothing.
    """
    depends, path_of = {}, {}
    with open(os.path.join(folder, "modules.dep")) as file:
        for line in file:
            path, rest = line.rstrip("\n").split(":", 1)
            depends[path] = rest.split()
            path_of[_module_name(path)] = path
    builtin = set()
    with open(os.path.join(folder, "modules.builtin")) as file:
        for line in file:
            builtin.add(_module_name(line.strip()))
    soft = _soft_dependencies(folder)
    order, seen = [], set()

    def visit(path):
        if path in seen:
            return
        seen.add(path)
        for other in depends[path]:
            visit(other)
        # No modprobe in the guest: what the kernel would ask it for at run time (crc32c of ext4).
        for name in soft.get(_module_name(path), ()):
            if name in path_of:
                visit(path_of[name])
        guest_path = "/modules/" + os.path.basename(path).split(".ko")[0] + ".ko"
        archive.file(guest_path, _module_bytes(os.path.join(folder, path)))
        order.append(guest_path)

    for name in names:
        name = name.replace("-", "_")
        if name in builtin:
            continue
        if name not in path_of:
            raise RuntimeError("%s: the guest's kernel has no module %s" % (folder, name))
        visit(path_of[name])
    return order
