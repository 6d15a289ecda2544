"""A fuzz target per decoder, which tools/fuzz finds by its tag. Its corpus also runs as an ordinary test."""

load("//third_party:cc.bzl", "cc_binary", "cc_test")

def decoder_fuzz(name, srcs, deps, corpus):
    cc_test(
        name = name + "_corpus_test",
        srcs = srcs + ["//tests:fuzz_replay_main.cc"],
        args = ["$(locations %s)" % f for f in corpus],
        data = corpus,
        deps = deps,
    )
    cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        linkopts = ["-fsanitize=fuzzer"],
        tags = [
            "fuzzer",
            "manual",
        ],
        deps = deps,
    )
