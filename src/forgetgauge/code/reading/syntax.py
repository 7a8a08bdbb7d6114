"""Nodes of a syntax tree tell here what their names stand for, and in which function they run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from forgetgauge.probing import attribute

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Nodes = Sequence[tuple[ast.AST, ast.AST | None]]
"""Nodes, each with the function by which it runs when that is called; None for what runs at once."""


class Names:
    """What names stand for: `T.jit.load` is `torch.jit.load` after `import torch as T`."""

    def __init__(self, nodes: Nodes, aliases: Mapping[str, str]) -> None:
        self.aliases = dict(aliases) | dict(_imported(nodes))
        self.aliases |= dict(self._renamed(nodes))
        self.roots = {whole.partition(".")[0] for whole in self.aliases.values()} - {""}
        """Modules that names come from."""
        self._set = {id(n.value) for n, _ in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)}

    def whole(self, function: ast.expr) -> str:
        """The whole name of what an expression names; empty where it begins with no name."""
        parts: list[str] = []
        while isinstance(function, ast.Attribute):
            parts.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name):
            return ""
        return ".".join([self.aliases.get(function.id, function.id), *reversed(parts)])

    def looked_at(self, node: ast.AST) -> str:
        """The whole name of what is looked at; empty where nothing is, or only an item of it is set."""
        if (
            not isinstance(node, ast.Attribute | ast.Name)
            or not isinstance(node.ctx, ast.Load)
            or id(node) in self._set
        ):
            return ""
        return self.whole(node)

    def _renamed(self, nodes: Nodes) -> Iterator[tuple[str, str]]:
        """`rd = open`, `ld = np.load`."""
        for node, _ in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
                whole = self.whole(node.value)
                if whole in ("open", "exec", "eval", "globals") or whole.partition(".")[0] in self.aliases.values():
                    yield from ((to.id, whole) for to in node.targets if isinstance(to, ast.Name))


def _imported(nodes: Nodes) -> Iterator[tuple[str, str]]:
    """Name -> what it stands for: `np` for `numpy`, `o` for `io.open`."""
    for node, _ in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((alias.asname or alias.name, f"{base}.{alias.name}") for alias in node.names)


def known_names(tree: ast.Module, nodes: Nodes) -> set[str]:
    """Names of globals, which count by value, and of files that `with` opens where they are named."""
    assigned = [n for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
    opened = [item.optional_vars for n, _ in nodes if isinstance(n, ast.With) for item in n.items]
    classes = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    named = classes | {part.id for n in assigned for part in ast.walk(n) if isinstance(part, ast.Name)}
    return named | {one.id for one in opened if isinstance(one, ast.Name)} | {"__file__"}


def walk(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Every node, and the function by which it runs when that is called; None for what runs at once."""
    waiting: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while waiting:
        node, inside = waiting.pop()
        yield node, inside
        body = node.body if isinstance(node, Function) else []
        later = {id(part) for part in (body if isinstance(body, list) else [body])}
        waiting += [(child, node if id(child) in later else inside) for child in ast.iter_child_nodes(node)]


def argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    """What a call is given at a place, or by one of these names."""
    by_name = [keyword.value for keyword in call.keywords if keyword.arg in names]
    return call.args[place] if len(call.args) > place else by_name[0] if by_name else None


def arguments(call: ast.Call) -> list[ast.expr]:
    """All that a call is given."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def last_name(of: ast.expr) -> str:
    """`load` of `torch.load`; empty where there is no name."""
    return str(attribute(of, "attr", attribute(of, "id", "")))


def literal(node: ast.AST | None) -> str | None:
    """The text that is written there; None where it is none."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
