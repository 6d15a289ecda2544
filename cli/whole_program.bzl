"""The program, optimized once more as a whole when it is linked, its libraries compiled for that."""

def _whole_program_flag_impl(ctx):
    return []

whole_program_flag = rule(
    implementation = _whole_program_flag_impl,
    build_setting = config.bool(flag = True),
)

_COPT = "//command_line_option:copt"
_LINKOPT = "//command_line_option:linkopt"
_FORCE_PIC = "//command_line_option:force_pic"

def _link_time_impl(settings, attr):
    if not settings["//cli:whole_program"]:
        return {_COPT: settings[_COPT], _LINKOPT: settings[_LINKOPT], _FORCE_PIC: settings[_FORCE_PIC]}
    return {
        _COPT: settings[_COPT] + ["-flto"],
        _LINKOPT: settings[_LINKOPT] + ["-flto=auto", "-O2", "-Werror=odr", "-Werror=lto-type-mismatch"],
        _FORCE_PIC: False,
    }

_link_time = transition(
    implementation = _link_time_impl,
    inputs = ["//cli:whole_program", _COPT, _LINKOPT, _FORCE_PIC],
    outputs = [_COPT, _LINKOPT, _FORCE_PIC],
)

def _whole_program_impl(ctx):
    program = ctx.attr.program[0][DefaultInfo]
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = program.files_to_run.executable, is_executable = True)
    return [DefaultInfo(executable = out, runfiles = program.default_runfiles)]

whole_program = rule(
    implementation = _whole_program_impl,
    attrs = {
        "program": attr.label(mandatory = True, executable = True, cfg = _link_time),
        "_whitelist_function_transition": attr.label(
            default = "@bazel_tools//tools/whitelists/function_transition_whitelist",
        ),
    },
    executable = True,
)
