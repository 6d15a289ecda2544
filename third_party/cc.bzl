"""The rules of C++ for code of ours: how much of it is optimized, and which headers it takes as parsed before."""

# By what is precompiled for it (BUILD beside this).
_OPTIONS = {
    "precompiled": [],
    "precompiled_unoptimized": ["-O0"],
}

# Rooms, and targets of others, that are not optimized where there are sanitizers: optimized they take twice as long to
# compile, and no test waits long for them.
_UNOPTIMIZED = [
    "base:json",
    "capture/blktrace",
    "capture/bpf",
    "capture/export",
    "capture/import",
    "capture/session",
    "capture/tracefs",
    "cli",
    "host",
    "replay/prepare",
    "replay/target",
    "report",
]

def _of(package, name, optimize):
    """What is precompiled for it usually, and where there are sanitizers."""
    if optimize:
        return "precompiled", "precompiled"
    if package.startswith("tests/") and not package.startswith("tests/benchmarks"):
        # They are not what is tested, and compile in half the time so.
        return "precompiled_unoptimized", "precompiled_unoptimized"
    parts = [package.split("/")[0], package, package + ":" + name]
    if [part for part in parts if part in _UNOPTIMIZED + ["tests"]]:
        return "precompiled", "precompiled_unoptimized"
    return "precompiled", "precompiled"

def _compiled(rule, name, deps = [], optimize = False, **kwargs):
    """`optimize` is for files of tests that compute for long."""
    usual, sanitized = _of(native.package_name(), name, optimize)
    of = {
        "//third_party:precompiled_sanitized": sanitized,
        "//third_party:precompiled_usual": usual,
        "//conditions:default": None,
    }
    rule(
        name = name,
        copts = select({
            "//third_party:sanitized": _OPTIONS[sanitized],
            "//conditions:default": _OPTIONS[usual],
        }) + select({
            setting: ["-include-pch", "$(BINDIR)/third_party/%s.pch" % headers] if headers else []
            for setting, headers in of.items()
        }),
        deps = deps + select({
            setting: ["//third_party:" + headers] if headers else []
            for setting, headers in of.items()
        }),
        **kwargs
    )

def cc_library(**kwargs):
    _compiled(native.cc_library, **kwargs)

def cc_binary(**kwargs):
    _compiled(native.cc_binary, **kwargs)

def cc_test(**kwargs):
    _compiled(native.cc_test, **kwargs)
