"""Tags of tests that touch the machine: root, devices, its kernel or its disk."""

# Outside the sandbox, alone, and every time anew: a pass is not remembered.
MACHINE_TAGS = [
    "exclusive",
    "external",
    "local",
]

# Environment of sanitized tests that start a recorder: leaks are looked for by ptrace, a right that it gives up.
WITHOUT_LEAKS = {"LSAN_OPTIONS": "detect_leaks=0"}

# Further tags, which ./test goes by:
#   sanitized     of tests that touch the machine: also run under asan and ubsan
#   no-sanitizer  of all others: not run under them
#   threads       also run under tsan
