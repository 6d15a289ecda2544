"""The rules of C++ for code of ours, which takes the distribution's headers as parsed before where the configuration says so."""

# Rooms that the sanitizers' configuration compiles without optimization (.bazelrc).
_UNOPTIMIZED = [
    "cli",
    "report",
    "tests",
]

def _compiled(rule, deps = [], **kwargs):
    # What is precompiled must have the options of what takes it.
    if "copts" in kwargs:
        rule(deps = deps, **kwargs)
        return
    wanted = "//third_party:precompiled_wanted"
    name = "precompiled_unoptimized" if native.package_name().split("/")[0] in _UNOPTIMIZED else "precompiled"
    rule(
        copts = select({
            wanted: ["-include-pch", "$(BINDIR)/third_party/%s.pch" % name],
            "//conditions:default": [],
        }),
        deps = deps + select({
            wanted: ["//third_party:" + name],
            "//conditions:default": [],
        }),
        **kwargs
    )

def cc_library(**kwargs):
    _compiled(native.cc_library, **kwargs)

def cc_binary(**kwargs):
    _compiled(native.cc_binary, **kwargs)

def cc_test(**kwargs):
    _compiled(native.cc_test, **kwargs)
