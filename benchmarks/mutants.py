"""Every change of one place of a module: what `mutation.py` asks the tests about.

Changed are comparisons (< and <=, == and !=, in, is), arithmetic, and/or, `not`, `-` and `~` in front, numbers (n + 1,
True and False), also those that are defaults; returned values become None; calls of which nothing is kept, raises and
augmented assignments are left out. Texts, annotations, decorators, docstrings and what stands under TYPE_CHECKING are
let be.
"""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

OPPOSITES: list[tuple[type[ast.AST], type[ast.AST]]] = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq)]
OPPOSITES += [(ast.In, ast.NotIn), (ast.Is, ast.IsNot), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)]
OPPOSITES += [(ast.BitAnd, ast.BitOr)]
OTHER = {a: b for both in OPPOSITES for a, b in (both, both[::-1])}
OTHER |= {ast.FloorDiv: ast.Div, ast.Pow: ast.Mult, ast.Mod: ast.Mult}
LET_BE = {"annotation", "returns", "decorator_list", "type_params"}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    name: str
    """Module, function, what became what; stays when lines are moved."""
    path: str
    line: int
    statement: range
    """The lines of the statement it is part of, of its head where it has a body."""
    number: int
    """Which of the changes of the module."""
    within: bool
    """Whether it is inside a function, so that nothing of it happens when the module is imported."""


def mutants_of(path: Path, inside: str) -> list[Mutant]:
    """Of one module, which is called `inside`."""
    found, seen = [], Counter[str]()
    for number, change in enumerate(changes(ast.parse(path.read_text("utf-8")))):
        name = f"{inside} {change.function or '(module)'}: {change.told()}"
        seen[name] += 1
        name += f" (number {seen[name]})" if seen[name] > 1 else ""
        found.append(Mutant(name, inside, change.old.lineno, change.statement, number, change.within))
    return found


def mutated(path: Path, mutant: Mutant) -> CodeType:
    """The code of the module with the change."""
    tree = ast.parse(path.read_text("utf-8"))
    change = list(changes(tree))[mutant.number]
    change.put(change.new)
    return compile(ast.fix_missing_locations(tree), str(path), "exec")


def alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may be changed to."""
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                operators = [*node.ops[:place], OTHER[type(operator)](), *node.ops[place + 1 :]]
                yield ast.Compare(node.left, operators, node.comparators)
        case ast.BinOp() if type(node.op) in OTHER:
            yield ast.BinOp(node.left, OTHER[type(node.op)](), node.right)
        case ast.AugAssign():
            if type(node.op) in OTHER:
                yield ast.AugAssign(node.target, OTHER[type(node.op)](), node.value)
            yield ast.Pass()
        case ast.BoolOp():
            yield ast.BoolOp(OTHER[type(node.op)](), node.values)
        case ast.UnaryOp() if not isinstance(node.op, ast.UAdd):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()) if node.value + 1 != node.value:
            yield ast.Constant(node.value + 1)
        case ast.Return(value=ast.expr()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()


@dataclass(frozen=True)
class Change:
    """A node of a module's tree, and what is put in its place."""

    parent: ast.AST
    name: str
    """The parent's field that holds it."""
    place: int | None
    """Its place there, where the field is a list."""
    old: ast.AST
    new: ast.AST
    shown: ast.AST
    """The smallest expression around it that says something."""
    function: str
    statement: range
    within: bool

    def put(self, node: ast.AST) -> None:
        """Make it, or undo it."""
        if self.place is None:
            setattr(self.parent, self.name, node)
        else:
            getattr(self.parent, self.name)[self.place] = node

    def told(self) -> str:
        """What becomes what."""
        if self.shown is self.old:
            return f"{_text(self.old)} → {_text(self.new)}"
        before = _text(self.shown)
        self.put(self.new)
        after = _text(self.shown)
        self.put(self.old)
        return f"{before} → {after}"


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def changes(
    node: ast.AST,
    function: str = "",
    statement: range = range(0),
    around: ast.AST | None = None,
    within: bool = False,
) -> Iterator[Change]:
    """Every change of a module, in a fixed order."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    for name, value in ast.iter_fields(node):
        inside = within or (isinstance(node, ast.FunctionDef) and name == "body")
        for place, child in enumerate(value if isinstance(value, list) else [value]):
            if name in LET_BE or not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.If) and _text(child.test) == "TYPE_CHECKING":
                continue
            own = _head(child) if isinstance(child, ast.stmt) else statement
            tells = not isinstance(child, ast.Constant | ast.Slice | ast.keyword | ast.Tuple)
            shown = child if tells or around is None else around
            for new in alternatives(child):
                where = place if isinstance(value, list) else None
                yield Change(node, name, where, child, ast.copy_location(new, child), shown, function, own, inside)
            yield from changes(child, function, own, shown, inside)


def _head(node: ast.stmt) -> range:
    """The lines of a statement, without those of its body."""
    body = getattr(node, "body", None)
    return range(node.lineno, max(node.lineno + 1, body[0].lineno) if body else (node.end_lineno or node.lineno) + 1)


# -- making one --------------------------------------------------------------------------------------------------------


def install(package: str, code: CodeType, mutant: Mutant) -> None:
    """Put a changed module in the place of the one that is loaded, or that will be where the package is not."""
    if package in sys.modules:
        put_into_functions(code)
    else:
        name = f"{package}.{mutant.path.removesuffix('.py').replace('/', '.')}"
        sys.meta_path.insert(0, Finder(name, code))


class Loader(importlib.machinery.SourceFileLoader):
    """Loads the changed module in place of the one on disk."""

    code: CodeType

    def get_code(self, fullname: str) -> CodeType:
        """What was compiled from the changed tree."""
        return self.code


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module, the changed one."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name = name
        self.loader = Loader(name, code.co_filename)
        self.loader.code = code

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The changed module's, where it is asked for."""
        return importlib.util.spec_from_loader(fullname, self.loader) if fullname == self.name else None


FUNCTIONS: list[FunctionType] = []
CACHES: list[Any] = []


def find_functions(folder: Path) -> None:
    """Look for the functions that are loaded from a folder, and for the caches of some of them."""
    cached = type(lru_cache(len))
    for one in gc.get_objects():
        function = one.__wrapped__ if type(one) is cached else one
        if type(function) is FunctionType and function.__code__.co_filename.startswith(str(folder)):
            (FUNCTIONS if function is one else CACHES).append(one)


def put_into_functions(code: CodeType) -> None:
    """Give the functions of a module that is loaded the code that they have in the changed one."""
    changed, found = {}, [code]
    while found:
        one = found.pop()
        changed[one.co_qualname, one.co_firstlineno] = one
        found += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
    for function in FUNCTIONS:
        if function.__code__.co_filename == code.co_filename:
            function.__code__ = changed[function.__code__.co_qualname, function.__code__.co_firstlineno]
    clear_caches()


def clear_caches() -> None:
    """What was kept may have been computed by other code, or for another test."""
    for cache in CACHES:
        cache.cache_clear()
