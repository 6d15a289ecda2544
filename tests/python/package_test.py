"""`pip install ./python` gives a typed package that reads traces on its own."""

from tests.harness import pypi

pypi.enter()

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.harness import cases


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        # As a user has it: pip builds inside of the folder.
        cls.source = Path(cls.folder.name, "python")
        shutil.copytree("python", cls.source, symlinks=False)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_ok(self, *words, **options):
        done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False,
                              cwd=self.folder.name, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_it_installs_and_reads(self):
        sample = os.path.realpath("tests/data/sample.tape")
        # Nothing may be fetched here: what builds it and what it needs is there.
        self.run_ok("-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--no-deps", "--target", "installed",
                    "./python", env={**os.environ, "PYTHONPATH": ""})
        env = {**os.environ, "PYTHONPATH": "installed"}
        said = self.run_ok("-c", "import blktape, sys; print(blktape.__file__); "
                                 "print(blktape.read_table(sys.argv[1]).num_rows)", sample, env=env)
        self.assertEqual(said.splitlines(), [os.path.join(self.folder.name, "installed/blktape/__init__.py"), "11590"])
        self.assertIn("usage: python -m blktape", self.run_ok("-m", "blktape", "--help", env=env))
        self.assertTrue(Path(self.folder.name, "installed/blktape/py.typed").exists())
        self.assertEqual(list(Path(self.folder.name, "installed").glob("blktape-*.dist-info/METADATA"))[0].read_text().count(
            "Requires-Dist: pyarrow"), 1)

    def test_its_types_hold(self):
        self.run_ok("-m", "mypy", "--config-file", "python/pyproject.toml", "--cache-dir", "types", "python/src",
                    env={**os.environ, "PYTHONPATH": ""})


if __name__ == "__main__":
    cases.main()
