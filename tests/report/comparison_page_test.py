"""The page of `compare --html`, opened in a real browser."""

import json
import os
import tempfile
import unittest

from tests.harness import blktape, browser, cases

TRACE = "tests/data/sample.tape"
HOSTILE = "</script><script>window.bad=1</script><img src=x onerror=window.bad=2>\u202e \u05d0'\"&amp;" + "x" * 10_000


def tables_of(page):
    return {name: {column["key"]: column["values"] for column in table["columns"]} for name, table in page.data()["tables"].items()}


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

    def path_of_page(self):
        return os.path.join(self.folder.name, self.id().rsplit(".", 1)[-1] + ".html")

    def report(self, folder):
        with open(os.path.join(folder, "report.json")) as file:
            return json.load(file)

    def written(self, name, report):
        path = os.path.join(self.folder.name, name + ".json")
        with open(path, "w") as file:
            json.dump(report, file)
        return path

    def page_of(self, *drives, accept=(0,), **options):
        path = self.path_of_page()
        blktape.ok("compare", *drives, "--html", path, accept=accept)
        return self.browser.open(path, **options)

    def test_is_drawn_without_an_error_or_a_request_and_tells_what_json_tells(self):
        told = blktape.as_json("compare", *self.drives)
        page = self.page_of(*self.drives)
        page.assert_sound(self)
        self.assertLessEqual({"score-bars", "wait-bars", "segment-ratios", "response-small-reads", "response-large-reads", "response-saves",
                              "over-time"}, {figure["id"] for figure in page.data()["figures"]})
        tables = tables_of(page)
        # Bars stand by place.
        drives = sorted(told["drives"], key=lambda drive: drive["place"])
        self.assertEqual(tables["score"]["drive"], [drive["label"] for drive in drives])
        for key in ("place", "score", "ci_low", "ci_high", "storage_wait_ns"):
            self.assertEqual(tables["score"][key], [drive[key] for drive in drives], key)
        for i, drive in enumerate(told["drives"]):
            self.assertEqual(tables["segments"]["ratio_%d" % (i + 1)], drive["segment_ratios"])
        self.assertEqual(tables["drives"]["place"], [drive["place"] for drive in told["drives"]])
        # The verdict comes first.
        self.assertEqual(page.value("document.querySelector('.verdict p').textContent"), told["sentences"][0]["text"])

    def test_tells_what_the_reports_tell(self):
        tables = tables_of(self.page_of(*self.drives))
        reports = [self.report(drive) for drive in self.drives]
        for i, report in enumerate(reports):
            for table, key in (("response-small-reads", "reads_to_16k"), ("response-large-reads", "reads_over_16k"),
                               ("response-saves", "sync_writes_and_flushes")):
                told = report["percentiles"][key]["ns"]
                self.assertEqual(tables[table]["ns_%d" % (i + 1)], told[:len(tables[table]["one_in"])], table)
                self.assertGreater(told[0], 0)
            series, mine = report["series"], [row for row, of in enumerate(tables["over_time"]["drive"]) if of.endswith(os.path.basename(self.drives[i]))]
            for key in ("bytes_per_s", "ios_per_s", "p99_ns", "max_ns", "depth_mean"):
                self.assertEqual([tables["over_time"][key][row] for row in mine], series[key], key)
            self.assertEqual(tables["over_time"]["from_ns"][mine[1]], series["step_ns"])
        self.assertAlmostEqual(tables["response-saves"]["one_in"][tables["response-saves"]["ns_1"].index(reports[0]["percentiles"]["sync_writes_and_flushes"]["ns"][7])], 100)
        self.assertEqual(tables["segments"]["from_ns"], [segment["from_ns"] for segment in reports[0]["segments"]])
        # In the order in which they ran.
        runs = sorted((run["began_ns"], run["label"], run["wall_ns"]) for report in reports for run in report["runs"])
        self.assertEqual(tables["runs"]["run"], [label for _, label, _ in runs])
        self.assertEqual(tables["runs"]["wall_ns"], [wall_ns for _, _, wall_ns in runs])

    def test_eight_drives_look_different_and_an_invalid_one_takes_no_place(self):
        drives = []
        for i in range(8):
            report = self.report(self.drives[i % 3])
            report["targets"][0].update({"model": "drive %d" % i, "serial": "s%d" % i, "path": "/dev/x%d" % i})
            for number, run in enumerate(report["runs"]):
                run["heat"].update({"celsius_before": 30 + i, "celsius_after": 40 + i + number, "celsius_limit": 80, "throttles": int(i == 5),
                                    "throttled_s": 2 * int(i == 5), "cpu_throttles": 0})
            if i == 2:
                report["valid"], report["invalid_reasons"] = False, ["rule 5: somebody else did I/O"]
            drives.append(self.written("many-%d" % i, report))
        page = self.page_of(*drives, accept=(3,), width=360)
        page.assert_sound(self)
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 360)
        figures = {figure["id"]: figure["chart"] for figure in page.data()["figures"]}
        looks = [(one["colour"] % 6, one["style"], one["symbol"]) for one in figures["response-saves"]["series"]]
        self.assertEqual(len(looks), 8)
        self.assertEqual(len(set(looks)), 8)
        tables = tables_of(page)
        self.assertEqual(tables["score"]["valid"], ["yes"] * 7 + ["no"])
        self.assertEqual(tables["score"]["note"][-1], "INVALID")
        # Three of the fastest kind tie, three of the slowest; of the third one of two is valid.
        self.assertEqual(tables["score"]["place"], [1, 1, 1, 4, 5, 5, 5, None])
        self.assertTrue(all("tie" in note for note in tables["score"]["note"][:3]))
        # Two of each run.
        self.assertEqual(sum(of == "drive 7" for of in tables["temperature"]["drive"]), 2 * len(self.report(self.drives[1])["runs"]))
        self.assertIn("THROTTLED", page.value("document.querySelector('#conditions').textContent"))
        # Said once of the invalid one, and not again of each pair.
        self.assertEqual(page.value("[...document.querySelectorAll('.verdict p.bad')].filter(p => p.textContent.includes('drive 2')).length"), 1)

    def test_a_report_of_before_has_a_page_too(self):
        drives = []
        for drive in self.drives:
            report = self.report(drive)
            for key in ("percentiles", "series", "responses"):
                del report[key]
            for segment in report["segments"]:
                del segment["from_ns"]
            for run in report["runs"]:
                for key in ("began_ns", "heat", "skipped", "emulated", "foreign_sectors", "planned"):
                    del run[key]
            drives.append(self.written("before-" + os.path.basename(drive), report))
        page = self.page_of(*drives)
        page.assert_sound(self)
        self.assertEqual({figure["id"] for figure in page.data()["figures"]}, {"score-bars", "wait-bars", "segment-ratios"})
        self.assertIn("no percentiles", page.value("document.querySelector('#left-out').textContent"))

    def corners(self, model, factor):
        tests = []

        def add(group, name, op, depth, mb_s, condition="", series=()):
            tests.append({"group": group, "name": name, "condition": condition, "op": op, "queue_depth": depth, "bytes_per_second": mb_s * factor * 1e6,
                          "iops": mb_s * factor * 244, "d2c_ns": {"p99": 1e6 / factor}, "series": {"step_ns": 1_000_000_000, "bytes": list(series)}})

        for op in ("read", "write"):
            for depth in (1, 4, 32):
                add("depth", "4 KiB random %s, QD %d, span 16 GiB" % (op, depth), op, depth, 40 * depth)
        for share in (0, 50, 100):
            add("compressible", "128 KiB sequential write, QD 1, %d %% compressible" % share, "write", 1, 300 + share)
        add("torture", "4 KiB random write, QD 32", "write", 32, 90, "torture", [90e6 * factor, 50e6 * factor, 30e6 * factor])
        add("torture", "4 KiB random write, QD 32", "write", 32, 60, "after 5 min", [60e6 * factor, 70e6 * factor])
        return self.written("corners-" + model[:9].replace("/", "_"), {
            "corners": 1, "quick": False, "targets": [{"name": "sdx", "model": model}], "tests": tests})

    def test_corners_are_drawn_beside_the_scores(self):
        corners = [self.corners("drive one", 1.0), self.corners(HOSTILE, 2.0)]
        for drives in (corners, [*self.drives, *corners]):
            page = self.page_of(*drives, dark=True)
            page.assert_sound(self)
            self.assertEqual(page.value("typeof window.bad"), "undefined")
            figures = {figure["id"] for figure in page.data()["figures"]}
            self.assertLessEqual({"corners-depth-reads", "corners-depth-writes", "corners-compressible", "corners-torture",
                                  "corners-torture-series"}, figures)
            tables = tables_of(page)
            self.assertEqual(tables["corners-depth-reads"]["queue_depth"], [1, 4, 32])
            self.assertEqual(tables["corners-depth-reads"]["iops_2"], [40 * depth * 2 * 244 for depth in (1, 4, 32)])
            self.assertEqual(tables["corners-compressible"]["mb_per_second_1"], [300, 350, 400])
            # The torture and what followed it, one after the other.
            self.assertEqual(tables["corners-torture-series"]["from_ns"], [second * 1e9 for second in (0, 1, 2, 3, 4)] * 2)
            self.assertEqual(tables["corners-torture-series"]["bytes_per_second"][5:], [180e6, 100e6, 60e6, 120e6, 140e6])
            os.remove(self.path_of_page())
        order = page.value("[...document.querySelectorAll('main > section')].map(s => s.id)")
        self.assertLess(order.index("corners"), order.index("conditions"))

    def test_without_scripts_and_on_paper(self):
        page = self.page_of(*self.drives, scripts=False)
        self.assertGreater(page.value("document.querySelectorAll('table tbody tr').length"), 100)
        self.assertEqual(page.value("[...document.querySelectorAll('.chart')].every(c => c.offsetHeight === 0)"), True)
        os.remove(self.path_of_page())
        page = self.page_of(*self.drives, dark=True)
        self.assertTrue(page.pdf().startswith(b"%PDF"))
        self.assertEqual(page.errors(), [])

    def test_hostile_names_and_an_invalid_score_are_data(self):
        report = self.report(self.drives[0])
        for run in report["runs"]:
            run["label"] = run["file"] = run["engine"] = HOSTILE
            run["skipped"] = {HOSTILE: 3}
        report["host"] = report["series"]["run"] = report["targets"][0]["link"] = HOSTILE
        report["targets"][0]["model"] = report["trace"] = report["rule"] = report["state"] = HOSTILE
        report["valid"], report["invalid_reasons"] = False, [HOSTILE]
        hostile = self.written("hostile", report)
        page = self.page_of(hostile, self.drives[1], accept=(3,), dark=True)
        page.assert_sound(self)
        self.assertEqual(page.value("typeof window.bad"), "undefined")
        self.assertIn("INVALID", page.value("document.querySelector('.verdict').textContent"))


if __name__ == "__main__":
    cases.main()
