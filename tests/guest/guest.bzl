"""A Python test that boots guests (tests/guest/guest.py). Where several cases do, shards run beside each other."""

def guest_test(name, srcs = None, data = [], deps = [], newest_kernel = False, **kwargs):
    native.py_test(
        name = name,
        srcs = srcs or [name + ".py"],
        main = (srcs or [name + ".py"])[0],
        data = ["//cli:blktape"] + data,
        env = {"ON_NEWEST_KERNEL": "1"} if newest_kernel else {},
        tags = ["local"],
        # qemu emulates all processors in one thread, so a guest takes one of ours; and about a GiB.
        size = "enormous",
        timeout = "long",
        deps = ["//tests/guest", "//tests/harness:cases"] + deps,
        **kwargs
    )
