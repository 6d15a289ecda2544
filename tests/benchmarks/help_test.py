"""The benchmarks are built, and tell how they are run."""

import subprocess
import unittest

from tests.harness import cases


class HelpTest(unittest.TestCase):
    def test_each_benchmark_tells_how_it_is_run(self):
        for name in (":analysis", ":rate", ":timing", ":memory", ":python_package", ":score_study", ":host_stops",
                     "/prediction", "/prediction:delayed"):
            with self.subTest(name):
                program = "tests/benchmarks" + name.replace(":", "/")
                if name == "/prediction":
                    program += name  # its package has its name
                said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
                self.assertIn("bazel run -c opt //tests/benchmarks" + name, said.stdout)

    def test_the_loop_they_are_measured_against_takes_arguments(self):
        said = subprocess.run(["tests/benchmarks/uring_loop", "--help"], capture_output=True, text=True, check=True)
        self.assertIn("usage: uring_loop", said.stderr)


if __name__ == "__main__":
    cases.main()
