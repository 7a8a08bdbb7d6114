"""The files that a source writes are found here: they must not change its key, nor is known what it reads of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from forgetgauge.code.reading.known_calls import SURELY_WRITING
from forgetgauge.code.reading.paths import may_be_a_path, mode_of
from forgetgauge.code.reading.syntax import Nodes, argument, arguments, last_name, literal
from forgetgauge.probing import attribute


class Writes:
    """Paths that calls write to, and the texts and names that these are made of."""

    def __init__(self, nodes: Nodes, stood_for: Iterable[ast.AST]) -> None:
        self._of_files = {id(part) for part in stood_for}
        """Ids of the nodes that name files which are written, or that stand where a local name is set."""
        self._since: dict[tuple[int, str], tuple[int, int]] = {}
        """(function, path) -> where the call ends that first writes there."""
        for node, inside in nodes:
            if not isinstance(node, ast.Call):
                continue
            done = node.end_lineno or 0, node.end_col_offset or 0
            for path in _written_by(node):
                self._of_files |= _ids(path)
                if not any(isinstance(part, ast.Name) and not part.id for part in ast.walk(path)):
                    self._since.setdefault((id(inside), ast.dump(path)), done)

    def are_read_by(self, call: ast.Call, path: ast.expr, inside: ast.AST | None) -> bool:
        """Whether a call reads a file that the same function wrote before; its name counts as one that is written."""
        here = call.lineno, call.col_offset
        before = self._since.get((id(inside), ast.dump(path)), here) < here
        if before:
            self._of_files |= _ids(path)
        return before

    def only(self, tree: ast.Module, nodes: Nodes) -> frozenset[str]:
        """Texts and globals that name files, and stand nowhere but where these are written."""
        names, others = set[str](), set[str]()
        for node, _ in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id:
                (names if id(node) in self._of_files else others).add(node.id)
        names -= others
        for statement in tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names and may_be_a_path(value):
                    self._of_files |= _ids(value)
        texts = [(text, id(node) in self._of_files) for node, _ in nodes if (text := literal(node))]
        return frozenset(names | ({text for text, of in texts if of} - {text for text, of in texts if not of}))


def _written_by(call: ast.Call) -> list[ast.expr]:
    """Paths of files that a call writes to, and does not read."""
    name, owner = last_name(call.func), attribute(call.func, "value")
    if name in ("open", "memmap") and set("wxa") & set(mode_of(call, owner)):
        given = [owner if owner is not None and not call.args else argument(call, 0, "file", "filename")]
    elif name in ("write_text", "write_bytes"):
        given = [owner]
    elif SURELY_WRITING.fullmatch(name):
        given = [*arguments(call)]
    else:
        given = []
    return [one for one in given if isinstance(one, ast.expr) and may_be_a_path(one)]


def _ids(path: ast.expr) -> set[int]:
    return {id(part) for part in ast.walk(path)}
