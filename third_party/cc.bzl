"""The rules of C++ for code of ours: how much of it is optimized, and which headers it takes as parsed before."""

# By what is precompiled for it (BUILD beside this).
_OPTIONS = {
    "precompiled": [],
    "precompiled_unoptimized": ["-O0"],
    "precompiled_for_tests": ["-O0"],
}

# Rooms that are not optimized where there are sanitizers: no test waits for them.
_UNOPTIMIZED = [
    "cli",
    "report",
]

def _of(package, optimize):
    """What is precompiled for the package usually, and where there are sanitizers."""
    room = package.split("/")[0]
    if room == "tests" and not optimize and not package.startswith("tests/benchmarks"):
        # They are not what is tested, and compile in half the time so.
        return "precompiled_for_tests", "precompiled_for_tests"
    if room in _UNOPTIMIZED + ["tests"] and not optimize:
        return "precompiled", "precompiled_unoptimized"
    return "precompiled", "precompiled"

def _compiled(rule, deps = [], optimize = False, **kwargs):
    """`optimize` is for files of tests that compute for long."""
    usual, sanitized = _of(native.package_name(), optimize)
    of = {
        "//third_party:precompiled_sanitized": sanitized,
        "//third_party:precompiled_usual": usual,
        "//conditions:default": None,
    }
    rule(
        copts = select({
            "//third_party:sanitized": _OPTIONS[sanitized],
            "//conditions:default": _OPTIONS[usual],
        }) + select({
            setting: ["-include-pch", "$(BINDIR)/third_party/%s.pch" % name] if name else []
            for setting, name in of.items()
        }),
        deps = deps + select({
            setting: ["//third_party:" + name] if name else []
            for setting, name in of.items()
        }),
        **kwargs
    )

def cc_library(**kwargs):
    _compiled(native.cc_library, **kwargs)

def cc_binary(**kwargs):
    _compiled(native.cc_binary, **kwargs)

def cc_test(**kwargs):
    _compiled(native.cc_test, **kwargs)
