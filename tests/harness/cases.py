"""unittest whose cases Bazel can count: writes XML_OUTPUT_FILE, and lets no test skip in CI.

A test file ends with `cases.main()`. What needs root or a facility of the machine calls
`cases.need(condition, "why")`: it skips on a user's machine and fails in CI, where it must be there.
What needs a recording too large or too foreign for the repository calls `cases.shared("traces/...")`:
without it the case skips and is named, in CI too.
"""

import os
import sys
import time
import traceback
import unittest
import xml.etree.ElementTree as ET


def need(condition, reason):
    if condition:
        return
    if os.environ.get("CI"):
        raise AssertionError("in CI this must be there: " + reason)
    raise unittest.SkipTest(reason)


def shared(*names):
    """The paths of these files beside the repository (BLKTAPE_SHARED)."""
    paths = [os.path.join(os.environ.get("BLKTAPE_SHARED", ""), name) for name in names]
    for name, path in zip(names, paths):
        if not os.path.isabs(path) or not os.path.exists(path):
            # tools/count.py knows the first words.
            raise unittest.SkipTest("not in the repository: shared/" + name)
    return paths


class _XmlResult(unittest.TextTestResult):
    """One testcase element per case, as tools/count.py reads it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []
        self._begin = time.monotonic()  # of the case; a failure before the first is one, too

    def startTest(self, test):
        super().startTest(test)
        self._begin = time.monotonic()

    def _add(self, test, kind=None, text=""):
        case = ET.Element("testcase", name=test.id().removeprefix("__main__."),
                          time="%.3f" % (time.monotonic() - self._begin))
        if kind:
            ET.SubElement(case, kind, message=text.strip().splitlines()[-1] if text else "").text = text
        self.cases.append(case)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._add(test, "failure", "".join(traceback.format_exception(*err)))

    def addError(self, test, err):
        super().addError(test, err)
        self._add(test, "error", "".join(traceback.format_exception(*err)))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "skipped", reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._add(subtest, "failure", "".join(traceback.format_exception(*err)))


def _of_this_shard(suite):
    """What Bazel has this process run of a test with a shard_count, as its Test Encyclopedia says."""
    shards = int(os.environ.get("TEST_TOTAL_SHARDS", 1))
    if shards == 1:
        return suite
    with open(os.environ["TEST_SHARD_STATUS_FILE"], "w", encoding="ascii"):
        pass  # That there is one tells Bazel that the cases are divided.
    return unittest.TestSuite(list(_cases(suite))[int(os.environ["TEST_SHARD_INDEX"])::shards])


def _cases(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from _cases(one)
        else:
            yield one


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    runner = unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=_XmlResult)
    result = runner.run(_of_this_shard(suite))
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        root = ET.Element("testsuites")
        ET.SubElement(root, "testsuite", name="cases", tests=str(len(result.cases))).extend(result.cases)
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    sys.exit(0 if result.wasSuccessful() and result.cases else 1)
