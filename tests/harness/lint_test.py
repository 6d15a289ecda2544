"""tools/includes.py tells of an include too many and of one too few; tools/batches.py puts together only what does not clash."""

import os
import sys
import tempfile
import unittest

from tests.harness import cases

sys.path.insert(0, "tools")
import batches  # noqa: E402
import includes  # noqa: E402


class LintTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for remembered in includes.included_by, includes.with_included, batches.declared:
            remembered.cache_clear()

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def target(self, name, headers=(), private=(), uses=()):
        """A module map as Bazel writes it for the layering check."""
        path = f"bazel-out/bin/{name}.cppmap"
        up = "../" * path.count("/")
        self.write(path, f'module "//{name}" {{\n  export *\n'
                   + "".join(f'  textual header "{up}{header}"\n' for header in headers)
                   + "".join(f'  private textual header "{up}{header}"\n' for header in private)
                   + "".join(f'  use "//{use}"\n' for use in uses) + '  use "crosstool"\n}\n'
                   + "".join(f'extern module "//{use}" "{up}bazel-out/bin/{use}.cppmap"\n' for use in uses))
        return path

    def test_a_header_is_of_the_target_or_of_a_direct_dependency(self):
        self.write("a/far.h", "")
        self.write("a/near.h", '#include "a/far.h"\n')
        self.write("a/hidden.h", "")
        self.write("a/own.h", "")
        self.target("a/far", ["a/far.h"])
        self.target("a/near", ["a/near.h"], ["a/hidden.h"], ["a/far"])
        own = self.target("a/own", ["a/own.h"], uses=["a/near"])
        source = self.write("a/own.cc", '#include "a/own.h"\n\n#include <vector>\n\n#include "a/near.h"\n')
        self.assertEqual(includes.misplaced(".", {source: own}), [])
        self.write(source, '#include "a/own.h"\n#include "a/near.h"\n#include "a/far.h"\n#include "a/hidden.h"\n')
        self.assertEqual(includes.misplaced(".", {source: own}),
                         ["a/own.cc:3: a/far.h is of no direct dependency of //a/own",
                          "a/own.cc:4: a/hidden.h is of no direct dependency of //a/own"])

    def test_a_header_that_no_source_includes_is_looked_at_too(self):
        self.write("a/far.h", "")
        self.write("a/near.h", '#include "a/far.h"\n')
        near = self.target("a/near", ["a/near.h"])
        self.target("a/far", ["a/far.h"])
        source = self.write("a/near.cc", "")
        # Of nobody's target: of the distribution.
        self.assertEqual(includes.misplaced(".", {source: near}), ["a/near.h:1: a/far.h is of no direct dependency of //a/near"])

    def test_a_name_of_the_standard_library_needs_its_header(self):
        source = self.write("a/x.cc", "#include <string>\n\nstd::string a;\nstd::vector<int> b;\nstd::vector<int> c;\nuint32_t d;\n")
        self.assertEqual(includes.missing(source), ["a/x.cc:4: std::vector without <vector>", "a/x.cc:6: uint32_t without <cstdint>"])

    def test_by_a_header_of_ours_it_is_there(self):
        self.write("a/y.h", "#include <vector>\n")
        self.write("a/x.h", '#include "a/y.h"\n')
        self.assertEqual(includes.missing(self.write("a/x.cc", '#include "a/x.h"\n\nstd::vector<int> b;\n')), [])

    def test_one_of_several_headers_does(self):
        self.assertEqual(includes.missing(self.write("a/x.cc", "#include <map>\n\nstd::pair<int, int> b;\n")), [])

    def test_what_is_not_code_needs_nothing(self):
        text = '// std::vector\nconst char* a = "std::set";\n/* std::map\n*/ const char* b = R"(std::deque)";\n'
        self.assertEqual(includes.missing(self.write("a/x.cc", text)), [])

    def test_a_name_nobody_knows_is_told(self):
        self.assertEqual(includes.missing(self.write("a/x.cc", "std::flat_map<int, int> a;\n")),
                         ["a/x.cc:1: std::flat_map, of which tools/includes.py does not say what header declares it"])

    def test_the_formats_messages_need_their_header(self):
        self.write("format/trace.proto", "")
        self.assertEqual(includes.missing(self.write("a/x.cc", "proto::Loss a;\n")), ['a/x.cc:1: proto::Loss without "format/trace.pb.h"'])
        self.assertEqual(includes.missing(self.write("a/y.cc", '#include "format/trace.pb.h"\nproto::Loss a;\n')), [])

    def test_who_shares_a_name_is_read_apart(self):
        self.write("a/seen.h", "inline double Share(double part, double whole);\nclass Target {\n};\n")
        files = [
            self.write("a/a.cc", "using testing::Not;\nconstexpr int kLimit = 3;\n"),
            self.write("a/b.cc", "using testing::Not;\nint Limit(int of) {\n}\n"),  # nothing that a.cc has, but an alias of the same
            self.write("a/c.cc", "class kLimit {\n};\n"),  # what a.cc has
            self.write("a/d.cc", '#include "a/seen.h"\n'),
            self.write("a/e.cc", "double Share(int part, int whole) {\n}\n"),  # ambiguous with what d.cc includes
            self.write("a/f.cc", "double Share(int part) {\n}\n"),  # overloads what d.cc includes
        ]
        self.assertEqual(batches.of(files), [["a/a.cc", "a/b.cc", "a/d.cc", "a/f.cc"], ["a/c.cc", "a/e.cc"]])

    def test_rooms_are_read_apart_but_for_those_of_few_files(self):
        a, b, ours, tests = ([self.write(f"{room}/{number}.cc", "") for number in range(count)]
                             for room, count in (("a", batches.FEW), ("b", batches.FEW - 1), ("c", 1), ("tests/c", 1)))
        self.assertEqual(batches.of(a + b + ours + tests), [a, b + ours, tests])


if __name__ == "__main__":
    cases.main()
