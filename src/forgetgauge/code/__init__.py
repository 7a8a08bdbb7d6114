"""A digest of the user's code, which stands for it in keys: an edit is another key, and nothing else is.

`code_of(things)` walks through the objects that it is given and writes each down as a text that is equal for equal
values; the digest is that of these texts, of all source that they lead to, and of the files that are named. On the way

1. an object counts by its parts, a function by its place, defaults and closure, a class by its members;
2. a module of the user's that code is in, or that it imports, counts by its whole source, with all that it imports; an
   installed package by its version; a function of a script, of a notebook or of no file by itself;
3. globals that code names count by value, and what these lead to in turn, until there is nothing new;
4. files count by content where parameters name them, or where source does that reads them.

Read `digest`, `walk`, `descriptions` with `definitions` and `values`, `named_globals`; then `imports` with `modules`
and `stale`, and `parameters`; then the package `reading`. `files`, `functions` and `arrays` answer questions of these.

Not covered, and listed in `Code.not_covered` where it is met: what is asked of the surroundings (environment, folders,
other programs), files and modules whose name is known only when code runs, compiled code, objects without a value.
Never looked at: versions of torch, numpy, scipy and scikit-learn (`modules.NOT_KEYED`: they are recorded with results).
"""

from forgetgauge.code.digest import Code, code_digest, code_of
from forgetgauge.code.files import files_named, folders_named

__all__ = ["Code", "code_digest", "code_of", "files_named", "folders_named"]
