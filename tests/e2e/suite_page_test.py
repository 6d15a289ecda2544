"""The page of a suite and of corners, opened in a real browser: drawn, sound, equal to the JSON."""

import os
import tempfile
import unittest

from tests.harness import blktape, browser, cases

SAMPLE = "tests/data/sample.tape"


class SuitePageTest(unittest.TestCase):
    def test_it_is_drawn_and_tells_what_json_tells(self):
        browser.need_browser()
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder, browser.Browser() as shown:
            db, page_path = os.path.join(folder, "results.db"), os.path.join(folder, "page.html")
            with open(os.path.join(folder, "office.suite"), "w", encoding="utf-8") as file:
                file.write("2 %s\n1 piece.tape\n" % os.path.abspath(SAMPLE))
            blktape.ok("cut", SAMPLE, "--from", "1s", "--to", "5s", "-o", os.path.join(folder, "piece.tape"))
            words = []
            for drive in ("nvme-2026", "hdd-2013", "sata-2011"):
                words += ["--target", "sim:" + drive]
                blktape.ok("corners", "--target", "sim:" + drive, "--quick", "--only", "depth", "--db", db)
            blktape.ok("bench", "--suite", os.path.join(folder, "office.suite"), *words, "--cycles", 2, "--db", db,
                       "-o", os.path.join(folder, "bench"))
            results = [row["id"] for row in blktape.as_json("results", "list", "--db", db)]
            self.assertEqual(len(results), 6)
            told = blktape.as_json("compare", *results, "--db", db, "--html", page_path)
            page = shown.open(page_path)
            page.assert_sound(self)
            self.assertIn("suite-bars", {figure["id"] for figure in page.data()["figures"]})
            tables = {name: {column["key"]: column["values"] for column in table["columns"]}
                      for name, table in page.data()["tables"].items()}
            for key in ("score", "ci_low", "ci_high"):
                self.assertEqual(tables["suite"][key], [drive[key] for drive in told["suites"]["drives"]], key)
            self.assertEqual(tables["corners"]["ratio_2"], [test["drives"][1]["ratio"] for test in told["corners"]["tests"]])
            self.assertEqual(page.value("document.querySelector('.verdict p').textContent"),
                             told["suites"]["sentences"][0]["text"])
            if os.environ.get("BLKTAPE_SCREENSHOT"):
                page.screenshot(os.environ["BLKTAPE_SCREENSHOT"])


if __name__ == "__main__":
    cases.main()
