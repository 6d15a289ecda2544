#!/usr/bin/python3
"""Short stretches of work that wait for their disk: workloads.py prepare|work NAME FOLDER DEVICE [--seed N]
[--file-system NAME].

FOLDER is the mount point of DEVICE. `prepare` lays out what the work needs and forgets the caches.
"""

import argparse
import asyncio
import concurrent.futures
import contextlib
import mmap
import os
import random
import shutil
import subprocess
import sys
import time
import traceback

MIB = 1 << 20
# How each file system is made and mounted: no discards, no access times, and of ext4 no thread that makes inode tables
# at leisure.
FILE_SYSTEMS = {"ext4": (["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
                         "noatime,noinit_itable"),
                "xfs": (["mkfs.xfs", "-q", "-f", "-K"], "noatime"),
                "btrfs": (["mkfs.btrfs", "-q", "-f", "-K"], "noatime")}
DESKTOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools", "desktop_workload.py")


def mount(file_system, device, folder):
    subprocess.run(["mount", "-t", file_system, "-o", FILE_SYSTEMS[file_system][1], device, folder], check=True)


class Place:
    """The file system worked on."""

    def __init__(self, folder, device, seed, file_system):
        self.folder, self.device, self.seed, self.file_system = folder, device, seed, file_system

    def path(self, name):
        return os.path.join(self.folder, name)

    def rng(self, number=0):
        return random.Random(self.seed * 1000 + number)

    def fill(self, name, size, rng):
        block = rng.randbytes(MIB)
        with open(self.path(name), "wb") as file:
            for _ in range(0, size, MIB):
                file.write(block[:size])
            file.flush()
            os.fsync(file.fileno())

    def forget_caches(self):
        os.sync()
        subprocess.run(["umount", self.folder], check=True)
        mount(self.file_system, self.device, self.folder)


def together(*tasks):
    """Runs them side by side, each in a process of its own (threads of this language take turns at computing, so that
    each would also wait for the others' processor). An error in one ends the workload."""
    children = []
    for task in tasks:
        child = os.fork()
        if child == 0:
            try:
                task()
                os._exit(0)  # pylint: disable=protected-access
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
                os._exit(1)  # pylint: disable=protected-access
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    if failed:
        raise RuntimeError("%d of %d tasks failed" % (len(failed), len(tasks)))


class Desktop:
    """Files, SQLite, git, a copy, trim: the quick start's workload, shorter."""

    def prepare(self, place):
        pass

    def work(self, place):
        subprocess.run([sys.executable, DESKTOP, place.folder, "--device", place.device, "--seed", str(place.seed),
                        "--scale", "0.35", "--pace", "0.5"], check=True, stderr=subprocess.DEVNULL)


class Overlap:
    """Four programs that read at random, think, and save now and then, side by side."""

    def prepare(self, place):
        for number in range(4):
            place.fill("data%d" % number, 64 * MIB, place.rng(number))

    def work(self, place):
        together(*(lambda number=number: self._reader(place, number) for number in range(4)))

    @staticmethod
    def _reader(place, number):
        rng = place.rng(number)
        fd = os.open(place.path("data%d" % number), os.O_RDWR)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        for step in range(700):
            os.pread(fd, rng.choice((4096, 4096, 4096, 16384, 65536)), rng.randrange(64 * MIB // 4096 - 16) * 4096)
            if step % 25 == 24:
                os.pwrite(fd, rng.randbytes(4096), rng.randrange(64 * MIB // 4096) * 4096)
                os.fdatasync(fd)
            if rng.random() < 0.4:
                time.sleep(rng.expovariate(1 / 0.004))
        os.close(fd)


class Copy:
    """Documents are opened and saved while a large file is copied behind."""

    def prepare(self, place):
        rng = place.rng()
        place.fill("film", 256 * MIB, rng)
        os.mkdir(place.path("documents"))
        for number in range(300):
            place.fill("documents/%d" % number, rng.choice((3, 9, 30, 120)) * 1024, rng)

    def work(self, place):
        together(lambda: self._copy(place), lambda: self._documents(place))

    @staticmethod
    def _copy(place):
        subprocess.run(["dd", "if=" + place.path("film"), "of=" + place.path("film.copy"), "bs=1M", "conv=fsync",
                        "status=none"], check=True)

    @staticmethod
    def _documents(place):
        rng = place.rng(1)
        for number in rng.sample(range(300), 150):
            path = place.path("documents/%d" % number)
            with open(path, "rb") as file:
                data = file.read()
            time.sleep(rng.uniform(0.005, 0.03))
            if number % 3 == 0:
                with open(path + ".new", "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(path + ".new", path)


class Fsync:
    """Three programs that make each small change durable before they go on."""

    def prepare(self, place):
        pass

    def work(self, place):
        together(lambda: self._log(place, 0), lambda: self._log(place, 1), lambda: self._database(place))

    @staticmethod
    def _log(place, number):
        rng = place.rng(number)
        fd = os.open(place.path("log%d" % number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for _ in range(250):
            os.write(fd, rng.randbytes(rng.randrange(100, 9000)))
            os.fdatasync(fd)
            time.sleep(rng.expovariate(1 / 0.006))
        os.close(fd)

    @staticmethod
    def _database(place):
        import sqlite3  # pylint: disable=import-outside-toplevel
        rng = place.rng(2)
        database = sqlite3.connect(place.path("mail.sqlite"))
        database.execute("PRAGMA synchronous=FULL")
        database.execute("CREATE TABLE mail(id INTEGER PRIMARY KEY, body TEXT)")
        database.commit()
        for _ in range(150):
            database.execute("INSERT INTO mail(body) VALUES(?)", (rng.randbytes(rng.randrange(50, 3000)).hex(),))
            database.commit()
            time.sleep(rng.expovariate(1 / 0.01))
        database.close()


class Mmap:
    """Programs that start cold: pages of mapped files are touched here and there, with computing between."""

    def prepare(self, place):
        for number in range(6):
            place.fill("program%d" % number, 40 * MIB, place.rng(number))

    def work(self, place):
        for number in range(6):
            rng = place.rng(number)
            with open(place.path("program%d" % number), "rb") as file:
                with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
                    for _ in range(350):
                        first = rng.randrange(40 * MIB // 4096 - 8)
                        for page in range(first, first + rng.randrange(1, 6)):
                            pages[page * 4096]  # pylint: disable=pointless-statement
                        until = time.monotonic() + rng.expovariate(1 / 0.0005)
                        while time.monotonic() < until:
                            pass
            time.sleep(0.3)


class Pool:
    """A program that has a few threads read for it, in turns: one thing after another, sometimes three at once, with
    computing and pauses between. As programs with an event loop do it."""

    def prepare(self, place):
        place.fill("store", 256 * MIB, place.rng())

    def work(self, place):
        asyncio.run(self._loop(place))

    @staticmethod
    async def _loop(place):
        rng = place.rng(1)
        fd = os.open(place.path("store"), os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            loop = asyncio.get_running_loop()
            for _ in range(700):
                reads = [(rng.choice((4096, 16384, 65536)), rng.randrange(256 * MIB // 4096 - 16) * 4096)
                         for _ in range(3 if rng.random() < 0.2 else 1)]
                await asyncio.gather(*(loop.run_in_executor(pool, os.pread, fd, *read) for read in reads))
                until = time.monotonic() + rng.expovariate(1 / 0.0008)
                while time.monotonic() < until:
                    pass
                if rng.random() < 0.2:
                    await asyncio.sleep(rng.expovariate(1 / 0.004))
        os.close(fd)


class Node:
    """The same by a program of Node.js, which has four threads for it."""

    PROGRAM = """
        const file = require('fs').promises.open(process.argv[1], 'r');
        let last = +process.argv[2];
        const below = count => (last = (last * 1103515245 + 12345) % 2147483648) % count;
        file.then(async file => {
          for (let i = 0; i < 700; ++i) {
            const reads = [];
            for (let many = below(5) == 0 ? 3 : 1; many > 0; --many) {
              reads.push(file.read(Buffer.alloc(65536), 0, [4096, 16384, 65536][below(3)], below(65500) * 4096));
            }
            await Promise.all(reads);
            const until = process.hrtime.bigint() + BigInt(below(1600000));
            while (process.hrtime.bigint() < until);
            if (below(5) == 0) await new Promise(resolve => setTimeout(resolve, below(8)));
          }
        });"""

    def prepare(self, place):
        place.fill("store", 256 * MIB, place.rng())

    def work(self, place):
        subprocess.run(["node", "-e", self.PROGRAM, place.path("store"), str(place.seed)], check=True)


class Browser:
    """Chromium lies on the disk, starts there twice, and draws a page."""

    OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
               "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]

    def prepare(self, place):
        shutil.copytree("/usr/lib/chromium", place.path("chromium"))
        os.mkdir(place.path("profile"))
        with open(place.path("page.html"), "w", encoding="ascii") as file:
            file.writelines("<p>line %d</p>\n" % line for line in range(2000))

    def work(self, place):
        for number in range(2):
            subprocess.run([place.path("chromium/chromium"), *self.OPTIONS, "--user-data-dir=" + place.path("profile"),
                            "--screenshot=" + place.path("page%d.png" % number), "file://" + place.path("page.html")],
                           check=True, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": place.path("profile")})


class Build:
    """A program of 150 files is compiled and linked, two at a time."""

    FILES, HEADERS = 150, 300

    def prepare(self, place):
        rng = place.rng()
        for number in range(self.HEADERS):
            with open(place.path("part%d.h" % number), "w", encoding="ascii") as file:
                file.write("#pragma once\n")
                for line in range(rng.randrange(20, 400)):
                    file.write("static inline int h%d_%d(int x) { return x * %d; }\n" % (number, line, line))
        for number in range(self.FILES):
            with open(place.path("file%d.c" % number), "w", encoding="ascii") as file:
                for header in rng.sample(range(self.HEADERS), 5):
                    file.write('#include "part%d.h"\n' % header)
                file.write("int f%d(int x) { return x + %d; }\n" % (number, number))
        with open(place.path("main.c"), "w", encoding="ascii") as file:
            file.write("int main(void) { return 0; }\n")
        # The compiler itself comes from the machine's disk, once.
        self._compile(place, ["file0"])
        os.unlink(place.path("file0.o"))

    def work(self, place):
        names = ["file%d" % number for number in range(self.FILES)] + ["main"]
        together(lambda: self._compile(place, names[::2]), lambda: self._compile(place, names[1::2]))
        subprocess.run(["gcc", "-o", "program", *(name + ".o" for name in names)], check=True, cwd=place.folder)
        os.sync()

    @staticmethod
    def _compile(place, names):
        for name in names:
            subprocess.run(["gcc", "-c", "-O0", name + ".c"], check=True, cwd=place.folder)


def give_way():
    """What the kernel does for the disk goes before what the work computes: else the disk would be slower than it says
    whenever the work computes. A session has a priority of its own where the kernel groups processes by session."""
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    os.setsid()
    with contextlib.suppress(FileNotFoundError), open("/proc/self/autogroup", "w", encoding="ascii") as file:
        file.write("19")


WORKLOADS = {"desktop": Desktop, "overlap": Overlap, "copy": Copy, "fsync": Fsync, "mmap": Mmap, "pool": Pool,
             "node": Node, "browser": Browser, "build": Build}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", choices=("prepare", "work"))
    parser.add_argument("name", choices=WORKLOADS)
    parser.add_argument("folder")
    parser.add_argument("device")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file-system", choices=FILE_SYSTEMS, default="ext4")
    arguments = parser.parse_args()
    workload = WORKLOADS[arguments.name]()
    place = Place(arguments.folder, arguments.device, arguments.seed, arguments.file_system)
    if arguments.phase == "prepare":
        workload.prepare(place)
        place.forget_caches()
    else:
        give_way()
        workload.work(place)


if __name__ == "__main__":
    main()
