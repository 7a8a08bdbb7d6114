"""What a module asks of its surroundings while it is imported is found here, and which globals hold the outcome."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from forgetgauge.code.reading.known_calls import HELD_OUTSIDE, OUTSIDE
from forgetgauge.code.reading.syntax import Names, walk

_DEFINES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class AtImport:
    """What a module asks of its surroundings while it is imported."""

    what: str
    names: frozenset[str]
    """The globals that hold what came of it: it counts where all of these do. Empty where it is held elsewhere."""


def asked_at_import(tree: ast.Module, names: Names) -> Iterator[AtImport]:
    """What the statements of a module ask: who knows the globals' values looks at these."""
    for statement in tree.body:
        if isinstance(statement, ast.Assert) or _is_for_scripts(statement):
            continue
        outside = [node for node, inside in walk(statement) if not inside]
        asked = next((whole for node in outside if (whole := _asked(node, names))), "")
        if not asked or (isinstance(statement, ast.Expr) and _only_sets(statement.value, names)):
            continue
        held_elsewhere, globals_set = _set_by(statement, outside)
        if not (held_elsewhere or globals_set) and asked.startswith("os.path."):
            continue  # `if not os.path.exists(folder): os.makedirs(folder)`
        what = f"line {statement.lineno}: {asked}, asked while it is imported; what came of it does not count"
        yield AtImport(what, frozenset() if held_elsewhere else globals_set)


def _set_by(statement: ast.stmt, outside: list[ast.AST]) -> tuple[bool, frozenset[str]]:
    """(whether a statement may set what is no global, names of the globals that it sets)."""
    held = [node for node in outside if isinstance(node, ast.Attribute | ast.Subscript)]
    elsewhere = isinstance(statement, ast.Expr) or any(isinstance(node.ctx, ast.Store) for node in held)
    if isinstance(statement, _DEFINES):
        return elsewhere, frozenset({statement.name})
    stored = {node.id for node in outside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return elsewhere, frozenset(stored | {node.name for node in outside if isinstance(node, _DEFINES)})


def _is_for_scripts(statement: ast.stmt) -> bool:
    """`if __name__ == "__main__"`, which is not done when a module is imported."""
    return isinstance(statement, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(statement.test)
    )


def _asked(node: ast.AST, names: Names) -> str:
    """What of the surroundings an expression asks for; empty where nothing."""
    if (whole := names.looked_at(node)) in HELD_OUTSIDE:
        return whole
    whole = names.whole(node.func) if isinstance(node, ast.Call) else ""
    return whole if whole == "os.getenv" or (OUTSIDE.fullmatch(whole) and whole != "globals") else ""


def _only_sets(value: ast.expr, names: Names) -> bool:
    """Whether nothing depends on what a statement asks: it sets a variable, or prints."""
    whole = names.whole(value.func) if isinstance(value, ast.Call) else ""
    return re.fullmatch(r"print|os\.environ\.(?:setdefault|update|pop)|subprocess\.\w+", whole) is not None
