"""Tests that use packages of PyPI: `pypi.enter()` before importing any of them.

`tools/setup test` keeps a Python of its own with these packages, as tests/python/requirements.txt pins them, and
`./test` names it in BLKTAPE_PYTHON. A test starts in Debian's Python, as all do, and goes on in that one; it finds the
package `blktape` in python/src. Without it the test is skipped and says so; in CI it fails.
"""

import os
import sys
import unittest

from tests.harness import cases

SOURCE = os.path.join(os.getcwd(), "python", "src")


class PackagesTest(unittest.TestCase):
    def test_packages_of_pypi(self):
        cases.need(False, "no Python with the packages of tests/python/requirements.txt: run tools/setup test, then ./test")


def enter():
    python = os.environ.get("BLKTAPE_PYTHON")
    if not python or not os.access(python, os.X_OK):
        sys.modules["__main__"].PackagesTest = PackagesTest
        cases.main()
    if os.environ.get("BLKTAPE_PYTHON_ENTERED") != python:
        # Not what Bazel lays out: its folder of the workspace is called blktape too.
        os.environ.update(BLKTAPE_PYTHON_ENTERED=python, PYTHONPATH=os.pathsep.join([SOURCE, os.getcwd()]),
                          PYTHONDONTWRITEBYTECODE="1")
        os.execv(python, [python, os.path.abspath(sys.argv[0]), *sys.argv[1:]])
    # A script's own folder comes first in sys.path.
    sys.path[:] = [SOURCE, os.getcwd()] + [path for path in sys.path if path not in (SOURCE, os.getcwd())]
