"""Tags of tests that touch the machine: root, devices, its kernel or its disk."""

# Outside the sandbox, alone, and every time anew: a pass is not remembered.
MACHINE_TAGS = [
    "exclusive",
    "external",
    "local",
]
