#!/usr/bin/python3
"""Lint of our own C++ files: lint.py format|tidy [--jobs N] [FILE...]. Prints `passed NAME` or `failed NAME`.

format  clang-format-19 leaves every file as it is
tidy    clang-tidy-19 has nothing to say, clang warns of nothing, and every include is of a direct
        dependency: clang-tidy reads each file with the module maps of --config=layering, so that no
        compilation of its own is needed for that. What passed is remembered by the content of the
        file, of the headers of ours that it includes, of its dependencies' module maps, and of the
        configuration, so that a second run costs seconds.
What is wrong is told on stderr. The exit status is 0 in either case: tools/count.py judges.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^\s*(?:#\s*include|import)\s+"([^"]+)"', re.MULTILINE)
ROOMS = ("base", "format", "host", "capture", "replay", "analysis", "report", "bench", "cli", "tests")


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


def compile_commands(folder):
    """Writes compile_commands.json into the folder: how each file is compiled with the layering check. Returns where
    the commands run, and the arguments of each file."""
    # Module maps and generated headers: what a compilation needs, without the compilation.
    subprocess.run(["bazel", "build", "--config=layering", "--output_groups=compilation_prerequisites_INTERNAL_",
                    "--noshow_progress", "--ui_event_filters=-info", "//..."], check=True, stdout=sys.stderr)
    # Not the workspace: the module maps name each other from there.
    root = subprocess.check_output(["bazel", "info", "execution_root"], stderr=subprocess.DEVNULL, text=True).strip()
    path = os.path.join(folder, "compile_commands.json")
    subprocess.run(["/usr/bin/python3", "tools/compile_commands.py", "--config=layering", "--directory=" + root,
                    "--output=" + path], check=True, stdout=subprocess.DEVNULL)
    with open(path) as file:
        return root, {entry["file"]: entry["arguments"] for entry in json.load(file)}


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


def check_tidy(jobs, files):
    with tempfile.TemporaryDirectory() as folder:
        _check_tidy(folder, *compile_commands(folder), jobs, files)


def _check_tidy(folder, root, known, jobs, files):
    cache = os.path.join(os.environ["HOME"], ".cache/blktape/clang-tidy")
    os.makedirs(cache, exist_ok=True)

    def one(path):
        content = digest_of([".clang-tidy", "WORKSPACE"] + with_includes(path) + module_maps(known[path]))
        mark = os.path.join(cache, hashlib.sha256(content + "\0".join(known[path]).encode()).hexdigest())
        if os.path.exists(mark):
            return path, ""
        run = subprocess.run(["clang-tidy-19", "--quiet", "-p", folder, "--config-file=" + os.path.abspath(".clang-tidy"), path],
                             cwd=root, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            with open(mark, "w"):
                pass
            return path, ""
        return path, run.stdout or run.stderr

    bad = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for path, said in pool.map(one, [path for path in files or own_files(".cc") if path in known]):
            if said:
                bad.append(path)
                sys.stderr.write(said)
    print(*(["failed clang-tidy " + path for path in bad] or ["passed clang-tidy"]), sep="\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["format", "tidy"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*", help="these alone (tidy)")
    arguments = parser.parse_intermixed_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if arguments.what == "format":
        check_format()
    else:
        check_tidy(arguments.jobs, arguments.files)


if __name__ == "__main__":
    main()
