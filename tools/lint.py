#!/usr/bin/python3
"""Lint of our own C++ files: lint.py format|tidy [--jobs N] [--apart] [FILE...]. Prints `passed NAME` or `failed NAME`.

format  clang-format-19 leaves every file as it is
tidy    clang-tidy has nothing to say, clang warns of nothing, and each file includes what it may and
        what it must (tools/includes.py). Files of one room are read together, as one: most of their
        time goes to the headers they share. Where something is found, each is read alone, and that
        is told. What passed is remembered by the content of the files, of the headers of ours that
        they include, and of the configuration, so that a second run costs seconds. It is PyPI's
        clang-tidy: it passes over the system's headers, with which Debian's spends two thirds of
        its time. --apart: with a Bazel of its own, which is new each time and gone at the end, so
        that another can run meanwhile.
What is wrong is told on stderr. The exit status is 0 in either case: tools/count.py judges.
"""

import argparse
import concurrent.futures
import hashlib
import os
import signal
import subprocess
import sys
import tempfile

import batches
import compile_commands
import includes
from compile_commands import ROOMS

# What concerns machine code alone: what was found well stays so when it changes.
MACHINE_CODE = ("-O0", "-fno-semantic-interposition")
# Concerns module maps, or one file's outputs.
OF_ONE = ("-fmodule", "-frandom-seed=", "-MD", "-MF")


def own_files(*endings):
    listed = subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
                                     + list(ROOMS), text=True)
    return sorted(path for path in listed.split("\0") if path.endswith(endings) and os.path.exists(path))


def digest_of(paths):
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            total.update(path.encode() + b"\0" + hashlib.sha256(file.read()).digest())
    return total.digest()


def check_format():
    files = [path for path in own_files(".cc", ".h", ".proto", ".c") if not path.endswith("vmlinux.h")]
    run = subprocess.run(["clang-format-19", "--dry-run", "-Werror"] + [p for p in files if not p.endswith(".proto")],
                         stderr=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(run.stderr)
    print("passed" if run.returncode == 0 else "failed", "clang-format")


def compilations(bazel):
    """How each file is compiled: where the commands run, by file the arguments, and by file the place of its target's module
    map."""
    # Module maps and generated headers: what a compilation needs, without the compilation. Not by //..., in which a
    # Bazel of another output base finds the links of this one.
    subprocess.run(bazel + ["build", "--config=layering", "--output_groups=compilation_prerequisites_INTERNAL_",
                            "--experimental_convenience_symlinks=ignore", "--noshow_progress", "--ui_event_filters=-info"]
                   + [f"//{room}/..." for room in ROOMS], check=True, stdout=sys.stderr)
    # Not the workspace: the module maps name each other from there.
    root = subprocess.check_output(bazel + ["info", "execution_root"], stderr=subprocess.DEVNULL, text=True).strip()
    arguments, maps = {}, {}
    for file, entry in compile_commands.entries(bazel, drop=MACHINE_CODE).items():
        words = entry["arguments"][1:]
        # That of the file's own target comes first.
        maps[file] = next(word.partition("=")[2] for word in words if word.startswith("-fmodule-map-file="))
        arguments[file] = options(words[:words.index("-c")])
    return root, arguments, maps


def options(words):
    """Those that say how to read a file, each with its value."""
    found, words = [], iter(words)
    for word in words:
        if word in ("-iquote", "-I", "-isystem", "-D", "-MF"):
            word = (word, next(words))
        else:
            word = (word,)
        if not word[0].startswith(OF_ONE):
            found.append(word)
    return found


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
            root, arguments, maps = compilations(bazel)
            files = [path for path in files or own_files(".cc") if path in arguments]
            misplaced = includes.misplaced(root, maps)
            missing = [said for path in own_files(".cc", ".h") for said in includes.missing(path)]
            bad = Tidy(program, folder, root, arguments).check(files, jobs)
        finally:
            if apart:
                subprocess.run(bazel + ["shutdown"], check=False, capture_output=True)
    sys.stderr.write("".join(said + "\n" for said in misplaced + missing))
    print("failed" if misplaced or missing else "passed", "includes")
    print(*(["failed clang-tidy " + path for path in bad] or ["passed clang-tidy"]), sep="\n")


class Tidy:
    """Runs of clang-tidy, and what passed in earlier ones."""

    def __init__(self, program, folder, root, arguments):
        self.program, self.folder, self.root, self.arguments = program, folder, root, arguments
        self.cache = os.path.join(os.environ["HOME"], ".cache/blktape/clang-tidy")
        os.makedirs(self.cache, exist_ok=True)

    def check(self, files, jobs):
        """Tells what is wrong on stderr, and returns the files of which it did."""
        bad = []
        pool = concurrent.futures.ThreadPoolExecutor(jobs)
        try:
            for found in pool.map(self.batch, batches.of(files)):
                for path, said in found:
                    bad.append(path)
                    sys.stderr.write(said)
        finally:
            pool.shutdown(cancel_futures=True)
        return sorted(bad)

    def batch(self, files):
        if len(files) > 1 and not self.run(files):
            return []
        return [(path, said) for path in files for said in [self.run([path])] if said]

    def run(self, files):
        """What is wrong with the files, read as one."""
        words = [word for option in dict.fromkeys(option for path in files for option in self.arguments[path]) for word in option]
        content = digest_of([".clang-tidy", "WORKSPACE", "tests/python/requirements.txt"]
                            + sorted({one for path in files for one in includes.with_included(path)}))
        mark = os.path.join(self.cache, hashlib.sha256(content + "\0".join(files + words).encode()).hexdigest())
        if os.path.exists(mark):
            return ""
        # A shell is what a program that runs as root must not call, and what a test sets up its scene with.
        shell = ["--checks=-bugprone-command-processor"] if files[0].startswith("tests/") else []
        run = subprocess.run([self.program, "--quiet", "--config-file=" + os.path.abspath(".clang-tidy"), *shell,
                              self.source(files), "--", *words], cwd=self.root, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            with open(mark, "w"):
                pass
            return ""
        return run.stdout or run.stderr

    def source(self, files):
        if len(files) == 1:
            return files[0]
        path = os.path.join(self.folder, files[0].replace("/", "-"))
        with open(path, "w") as file:
            file.writelines(f'#include "{one}"  // NOLINT(bugprone-suspicious-include)\n' for one in files)
        return path


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
