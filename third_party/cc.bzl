"""The rules of C++ for code of ours, which takes headers as parsed before where the configuration says so."""

# Rooms that the sanitizers' configuration compiles without optimization, as all do tests' own files (.bazelrc).
_UNOPTIMIZED = [
    "cli",
    "report",
    "tests",
]

def _compiled(rule, deps = [], **kwargs):
    package = native.package_name()
    usual = "precompiled"
    sanitized = "precompiled_unoptimized" if package.split("/")[0] in _UNOPTIMIZED else usual
    if package.startswith("tests/") and not package.startswith("tests/benchmarks"):
        usual = "precompiled_for_tests"
        sanitized = usual
    of = {
        "//third_party:precompiled_sanitized": sanitized,
        "//third_party:precompiled_usual": usual,
        "//conditions:default": None,
    }
    rule(
        copts = select({
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
