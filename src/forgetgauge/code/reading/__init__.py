"""Reading source: what it imports, reads and asks, found without running it, inside functions too.

`source` reads a whole file and `calls` what its calls do; the rest serves these two. `syntax` and `scopes` say what a
name stands for, `paths` which expressions name files, `known_calls` what well-known calls do, `writes` which files are
written, `at_import` what a module asks while it is imported.
"""
