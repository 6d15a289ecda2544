#!/usr/bin/python3
"""A short stretch of desktop work on one file system: desktop_workload.py FOLDER [options].

Unpacks a file tree and walks it, commits SQLite transactions with fsync, works with git, copies a
large file, searches, deletes and trims, with a person's pauses between. Real programs and real fsyncs;
only the content is made up, from the seed. Everything lies under FOLDER.
"""

import argparse
import io
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import time

MIB = 1 << 20


class Person:
    """Pauses as a person does: many short ones, a few long; seconds are scaled by `pace`."""

    def __init__(self, seed, pace):
        self.random, self.pace = random.Random(seed), pace

    def think(self, seconds):
        time.sleep(self.pace * self.random.uniform(0.6, 1.4) * seconds)


class Disk:
    """The file system worked on; forgets what is cached, as a machine does over a night."""

    def __init__(self, folder, device):
        self.folder, self.device = folder, device

    def forget_caches(self):
        if self.device:
            # Unmounting drops this file system's caches and nobody else's.
            subprocess.run(["umount", self.folder], check=True)
            subprocess.run(["mount", "-o", "noatime", self.device, self.folder], check=True)
            return
        for root, _, names in os.walk(self.folder):
            for name in names:
                try:
                    fd = os.open(os.path.join(root, name), os.O_RDONLY)
                except OSError:
                    continue
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)

    def trim(self):
        if self.device:
            subprocess.run(["fstrim", self.folder], check=False, stderr=subprocess.DEVNULL)

    def path(self, *names):
        return os.path.join(self.folder, *names)


def file_size(rng):
    """Sizes as in a home folder: median near 5 KB, a long tail."""
    return min(int(rng.lognormvariate(8.5, 1.4)) + 1, 2 * MIB)


def text(rng, size):
    """Compresses about 2:1, as source code and documents do."""
    return (rng.randbytes(size // 2 + 1).hex()).encode()[:size]


def unpack_tree(disk, person, files):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for number in range(files):
            data = text(person.random, file_size(person.random))
            entry = tarfile.TarInfo("tree/part%02d/file%04d.txt" % (number % 40, number))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        for number, entry in enumerate(tar):
            tar.extract(entry, disk.folder)
            if number % 150 == 149:
                person.think(0.15)
    os.sync()


def walk_tree(disk, person):
    """A search through everything, then a few documents opened one by one."""
    paths = []
    for root, folders, names in os.walk(disk.path("tree")):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                b"needle" in file.read()
            paths.append(path)
        person.think(0.03)
    return paths


def open_documents(disk, person, paths, count):
    for path in person.random.sample(paths, count):
        with open(path, "rb") as file:
            data = file.read()
        person.think(0.05)
        # Saved as editors save: a new file, synced, renamed over the old one.
        with open(path + ".new", "wb") as file:
            file.write(data + b"edited\n")
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)
        person.think(0.08)


def use_database(disk, person, name, journal, transactions):
    """A browser's or a mail program's store: small transactions, each durable."""
    with sqlite3.connect(disk.path(name)) as database:
        database.execute("PRAGMA journal_mode=%s" % journal)
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE IF NOT EXISTS visits(id INTEGER PRIMARY KEY, url TEXT, at REAL)")
        database.execute("CREATE INDEX IF NOT EXISTS by_url ON visits(url)")
        database.commit()
        for number in range(transactions):
            for _ in range(person.random.randint(1, 12)):
                database.execute("INSERT INTO visits(url, at) VALUES(?, ?)",
                                 (text(person.random, 160).decode(), person.random.random()))
            database.commit()
            if number % 8 == 7:
                person.think(0.12)
    database.close()


def query_database(disk, person, name, lookups):
    with sqlite3.connect(disk.path(name)) as database:
        (last,) = database.execute("SELECT max(id) FROM visits").fetchone()
        for number in range(lookups):
            database.execute("SELECT url FROM visits WHERE id = ?", (person.random.randint(1, last),)).fetchone()
            if number % 20 == 19:
                person.think(0.03)
    database.close()


def git(disk, *words):
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": disk.folder, "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "blktape", "GIT_AUTHOR_EMAIL": "quickstart@example.org",
        "GIT_COMMITTER_NAME": "blktape", "GIT_COMMITTER_EMAIL": "quickstart@example.org",
    }
    subprocess.run(["git", "-c", "core.fsync=committed,index", "-c", "gc.auto=0", "-c", "init.defaultBranch=main", "-C",
                    disk.path("tree"), *words],
                   check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def develop(disk, person, paths):
    git(disk, "init", "-q")
    for part in range(0, 12, 4):
        git(disk, "add", *("part%02d" % number for number in range(part, part + 4)))
        git(disk, "commit", "-q", "-m", "Add parts from %d" % part)
        person.think(0.4)
    git(disk, "checkout", "-q", "-b", "work")
    tracked = [path for path in paths if "part0" in path]
    for commit in range(6):
        for path in person.random.sample(tracked, 8):
            with open(path, "ab") as file:
                file.write(b"changed in %d\n" % commit)
        git(disk, "commit", "-q", "-a", "-m", "Change %d" % commit)
        person.think(0.25)
    git(disk, "checkout", "-q", "main")
    person.think(0.2)
    git(disk, "gc", "-q")


def copy_large_file(disk, person, size):
    """A download, a copy of it, and one look at it."""
    block = person.random.randbytes(MIB)
    with open(disk.path("download.iso"), "wb") as file:
        for _ in range(size // MIB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    person.think(0.5)
    disk.forget_caches()
    shutil.copyfile(disk.path("download.iso"), disk.path("copy.iso"))
    person.think(0.5)


def clean_up(disk, person):
    os.remove(disk.path("copy.iso"))
    shutil.rmtree(disk.path("tree", "part39"), ignore_errors=True)
    for number in range(20, 30):
        shutil.rmtree(disk.path("tree", "part%02d" % number), ignore_errors=True)
    os.sync()
    person.think(0.4)
    disk.trim()


def work(disk, person, scale):
    unpack_tree(disk, person, int(1600 * scale))
    person.think(1.0)
    disk.forget_caches()
    paths = walk_tree(disk, person)
    person.think(0.8)
    open_documents(disk, person, paths, int(40 * scale))
    use_database(disk, person, "places.sqlite", "DELETE", int(220 * scale))
    person.think(0.6)
    use_database(disk, person, "mail.sqlite", "WAL", int(160 * scale))
    develop(disk, person, paths)
    copy_large_file(disk, person, max(8, int(96 * scale)) * MIB)
    query_database(disk, person, "places.sqlite", int(600 * scale))
    clean_up(disk, person)
    os.sync()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="an empty folder to work in")
    parser.add_argument("--device", help="the block device FOLDER is the mount point of: caches are dropped by "
                        "mounting it anew, and it is trimmed (needs root)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="how much work")
    parser.add_argument("--pace", type=float, default=1.0, help="how long the pauses are")
    arguments = parser.parse_args()
    if not os.path.isdir(arguments.folder):
        parser.error("%s is not a folder" % arguments.folder)
    if set(os.listdir(arguments.folder)) - {"lost+found"}:
        parser.error("%s is not empty" % arguments.folder)
    folder = os.path.realpath(arguments.folder)
    os.chdir("/")  # nothing may keep the mount busy
    begin = time.monotonic()
    work(Disk(folder, arguments.device), Person(arguments.seed, arguments.pace),
         arguments.scale)
    print("worked for %.1f s" % (time.monotonic() - begin), file=sys.stderr)


if __name__ == "__main__":
    main()
