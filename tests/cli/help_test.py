"""What a person meets first: help, versions, mistyped verbs, exit statuses."""

import os
import re
import subprocess
import tempfile
import unittest

from tests.harness import cases

BLKTAPE = "cli/blktape"


def run(*words):
    return subprocess.run([BLKTAPE, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def verbs():
    listed = run("--help").stdout.split("Verbs:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]


class HelpTest(unittest.TestCase):
    def test_overview_lists_verbs_within_80_columns(self):
        self.assertIn("analyze", verbs())
        for line in run("--help").stdout.splitlines():
            self.assertLess(len(line), 80, line)
            self.assertEqual(line, line.rstrip())

    def test_every_verb_helps_within_80_columns_examples_first(self):
        for verb in verbs():
            with self.subTest(verb):
                help_of = run(verb, "--help")
                self.assertEqual(help_of.returncode, 0)
                self.assertEqual(help_of.stderr, "")
                for line in help_of.stdout.splitlines():
                    self.assertLess(len(line), 80, line)
                    self.assertEqual(line, line.rstrip())
                self.assertIn("Examples:\n  blktape " + verb, help_of.stdout)
                self.assertLess(help_of.stdout.index("Examples:"), help_of.stdout.index("--help"))

    def test_lists_of_formats_are_within_80_columns(self):
        for verb in ("import", "export"):
            for line in run(verb, "--list-formats").stdout.splitlines():
                self.assertLess(len(line), 80, line)

    def test_hangup_is_told_of(self):
        self.assertIn("SIGHUP", run("record", "--help").stdout)

    def test_examples_name_only_flags_that_the_verb_has(self):
        for verb in verbs():
            with self.subTest(verb):
                text = run(verb, "--help").stdout
                examples, rest = text.split("\n\n", 2)[1:]
                # Words of other programs: before a pipe, after one, and after "--".
                own = re.sub(r"(?m)^.*\| *(?=blktape )", "", examples)
                own = re.sub(r"( -- |\|).*", "", own)
                for flag in re.findall(r"(?<=\s)--?[a-z][a-z-]*", own):
                    self.assertRegex(rest, r"(?<![\w-])%s(?![\w-])" % re.escape(flag))

    def test_examples_are_understood_as_they_stand(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # Not of record and check, which would do as they are told. The others miss their files (1), but nothing else (2);
        # mark its recording, where there is none. Whoever is not root has no access to others'.
        alone = ["unshare", "--map-root-user", "--mount", "sh", "-ec", 'mount -t tmpfs run /run; exec "$@"', "sh"]
        for verb in set(verbs()) - {"record", "check"}:
            examples = run(verb, "--help").stdout.split("Examples:\n")[1].split("\n\n")[0]
            for line in re.findall(r"(?m)^  blktape ([^|>\n]*)", examples):
                with self.subTest(line):
                    words = re.split(r"  +", line.strip())[0].split()  # a remark may stand behind
                    before = alone if verb == "mark" and os.geteuid() == 0 else []
                    ended = subprocess.run([*before, os.path.realpath(BLKTAPE), *words], capture_output=True, text=True,
                                           stdin=subprocess.DEVNULL, cwd=folder.name, check=False)
                    self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended.stderr)
                    self.assertRegex(ended.stderr, "^error: ")
        self.assertEqual(os.listdir(folder.name), [])

    def test_help_is_asked_for_in_any_place(self):
        for verb in verbs():
            self.assertEqual(run(verb, "-h").stdout, run(verb, "--help").stdout)

    def test_version(self):
        self.assertRegex(run("--version").stdout, r"^blktape \d+\.\d+\.\d+\n$")

    def test_nothing_at_all_shows_the_overview_as_a_mistake(self):
        result = run()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("Verbs:", result.stderr)

    def test_a_mistyped_verb_is_named_with_the_nearest(self):
        result = run("analyse")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn('there is no verb "analyse"; did you mean "analyze"?', result.stderr)

    def test_a_verb_like_none_gets_no_guess(self):
        result = run("frobnicate")
        self.assertEqual(result.returncode, 2)
        self.assertNotIn("did you mean", result.stderr)
        self.assertIn("try:  blktape --help", result.stderr)

    def test_an_unknown_flag_is_a_usage_error_of_every_verb(self):
        for verb in verbs():
            with self.subTest(verb):
                result = run(verb, "--no-such-flag")
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn("blktape %s --help" % verb, result.stderr)

    def test_results_never_go_where_there_is_no_room(self):
        # A full disk behind standard output is a failure, not a success.
        with open("/dev/full", "w") as full:
            for words in (["--help"], ["analyze", "--help"], ["--version"]):
                status = subprocess.run([BLKTAPE, *words], stdout=full, stderr=subprocess.DEVNULL, check=False).returncode
                self.assertNotEqual(status, 0, words)


if __name__ == "__main__":
    cases.main()
