"""The page of `analyze --html`, opened in a real browser, and what `--csv` and `--json` say beside it."""

import csv
import os
import subprocess
import tempfile
import unittest

from tests.harness import blktape, browser, cases

MAKE_TRACE = "tests/report/make_report_trace"
SAMPLE = "tests/data/sample.tape"
# Every name that a trace can hold: no markup, no direction of writing, no length may matter.
HOSTILE = ["</script><script>window.bad=1</script>", "<img src=x onerror=window.bad=2>", "\u202egpj.exe\u202c \u05d0\u05d1\u05d2", "'\"><b>&amp;",
           "x" * 10_000, "\x1b[31mred\x00\x07", "=1+2", "a,b\"c\nd"]


class DayPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        browser.need_browser()
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = browser.Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def path(self, name):
        return os.path.join(self.folder.name, "%s-%s" % (self.id().rsplit(".", 1)[-1], name))

    def page_of(self, trace, accept=(0,), **options):
        path = self.path("page.html")
        blktape.ok("analyze", trace, "--html", path, accept=accept)
        return self.browser.open(path, **options)

    def made(self, kind):
        path = self.path(kind + ".tape")
        subprocess.run([MAKE_TRACE, kind, path], input="\0\n".join(HOSTILE).encode(), check=True)
        return path

    def test_the_page_is_drawn_without_an_error_or_a_request(self):
        page = self.page_of(SAMPLE)
        page.assert_sound(self)
        ids = {figure["id"] for figure in page.data()["figures"]}
        self.assertLessEqual({"timeline", "latency_map", "sizes_asked", "sizes_issued", "addresses_1_reads", "addresses_1_writes",
                              "slower_than", "queue_depth", "idle_gaps", "processes", "working_set", "reuse"}, ids)

    def test_values_are_those_of_json(self):
        page = self.page_of(SAMPLE)
        truth = blktape.as_json("analyze", SAMPLE, "--series")
        tables = {name: {column["key"]: column["values"] for column in table["columns"]} for name, table in page.data()["tables"].items()}
        timeline = truth["details"]["timeline"]
        for key in ("reads_per_s", "writes_per_s", "read_bytes_per_s", "write_bytes_per_s", "busy_share", "depth_mean", "d2c_p50_ns",
                    "d2c_p99_ns", "d2c_max_ns", "share_4k"):
            self.assertEqual(tables["timeline"][key], timeline[key], key)
        self.assertEqual(tables["timeline"]["from_ns"], [i * timeline["step_ns"] for i in range(timeline["steps"])])
        self.assertEqual(sum(timeline["reads"]), truth["reads"])
        self.assertEqual(sum(timeline["write_bytes"]), truth["write_bytes"])
        for table, prefix, of in (("sizes", "issued", truth), ("sizes", "asked", truth["queued"])):
            for op in ("reads", "writes"):
                self.assertEqual(sum(tables[table]["%s_%s" % (prefix, op)]), sum(row[op] for row in of["size_histogram"]))
        self.assertEqual(tables["queue_depth"]["issued"], [row["issued"] for row in truth["queue_depth"]["distribution"]])
        self.assertEqual(tables["queue_depth"]["time_ns"], [row["time_ns"] for row in truth["queue_depth"]["distribution"]])
        self.assertEqual(tables["idle_gaps"]["total_ns"], [row["total_ns"] for row in truth["idle_gaps"]])
        self.assertEqual(tables["idle_caps"]["cut_ns"], [row["cut_ns"] for row in truth["idle_caps"]])
        self.assertEqual(tables["processes"]["write_bytes"], [row["write_bytes"] for row in truth["processes"]])
        self.assertEqual(tables["latency"]["p99_ns"][0], truth["d2c_ns"]["p99"])
        self.assertEqual(sum(tables["latency_map"]["ios"]), truth["d2c_ns"]["count"])
        addresses = truth["details"]["addresses"][0]
        self.assertEqual(sum(tables["addresses_1"]["writes"]), sum(addresses["writes"]))
        reuse = truth["details"]["reuse_distance"]["again"]
        by_size = dict(zip(tables["reuse"]["cache_bytes"], zip(tables["reuse"]["touches"], tables["reuse"]["hit_share"])))
        self.assertEqual([by_size[row["below_bytes"]] for row in reuse], [(row["touches"], row["hit_share"]) for row in reuse])
        for key in ("window_ns", "windows", "peak_bytes", "mean_bytes"):
            self.assertEqual(tables["working_set"][key], [row[key] for row in truth["details"]["working_set"]], key)
        # The verdict's first figure, worked from the JSON.
        self.assertTrue(page.value("document.querySelector('.verdict p').textContent").startswith(
            "%.0f %% of what software asked for" % (100 * truth["queued"]["share_4k"])))

    def test_hours_are_those_of_the_wall_clock(self):
        page = self.page_of(self.made("hours"))
        page.assert_sound(self)
        table = {column["key"]: column["values"] for column in page.data()["tables"]["hours"]["columns"]}
        reads, writes = [0] * 24, [0] * 24
        for i in range(400):
            hour = (14 * 60 + 30 + 10 * i) // 60 % 24
            (reads if i % 3 == 0 else writes)[hour] += 1
        self.assertEqual(table["hour"], ["%02d:00" % hour for hour in range(24)])
        self.assertEqual((table["reads"], table["writes"]), (reads, writes))
        self.assertIn("hours", {figure["id"] for figure in page.data()["figures"]})

    def test_csv_holds_the_same_tables(self):
        folder = self.path("csv")
        blktape.ok("analyze", SAMPLE, "--csv", folder)
        page = self.page_of(SAMPLE)
        tables = page.data()["tables"]
        self.assertEqual({name + ".csv" for name in tables}, set(os.listdir(folder)))
        for name, table in tables.items():
            with open(os.path.join(folder, name + ".csv"), newline="") as file:
                rows = list(csv.reader(file))
            self.assertEqual(rows[0], [column["key"] for column in table["columns"]], name)
            for i, column in enumerate(table["columns"]):
                for row, value in zip(rows[1:], column["values"], strict=True):
                    if isinstance(value, (int, float)):
                        self.assertEqual(float(row[i]), value)
                    else:
                        self.assertEqual(row[i], value or "")

    def test_every_kind_of_figure_is_drawn(self):
        path = self.path("gallery.html")
        subprocess.run(["tests/report/make_gallery", path], check=True)
        for width in (1200, 360):
            page = self.browser.open(path, width=width)
            page.assert_sound(self)
            self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width)
        self.assertEqual(page.value("document.querySelectorAll('.verdict p.bad').length"), 1)

    def test_names_are_data(self):
        page = self.page_of(self.made("hostile"), width=360)
        page.assert_sound(self)
        self.assertIsNone(page.value("window.bad === undefined ? null : window.bad"))
        self.assertEqual(page.value("document.querySelectorAll('script').length"), 3)
        self.assertEqual(page.value("document.querySelectorAll('img').length"), 0)
        tables = page.data()["tables"]
        self.assertIn(HOSTILE[0], tables["processes"]["columns"][0]["values"])
        self.assertTrue(all(name in tables["devices"]["columns"][0]["values"] for name in HOSTILE))
        self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 360)
        # Words of another direction stand in an element of their own.
        self.assertTrue(page.value("[...document.querySelectorAll('bdi')].some(b => b.textContent.includes('\\u202e'))"))

    def test_it_fits_a_telephone_and_both_themes(self):
        for dark in (False, True):
            page = self.page_of(SAMPLE, width=360, dark=dark)
            page.assert_sound(self)
            self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 360)
            background = page.value("getComputedStyle(document.body).backgroundColor")
            self.assertEqual(background, "rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
            os.remove(self.path("page.html"))

    def test_without_scripts_the_tables_are_there(self):
        page = self.page_of(SAMPLE, scripts=False)
        self.assertEqual(page.value("document.querySelectorAll('.chart').length > 5 && "
                                    "[...document.querySelectorAll('.chart')].every(c => c.offsetHeight === 0)"), True)
        self.assertGreater(page.value("document.querySelectorAll('table tbody tr').length"), 50)

    def test_keys_zoom_the_timeline(self):
        page = self.page_of(SAMPLE)
        span = "(() => { const texts = [...document.querySelectorAll('#chart-timeline svg text')].map(t => t.textContent); return texts.join('|'); })()"
        before = page.value(span)
        page.value("document.getElementById('chart-timeline').focus()")
        page.key("+")
        page.value("0")
        self.assertNotEqual(page.value(span), before)
        page.key("Home")
        self.assertEqual(page.errors(), [])

    def test_it_prints(self):
        page = self.page_of(SAMPLE, dark=True)
        pdf = page.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 20_000)
        self.assertEqual(page.errors(), [])

    def test_an_empty_trace_has_a_page(self):
        page = self.page_of(self.made("empty"))
        page.assert_sound(self)
        self.assertIn("Nothing happened", page.value("document.querySelector('.verdict').textContent"))

    def test_what_is_missing_is_said_first(self):
        page = self.page_of(self.made("lossy"), accept=(3,))
        page.assert_sound(self)
        self.assertIn("5 events were lost", page.value("document.querySelector('.verdict p.bad').textContent"))
        self.assertTrue(page.value("document.querySelector('#conditions .no') !== null"))

    def test_nothing_is_overwritten_and_nothing_half_is_left(self):
        path = self.path("there.html")
        with open(path, "w") as file:
            file.write("mine")
        result = blktape.run("analyze", SAMPLE, "--html", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("there.html", result.stderr)
        with open(path) as file:
            self.assertEqual(file.read(), "mine")
        result = blktape.run("analyze", SAMPLE, "--csv", self.folder.name)
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing is overwritten", result.stderr)
        missing = self.path("of-no-trace.html")
        self.assertEqual(blktape.run("analyze", "/no/such.tape", "--html", missing).returncode, 1)
        self.assertFalse(os.path.exists(missing))


if __name__ == "__main__":
    cases.main()
