"""Source becomes a syntax tree here in which every name is that of a global: local names are replaced by what they
stand for."""

from __future__ import annotations

import ast
import copy
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from forgetgauge.code.reading.paths import may_be_a_path
from forgetgauge.code.reading.syntax import Function, literal

_MOST_PARTS = 60
"""Of an expression that a local name stands for."""
_DEEPEST = 50_000
"""Frames. Python compiles no more than some thousand operations within each other, and a few visit each of them."""


def parsed(text: str, first_line: int = 1) -> tuple[ast.Module, list[ast.AST]] | None:
    """The tree of a source, with the parts of expressions that local names stand for, where these are set; None where
    it is no Python."""
    scopes = _Scopes()
    try:
        with _room_to_visit():
            tree = scopes.visit(_Plainer().visit(ast.parse(text)))
    except (SyntaxError, ValueError):
        return None
    if first_line > 1:
        ast.increment_lineno(tree, first_line - 1)
    return tree, scopes.stood_for


@contextmanager
def _room_to_visit() -> Iterator[None]:
    """Formulas that a program wrote are thousands of operations deep; what Python compiles can be visited."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Plainer(ast.NodeTransformer):
    """`getattr(a, "b")`, `vars(a)["b"]` and `a.__dict__["b"]` as what they are, `a.b`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) in (2, 3):
            return _as_attribute(node, node.args[0], literal(node.args[1]), ast.Load())
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Name(id="vars"), args=[of]) | ast.Attribute(value=of, attr="__dict__"):
                return _as_attribute(node, of, literal(node.slice), node.ctx)
        return node


def _as_attribute(node: ast.expr, of: ast.expr, name: str | None, ctx: ast.expr_context) -> ast.expr:
    if name is None or not name.isidentifier():
        return node
    return ast.copy_location(ast.Attribute(of, name, ctx), node)


class _Scopes(ast.NodeTransformer):
    """Inside functions, what a local name stands for in its place, if that may be a path; any other has no name, so
    that it is not taken for a global."""

    def __init__(self) -> None:
        self._local: dict[str, ast.expr | None] = {}
        self.stood_for: list[ast.AST] = []
        """Nodes, not their ids alone: those that are replaced would lend their addresses to others."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._within(node, _local_names(node))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._within(node, _local_names(node))

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._within(node, dict.fromkeys(_parameters(node)))

    def _within(self, node: Function, local: dict[str, ast.expr | None]) -> ast.AST:
        node.args = self.visit(node.args)  # defaults, and decorators, are of the scope around it
        if not isinstance(node, ast.Lambda):
            node.decorator_list = [self.visit(part) for part in node.decorator_list]
        around, self._local = self._local, self._local | local
        self.stood_for += [part for value in local.values() if value is not None for part in ast.walk(value)]
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = [self.visit(statement) for statement in node.body]
        self._local = around
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.id not in self._local:
            return node
        value, self._local[node.id] = self._local[node.id], None  # a name that stands for itself has no value
        if value is not None:
            value = self.visit(value)
            value = value if sum(1 for _ in ast.walk(value)) <= _MOST_PARTS else None
            self._local[node.id] = value
        return ast.copy_location(ast.Name("", ast.Load()), node) if value is None else copy.deepcopy(value)


def _parameters(function: Function) -> set[str]:
    return {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr | None]:
    """Local name -> what it stands for, where it is set once and may be a path; without files that `with` opens."""
    waiting: list[ast.AST] = list(function.body)
    stored = Counter[str](_parameters(function))
    values: dict[str, ast.expr | None] = {}
    elsewhere: set[str] = set()
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(ast.Name(id=name), value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere |= set(names)
            case ast.withitem(optional_vars=ast.Name(id=name)):
                elsewhere.add(name)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                stored[name] += 1
        waiting += [] if isinstance(node, Function | ast.ClassDef) else ast.iter_child_nodes(node)
    may_be = {name: value for name, value in values.items() if stored[name] == 1 and value and may_be_a_path(value)}
    return {name: may_be.get(name) for name in stored if name not in elsewhere}
