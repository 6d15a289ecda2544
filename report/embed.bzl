"""A text file as a function of the program that returns it."""

def embed_text(name, src, function):
    """Writes NAME.cc: std::string_view blktape::assets::FUNCTION(), the content of `src`."""
    native.genrule(
        name = name,
        srcs = [src],
        outs = [name + ".cc"],
        # A raw string holds any text but its own end.
        cmd = " ".join([
            "if grep -qF ')blktape\"' $<; then echo '$< holds the end of a raw string' >&2; exit 1; fi;",
            "{ echo '#include \"report/assets.h\"';",
            "printf 'std::string_view blktape::assets::%s() {\\n  return R\"blktape(' " + function + ";",
            "cat $<;",
            "printf ')blktape\";\\n}\\n'; } > $@",
        ]),
    )
