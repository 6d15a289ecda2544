"""A Python test that runs the program, verb after verb."""

load("//tests:machine.bzl", "MACHINE_TAGS")

def e2e_test(name, data = [], deps = [], machine = True, manual = False, tags = []):
    native.py_test(
        name = name,
        srcs = [name + ".py"],
        main = name + ".py",
        data = ["//cli:blktape"] + data,
        # Those that use the machine (root, loop devices, live recording) run alone and every time.
        tags = tags + (["manual"] if manual else []) + (MACHINE_TAGS if machine else []),
        timeout = "moderate",
        deps = [
            "//tests/harness:blktape",
            "//tests/harness:cases",
            "//tests/harness:devices",
        ] + deps,
    )
