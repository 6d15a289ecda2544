"""What a C++ file of ours may include, and what it must, read from its text.

It may include headers of its own target and of direct dependencies: Bazel's layering check, by the module maps that Bazel makes for
it, though of headers that no source includes, too. It must include, or a header of ours that it includes must, what declares the
names of the standard library that it uses: files are compiled with that library's headers precompiled (third_party/cc.bzl) and
read beside each other (tools/lint.py), so that no compiler would miss an #include.
"""

import functools
import os
import re

INCLUDE = re.compile(r'^[ \t]*(?:#[ \t]*include|import)[ \t]+"([^"]+)"', re.MULTILINE)
SYSTEM_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+<([^>]+)>", re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
MAP_LINE = re.compile(r'^(?:  (private )?textual header "(?P<header>[^"]+)"|  use "(?P<use>[^"]+)"|'
                      r'extern module "(?P<extern>[^"]+)" "(?P<place>[^"]+)"|module "(?P<module>[^"]+)")', re.MULTILINE)

# Where names of the standard library are declared, as far as code of ours uses them. Of a name that several headers declare, each
# may be the one that is included: begin() comes with every container.
STANDARD = {
    "algorithm": "all_of any_of clamp copy copy_backward copy_n count count_if equal equal_range fill fill_n find find_if find_if_not "
                 "inplace_merge is_sorted lower_bound make_heap max max_element min min_element minmax minmax_element move_backward "
                 "none_of nth_element partition pop_heap push_heap ranges remove_if replace replace_if reverse rotate shuffle sort "
                 "stable_partition stable_sort transform unique upper_bound",
    "array": "array begin data end get size",
    "atomic": "atomic atomic_ref memory_order_acquire memory_order_release memory_order_relaxed memory_order_seq_cst",
    "barrier": "barrier",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero endian has_single_bit popcount",
    "bitset": "bitset",
    "cctype": "isalnum isalpha isdigit isspace tolower toupper",
    "charconv": "chars_format errc from_chars to_chars",
    "chrono": "chrono",
    "cmath": "abs ceil exp exp2 expm1 fabs floor isfinite isnan ldexp llround log log1p log2 lround pow round sqrt tan trunc",
    "compare": "strong_ordering weak_ordering partial_ordering",
    "concepts": "integral floating_point same_as invocable convertible_to",
    "condition_variable": "condition_variable",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t size_t to_integer",
    "cstdint": "",
    "cstdio": "ferror fflush fprintf fscanf fwrite perror printf puts remove rename snprintf sscanf vsnprintf",
    "cstdlib": "abort abs aligned_alloc atof atoi atol atoll exit free getenv labs llabs malloc strtod strtol strtoul strtoull system",
    "cstring": "memchr memcmp memcpy memmove memset strchr strcmp strerror strlen strncpy strrchr strstr",
    "ctime": "strftime time_t tm",
    "deque": "begin deque end erase erase_if size",
    "exception": "exception",
    "filesystem": "error_code filesystem",
    "fstream": "fstream getline ifstream ios ofstream streamoff streamsize",
    "functional": "function greater hash less ref",
    "future": "async future future_status launch promise",
    "initializer_list": "initializer_list",
    "ios": "ios streamoff streamsize",
    "iostream": "cerr cin cout ios ostream istream streamoff streamsize",
    "istream": "getline istream streamsize",
    "iterator": "advance back_inserter begin data distance end istreambuf_iterator next prev size",
    "latch": "latch",
    "limits": "numeric_limits",
    "map": "begin end erase_if map pair",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag scoped_lock try_to_lock unique_lock",
    "numeric": "accumulate gcd iota lcm midpoint partial_sum reduce",
    "optional": "in_place nullopt optional",
    "ostream": "ostream streamsize",
    "queue": "priority_queue queue",
    "random": "lognormal_distribution mt19937 mt19937_64 normal_distribution random_device uniform_int_distribution "
              "uniform_real_distribution",
    "regex": "regex regex_match regex_search smatch",
    "semaphore": "binary_semaphore counting_semaphore",
    "set": "begin end erase_if set",
    "span": "as_bytes as_writable_bytes begin end size span",
    "sstream": "getline ios istringstream ostringstream stringstream",
    "string": "begin end erase erase_if getline hash size stod stof stoi stol stoll stoul stoull string to_string",
    "string_view": "begin end hash size string_view",
    "system_error": "errc error_code generic_category make_error_code system_error",
    "thread": "jthread stop_token this_thread thread",
    "tuple": "get make_tuple tie tuple",
    "type_traits": "conditional_t decay_t enable_if_t is_integral_v is_same_v is_trivially_copyable_v is_trivially_destructible_v "
                   "is_void_v remove_cvref_t remove_pointer_t underlying_type_t",
    "unordered_map": "begin end erase_if unordered_map",
    "unordered_set": "begin end erase_if unordered_set",
    "utility": "exchange forward get in_place in_range move pair swap",
    "variant": "get get_if holds_alternative monostate variant visit",
    "vector": "begin end erase erase_if size vector",
}
DECLARING = {name: {header for header, names in STANDARD.items() if name in names.split()}
             for name in " ".join(STANDARD.values()).split()}
# What else comes with the precompiled headers: what it is known by, the header to include, and each that will do.
OTHERS = [
    (re.compile(r"\bu?int(?:8|16|32|64)_t\b"), "<cstdint>", {"cstdint", "stdint.h", "linux/types.h", "vmlinux.h"}),
    (re.compile(r"\bfmt::"), "<fmt/format.h>", {"fmt/format.h", "fmt/chrono.h"}),
    (re.compile(r"\bnlohmann::"), "<nlohmann/json.hpp>", {"nlohmann/json.hpp", "nlohmann/json_fwd.hpp"}),
    (re.compile(r"\bgoogle::protobuf::"), "<google/protobuf/message.h>",
     {"format/trace.proto"} | {f"google/protobuf/{name}.h" for name in (
         "descriptor", "io/coded_stream", "io/zero_copy_stream_impl_lite", "message", "repeated_field", "unknown_field_set", "wire_format_lite")}),
    (re.compile(r"\bproto::[A-Z]\w+"), '"format/trace.pb.h"', {"format/trace.proto"}),
]
STANDARD_NAME = re.compile(r"\bstd::(\w+)")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.cache
def included_by(path):
    """Files of ours that this one includes itself; for a generated one that from which it is made."""
    found = set()
    for name in INCLUDE.findall(read(path)):
        name = name.replace(".pb.h", ".proto").replace(".skel.h", ".bpf.c")
        found.update(place for place in (name, os.path.join(os.path.dirname(path), name)) if os.path.exists(place))
    return found


@functools.cache
def with_included(path):
    """The file and all of ours that it includes, by whichever way."""
    seen, left = set(), [path]
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += included_by(one)
    return sorted(seen)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def missing(path):
    """What of the standard library it uses, and includes neither itself nor by a header of ours."""
    text = COMMENT_OR_STRING.sub(lambda found: "\n" * found.group().count("\n"), read(path))
    there = {name for file in with_included(path) for name in [file, *SYSTEM_INCLUDE.findall(read(file))]}
    said = {}
    for found in STANDARD_NAME.finditer(text):
        if found[1] not in DECLARING:
            said.setdefault(f"{found[0]}, of which tools/includes.py does not say what header declares it", found)
        elif not DECLARING[found[1]] & there:
            said.setdefault(f"{found[0]} without {' or '.join(f'<{name}>' for name in sorted(DECLARING[found[1]]))}", found)
    for use, header, each in OTHERS:
        found = use.search(text)
        if found and not each & there:
            said[f"{found[0]} without {header}"] = found
    return [f"{path}:{line_of(text, found.start())}: {what}" for what, found in said.items()]


class Target:
    """What Bazel's module map tells of a target: its name, its headers, those that others may include, and its dependencies'
    maps. Paths as an #include has them."""

    def __init__(self, root, place):
        self.headers, self.public, self.dependencies = set(), set(), []
        places = {}
        for found in MAP_LINE.finditer(read(os.path.join(root, place))):
            if found["module"]:
                self.name = found["module"]
            elif found["extern"]:
                places[found["extern"]] = os.path.normpath(os.path.join(os.path.dirname(place), found["place"]))
            elif found["use"]:
                self.dependencies.append(found["use"])
            else:
                header = re.sub(r"^bazel-out/[^/]+/bin/", "", os.path.normpath(os.path.join(os.path.dirname(place), found["header"])))
                self.headers.add(header)
                if not found[1]:
                    self.public.add(header)
        # The distribution's headers, which anybody may include.
        self.dependencies = [places[name] for name in self.dependencies if name != "crosstool"]


def misplaced(root, sources):
    """Includes of files that belong neither to the file's target nor to one on which that depends. sources: by file of ours the
    place of its target's module map, below the root."""
    target = functools.cache(lambda place: Target(root, place))
    left, seen = list(sources.items()), set()
    while left:
        path, place = left.pop()
        if (path, place) in seen:
            continue
        seen.add((path, place))
        one = target(place)
        # A target may be of headers alone.
        left += [(header, place) for header in one.headers if os.path.exists(header)]
        left += [(header, dependency) for dependency in one.dependencies for header in target(dependency).headers if os.path.exists(header)]
    said, ours = set(), {header for _, place in seen for header in target(place).headers}
    for path, place in seen:
        one = target(place)
        allowed = one.headers.union(*(target(dependency).public for dependency in one.dependencies))
        text = read(path)
        for found in INCLUDE.finditer(text):
            names = {found[1], os.path.join(os.path.dirname(path), found[1])}
            if not names & allowed and any(name in ours or os.path.exists(name) for name in names):
                said.add(f"{path}:{line_of(text, found.start(1))}: {found[1]} is of no direct dependency of {one.name}")
    return sorted(said)
