"""Headers of the distribution, and what protoc makes of the trace's format, parsed once for all that include them."""

def _precompiled_flag_impl(ctx):
    return []

precompiled_flag = rule(
    implementation = _precompiled_flag_impl,
    build_setting = config.bool(flag = True),
)

def _precompiled_headers_impl(ctx):
    toolchain = ctx.attr._toolchain[cc_common.CcToolchainInfo]
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    cpp = ctx.fragments.cpp
    file = ctx.actions.declare_file(ctx.label.name + ".pch")
    compiler = {"feature_configuration": features, "action_name": "c++-compile"}
    options = cc_common.get_memory_inefficient_command_line(
        variables = cc_common.create_compile_variables(
            cc_toolchain = toolchain,
            feature_configuration = features,
            output_file = file.path,
            source_file = "-",
            use_pic = True,
            user_compile_flags = cpp.copts + cpp.cxxopts + ctx.attr.copts +
                                 ["-xc++-header", "-fpch-instantiate-templates"],
        ),
        **compiler
    )

    # By a pipe: clang would name a file of ours, by a path of its own making, among what each user of it includes. What is
    # generated begins with a guard, so that including it by its name gives nothing more.
    headers = ctx.files.headers + [
        header
        for library in ctx.attr.generated
        for header in library[CcInfo].compilation_context.headers.to_list()
        if header.path.endswith(".pb.h")
    ]
    ctx.actions.run_shell(
        command = 'cat %s | "$@"' % " ".join([header.path for header in headers]),
        arguments = [cc_common.get_tool_for_action(**compiler)] + options,
        inputs = depset(headers, transitive = [toolchain.all_files]),
        outputs = [file],
        mnemonic = "Precompile",
    )
    return [CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([file])))]

precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    attrs = {
        "copts": attr.string_list(),
        "generated": attr.label_list(providers = [CcInfo]),
        "headers": attr.label_list(allow_files = [".h"], mandatory = True),
        "_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
