"""Scores of simulated drives, kept as results and compared."""

import csv
import io
import json
import os
import shutil
import sqlite3
import tempfile
import unittest

from tests.harness import blktape, cases

TRACE = "tests/data/sample.tape"
DRIVES = ("nvme-2026", "sata-2011", "emmc-2018")


class CompareTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        cls.addClassCleanup(cls.folder.cleanup)
        for drive in DRIVES:
            blktape.ok("score", TRACE, "--target", "sim:" + drive, "--cycles", 2, "--no-db", "-o", cls.scored(drive))

    @classmethod
    def scored(cls, name):
        return os.path.join(cls.folder.name, "scores", name)

    def path(self, name):
        return os.path.join(self.folder.name, "%s-%s" % (self.id().rsplit(".", 1)[-1], name))

    def report(self, drive):
        with open(os.path.join(self.scored(drive), "report.json")) as file:
            return json.load(file)

    def test_ratios_are_those_of_the_scores(self):
        told = blktape.as_json("compare", *map(self.scored, DRIVES))
        scores = [self.report(drive)["score"] for drive in DRIVES]
        self.assertEqual([drive["score"] for drive in told["drives"]], scores)
        self.assertEqual(len(told["pairs"]), 3)
        for pair in told["pairs"]:
            # One reference, so the ratio is that of the scores.
            self.assertAlmostEqual(pair["ratio"], scores[pair["first"]] / scores[pair["second"]], places=9)
            self.assertEqual(pair["verdict"], "faster" if pair["ratio"] >= 1.02 else "tie")
        for drive, place in zip(told["drives"], [1 + sum(other > 1.02 * score for other in scores) for score in scores]):
            self.assertEqual(drive["place"], place)

    def test_a_drive_ties_with_itself_and_another_rule_gets_no_verdict(self):
        self.assertEqual(blktape.as_json("compare", self.scored("nvme-2026"), self.scored("nvme-2026"))["pairs"][0]["verdict"], "tie")
        other = self.path("open")
        blktape.ok("score", TRACE, "--target", "sim:nvme-2026", "--cycles", 2, "--open", "-o", other, accept=(0, 3))
        run = blktape.run("compare", other, self.scored("sata-2011"))
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("No verdict on", run.stdout)
        self.assertIn("different rules", run.stdout)

    def test_results_go_in_and_out(self):
        db = self.path("results.db")
        blktape.ok("results", "import", self.scored(""), "--db", db)
        listed = blktape.as_json("results", "list", "--db", db)
        self.assertEqual([row["name"] for row in listed], sorted(DRIVES))
        self.assertEqual([row["id"] for row in listed], [1, 2, 3])
        with open(os.path.join(self.scored("nvme-2026"), "report.json")) as file:
            self.assertEqual(blktape.ok("results", "export", "nvme-2026", "--db", db).stdout, file.read())
        self.assertIn("closed loop", blktape.ok("results", "show", "nvme-2026", "--db", db).stdout)
        # By id and name as from folders.
        by_name = blktape.as_json("compare", 1, "sata-2011", "--db", db)
        by_folder = blktape.as_json("compare", self.scored("emmc-2018"), self.scored("sata-2011"))
        self.assertEqual(by_name["pairs"], by_folder["pairs"])
        self.assertEqual(by_name["sentences"], by_folder["sentences"])
        again = blktape.as_json("results", "import", self.scored("nvme-2026"), "--db", db)
        self.assertTrue(again[0]["was_there"])
        blktape.ok("results", "rm", "nvme-2026", 1, "--db", db)
        self.assertEqual([row["name"] for row in blktape.as_json("results", "list", "--db", db)], ["sata-2011"])
        for line in blktape.ok("results", "list", "--db", db).stdout.splitlines():
            self.assertLess(len(line), 80)

    def test_a_score_is_kept_by_itself_unless_told_not_to(self):
        db = self.path("kept.db")
        folder = self.path("kept")
        words = ("score", TRACE, "--target", "sim:emmc-2018", "--cycles", 2, "-o", folder)
        run = blktape.ok(*words, "--db", db, "--keep-traces")
        self.assertIn("kept as result 1", run.stderr)
        (row,) = blktape.as_json("results", "list", "--db", db)
        self.assertEqual((row["name"], row["kind"]), (os.path.basename(folder), "score"))
        traces = {name for name in os.listdir(folder) if name.endswith(".tape")}
        self.assertEqual(set(os.listdir(db + ".traces/1")), traces)
        # Another of the name gets a number.
        shutil.rmtree(folder)
        blktape.ok(*words[:2], "--target", "sim:sata-2011", *words[4:], "--db", db)
        self.assertEqual([row["name"] for row in blktape.as_json("results", "list", "--db", db)],
                         [row["name"], row["name"] + "-2"])
        blktape.ok("results", "rm", 1, "--db", db)
        self.assertFalse(os.path.exists(db + ".traces"))
        # The default file; none of it with --no-db, and no failure where there can be none.
        home = self.path("home")
        for words_more, kept in (((), True), (("--no-db",), False)):
            shutil.rmtree(folder)
            shutil.rmtree(home, ignore_errors=True)
            blktape.ok(*words, *words_more, env={**os.environ, "XDG_DATA_HOME": home})
            self.assertEqual(os.path.exists(os.path.join(home, "blktape", "results.db")), kept)
        shutil.rmtree(folder)
        run = blktape.ok(*words, env={**os.environ, "XDG_DATA_HOME": "/dev/null/x"})
        self.assertIn("warning: the result is not kept", run.stderr)
        shutil.rmtree(folder)
        self.assertEqual(blktape.run(*words, "--db", "/dev/null/x").returncode, 1)
        self.assertFalse(os.path.exists(folder), "known before the first run")

    def test_corners_are_kept_and_compared(self):
        db = self.path("corners.db")
        for name in ("one", "other"):
            blktape.ok("corners", "--engine", "simulated", "--quick", "--only", "sequential", "--db", db, "--name", name)
        # The same figures byte by byte are one result.
        self.assertEqual([(row["name"], row["kind"]) for row in blktape.as_json("results", "list", "--db", db)],
                         [("one", "corners")])
        blktape.ok("corners", "--engine", "simulated", "--quick", "--only", "sequential", "--seed", 2, "--db", db, "--name", "other")
        told = blktape.as_json("compare", "one", "other", "--db", db)
        self.assertEqual((told["drives"], len(told["corners"]["drives"])), ([], 2))
        for test in told["corners"]["tests"]:
            first, second = test["drives"]
            self.assertEqual(first["ratio"], 1)
            self.assertAlmostEqual(second["ratio"], second["bytes_per_second"] / first["bytes_per_second"], places=9)
        page = self.path("corners.html")
        text = blktape.ok("compare", "one", "other", "--db", db, "--html", page).stdout
        self.assertIn("QUICK", text)
        for line in text.splitlines():
            self.assertLess(len(line), 80, line)
        rows = list(csv.DictReader(io.StringIO(blktape.ok("compare", "one", "other", "--db", db, "--csv").stdout)))
        self.assertEqual(len(rows), len(told["corners"]["tests"]))
        # Together with scores, of which one table would be two.
        both = ("compare", "one", "other", self.scored("nvme-2026"), self.scored("sata-2011"), "--db", db)
        self.assertEqual(len(blktape.as_json(*both)["pairs"]), 1)
        self.assertEqual(blktape.run(*both, "--csv").returncode, 2)
        self.assertEqual(blktape.run("compare", "one", self.scored("nvme-2026"), "--db", db).returncode, 2)

    def test_nothing_is_overwritten(self):
        db = self.path("results.db")
        blktape.ok("results", "import", self.scored("nvme-2026"), "--db", db, "--name", "mine")
        taken = blktape.run("results", "import", self.scored("sata-2011"), "--db", db, "--name", "mine")
        self.assertEqual((taken.returncode, taken.stdout), (1, ""))
        self.assertIn("mine", taken.stderr)
        there = self.path("there")
        with open(there, "w") as file:
            file.write("mine")
        for words in (("results", "export", "mine", "--db", db, "-o", there),
                      ("compare", self.scored("nvme-2026"), self.scored("sata-2011"), "--html", there)):
            self.assertEqual(blktape.run(*words).returncode, 1)
            with open(there) as file:
                self.assertEqual(file.read(), "mine")

    def test_a_newer_schema_and_damage_are_named(self):
        db = self.path("results.db")
        blktape.ok("results", "import", self.scored("nvme-2026"), "--db", db)
        newer = self.path("newer.db")
        shutil.copy(db, newer)
        with sqlite3.connect(newer) as connection:
            self.assertEqual(connection.execute("PRAGMA application_id").fetchone(), (0x626C6B74,))
            self.assertEqual(connection.execute("PRAGMA user_version").fetchone(), (2,))
            connection.execute("PRAGMA user_version = 3")
        connection.close()
        refused = blktape.run("results", "list", "--db", newer)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("newer", refused.stderr)
        with open(db, "r+b") as file:
            file.truncate(5000)
        damaged = blktape.run("results", "list", "--db", db)
        self.assertEqual((damaged.returncode, damaged.stdout), (1, ""))
        self.assertIn(db, damaged.stderr)
        self.assertIn("damaged", damaged.stderr)

    def test_mistakes_are_told(self):
        empty = self.path("empty")
        os.mkdir(empty)
        for words, status in ((("compare", self.scored("nvme-2026")), 2),
                              (("compare", self.scored("nvme-2026"), self.path("nothing")), 1),
                              (("compare", self.scored("nvme-2026"), TRACE), 1),
                              (("compare", self.scored("nvme-2026"), empty), 1),
                              (("results", "frobnicate", "x"), 2), (("results", "show"), 2),
                              (("results", "import", TRACE, "--db", self.path("none.db")), 1)):
            run = blktape.run(*words)
            self.assertEqual((run.returncode, run.stdout), (status, ""), (words, run.stderr))
            self.assertTrue(run.stderr.startswith("error: "), run.stderr)
        self.assertFalse(os.path.exists(self.path("none.db")))

    def test_every_form_tells_the_same(self):
        drives = [self.scored(drive) for drive in DRIVES]
        page = self.path("page.html")
        text = blktape.ok("compare", *drives, "--html", page).stdout
        for line in text.splitlines():
            self.assertLess(len(line), 80, line)
        told = blktape.as_json("compare", *drives)
        rows = list(csv.DictReader(io.StringIO(blktape.ok("compare", *drives, "--csv").stdout)))
        self.assertEqual([float(row["score"]) for row in rows], [drive["score"] for drive in told["drives"]])
        self.assertEqual([int(row["place"]) for row in rows], [drive["place"] for drive in told["drives"]])
        markdown = blktape.ok("compare", *drives, "--markdown").stdout
        self.assertEqual(markdown.count("\n| "), 2 + len(told["drives"]) + len(told["pairs"]))
        with open(page) as file:
            html = file.read()
        unbroken = " ".join(text.split())
        for sentence in told["sentences"]:
            self.assertIn(sentence["text"], unbroken)
        self.assertIn('id="chart-score-bars"', html)


if __name__ == "__main__":
    cases.main()
