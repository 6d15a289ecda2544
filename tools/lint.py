#!/usr/bin/python3
"""Lint of our own C++ files: lint.py format|tidy [--jobs N] [--apart] [FILE...]. Prints `passed NAME` or `failed NAME`.

format  clang-format-19 leaves every file as it is
tidy    clang-tidy has nothing to say, clang warns of nothing, and every include is of a direct
        dependency: clang-tidy reads each file with the module maps of --config=layering, so that no
        compilation of its own is needed for that. What passed is remembered by the content of the
        file, of the headers of ours that it includes, of its dependencies' module maps, and of the
        configuration, so that a second run costs seconds. It is PyPI's clang-tidy: it passes over the
        system's headers, with which Debian's spends two thirds of its time. --apart: with a Bazel of
        its own, which is new each time and gone at the end, so that another can run meanwhile.
What is wrong is told on stderr. The exit status is 0 in either case: tools/count.py judges.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile

import compile_commands
from compile_commands import ROOMS

# What concerns machine code alone: what was found well stays so when it changes.
MACHINE_CODE = ("-O0", "-flto=thin", "-ffat-lto-objects", "-fno-lto", "-fno-fat-lto-objects", "-fno-semantic-interposition")
INCLUDE = re.compile(r'^\s*(?:#\s*include|import)\s+"([^"]+)"', re.MULTILINE)


def own_files(*endings):
    listed = subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
                                     + list(ROOMS), text=True)
    return sorted(path for path in listed.split("\0") if path.endswith(endings) and os.path.exists(path))


def digest_of(paths, folder=""):
    total = hashlib.sha256()
    for path in paths:
        with open(os.path.join(folder, path), "rb") as file:
            total.update(path.encode() + b"\0" + hashlib.sha256(file.read()).digest())
    return total.digest()


def check_format():
    files = [path for path in own_files(".cc", ".h", ".proto", ".c") if not path.endswith("vmlinux.h")]
    run = subprocess.run(["clang-format-19", "--dry-run", "-Werror"] + [p for p in files if not p.endswith(".proto")],
                         stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(run.stderr)
    print("passed" if run.returncode == 0 else "failed", "clang-format")


def compilations(bazel, folder):
    """Writes compile_commands.json into the folder: how each file is compiled with the layering check. Returns where
    the commands run, and the arguments of each file."""
    # Module maps and generated headers: what a compilation needs, without the compilation. Not by //..., in which a
    # Bazel of another output base finds the links of this one.
    subprocess.run(bazel + ["build", "--config=layering", "--output_groups=compilation_prerequisites_INTERNAL_",
                            "--experimental_convenience_symlinks=ignore", "--noshow_progress", "--ui_event_filters=-info"]
                   + [f"//{room}/..." for room in ROOMS], check=True, stdout=sys.stderr)
    # Not the workspace: the module maps name each other from there.
    root = subprocess.check_output(bazel + ["info", "execution_root"], stderr=subprocess.DEVNULL, text=True).strip()
    entries = compile_commands.write(os.path.join(folder, "compile_commands.json"), bazel, "layering", root,
                                     drop=MACHINE_CODE)
    return root, {file: entry["arguments"] for file, entry in entries.items()}


def module_maps(arguments):
    """Those of a file's target and of its direct dependencies, as far as they are made by Bazel."""
    maps = (word.partition("=")[2] for word in arguments if word.startswith("-fmodule-map-file="))
    return sorted(path for path in maps if path.startswith("bazel-out/"))


@functools.cache
def includes_of(path):
    """Files of ours that this one includes itself; for a generated one that from which it is made."""
    with open(path, encoding="utf-8") as file:
        names = INCLUDE.findall(file.read())
    found = set()
    for name in names:
        name = name.replace(".pb.h", ".proto").replace(".skel.h", ".bpf.c")
        found.update(place for place in (name, os.path.join(os.path.dirname(path), name)) if os.path.exists(place))
    return found


def with_includes(path):
    seen, left = set(), [path]
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += includes_of(one)
    return sorted(seen)


def clang_tidy():
    python = subprocess.check_output(["tools/setup", "python"], text=True).strip()
    program = os.path.join(os.path.dirname(python), "clang-tidy")
    if not os.path.exists(program):
        sys.exit(f"error: {program} is not there: tools/setup test fetches it")
    return program


def check_tidy(jobs, apart, files):
    program = clang_tidy()
    with tempfile.TemporaryDirectory() as folder:
        bazel = ["bazel"] + ([f"--output_base={folder}/bazel"] if apart else [])
        try:
            _check_tidy(program, folder, *compilations(bazel, folder), jobs, files)
        finally:
            if apart:
                subprocess.run(bazel + ["shutdown"], check=False, capture_output=True)


def _check_tidy(program, folder, root, known, jobs, files):
    cache = os.path.join(os.environ["HOME"], ".cache/blktape/clang-tidy")
    os.makedirs(cache, exist_ok=True)

    def one(path):
        content = digest_of([".clang-tidy", "WORKSPACE", "tests/python/requirements.txt"] + with_includes(path))
        content += digest_of(module_maps(known[path]), root)
        mark = os.path.join(cache, hashlib.sha256(content + "\0".join(known[path]).encode()).hexdigest())
        if os.path.exists(mark):
            return path, ""
        # A shell is what a program that runs as root must not call, and what a test sets up its scene with.
        shell = ["--checks=-bugprone-command-processor"] if path.startswith("tests/") else []
        run = subprocess.run([program, "--quiet", "-p", folder, "--config-file=" + os.path.abspath(".clang-tidy"), *shell,
                              path], cwd=root, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            with open(mark, "w"):
                pass
            return path, ""
        return path, run.stdout or run.stderr

    bad = []
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        for path, said in pool.map(one, [path for path in files or own_files(".cc") if path in known]):
            if said:
                bad.append(path)
                sys.stderr.write(said)
    finally:
        pool.shutdown(cancel_futures=True)
    print(*(["failed clang-tidy " + path for path in bad] or ["passed clang-tidy"]), sep="\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["format", "tidy"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--apart", action="store_true", help="with a Bazel of its own (tidy)")
    parser.add_argument("files", nargs="*", help="these alone (tidy)")
    arguments = parser.parse_intermixed_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was begun is cleaned up
    if arguments.what == "format":
        check_format()
    else:
        check_tidy(arguments.jobs, arguments.apart, arguments.files)


if __name__ == "__main__":
    main()
