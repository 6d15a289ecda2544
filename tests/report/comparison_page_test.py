"""The page of `compare --html`, opened in a real browser."""

import json
import os
import tempfile
import unittest

from tests.harness import blktape, browser, cases

TRACE = "tests/data/sample.tape"
HOSTILE = "</script><script>window.bad=1</script><img src=x onerror=window.bad=2>\u202e \u05d0'\"&amp;" + "x" * 2_000


class ComparisonPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        browser.need_browser()
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = browser.Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)
        cls.drives = []
        for drive in ("nvme-2026", "sata-2011", "emmc-2018"):
            folder = os.path.join(cls.folder.name, drive)
            blktape.ok("score", TRACE, "--target", "sim:" + drive, "--cycles", 2, "-o", folder)
            cls.drives.append(folder)

    def page_of(self, *drives, accept=(0,), **options):
        path = os.path.join(self.folder.name, self.id().rsplit(".", 1)[-1] + ".html")
        blktape.ok("compare", *drives, "--html", path, accept=accept)
        return self.browser.open(path, **options)

    def test_is_drawn_without_an_error_or_a_request_and_tells_what_json_tells(self):
        told = blktape.as_json("compare", *self.drives)
        page = self.page_of(*self.drives)
        page.assert_sound(self)
        self.assertLessEqual({"score-bars", "wait-bars"}, {figure["id"] for figure in page.data()["figures"]})
        tables = {name: {column["key"]: column["values"] for column in table["columns"]} for name, table in page.data()["tables"].items()}
        for key in ("score", "ci_low", "ci_high", "storage_wait_ns"):
            self.assertEqual(tables["score"][key], [drive[key] for drive in told["drives"]], key)
        # The verdict comes first.
        self.assertEqual(page.value("document.querySelector('.verdict p').textContent"), told["sentences"][0]["text"])

    def test_hostile_names_and_an_invalid_score_are_data(self):
        with open(os.path.join(self.drives[0], "report.json")) as file:
            report = json.load(file)
        report["targets"][0]["model"] = report["trace"] = report["rule"] = report["state"] = HOSTILE
        report["valid"], report["invalid_reasons"] = False, [HOSTILE]
        hostile = os.path.join(self.folder.name, "hostile.json")
        with open(hostile, "w") as file:
            json.dump(report, file)
        page = self.page_of(hostile, self.drives[1], accept=(3,), dark=True)
        page.assert_sound(self)
        self.assertEqual(page.value("typeof window.bad"), "undefined")
        self.assertIn("INVALID", page.value("document.querySelector('.verdict').textContent"))


if __name__ == "__main__":
    cases.main()
