"""Whether the program is optimized once more, as a whole, when it is linked (.bazelrc)."""

def _whole_program_flag_impl(ctx):
    return []

whole_program_flag = rule(
    implementation = _whole_program_flag_impl,
    build_setting = config.bool(flag = True),
)
