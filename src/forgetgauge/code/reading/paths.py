"""Expressions that name files are read here: how far the name is written in the source, and what globals make of it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from forgetgauge.code.reading.syntax import argument, last_name, literal
from forgetgauge.probing import attribute

PATH_MAKERS: dict[str, Callable[..., Any]] = {
    "Path": Path,
    "PurePath": PurePath,
    "str": str,
    "join": os.path.join,
    "fspath": os.fspath,
    "abspath": os.path.abspath,
    "dirname": os.path.dirname,
    "expanduser": os.path.expanduser,
}
"""Functions whose outcome is a path that is computed here as well."""
PATH_METHODS = frozenset({"joinpath", "with_suffix", "with_name", "resolve", "absolute", "expanduser"})
IN_MEMORY = frozenset({"BytesIO", "StringIO"})
MAY_NAME_A_FILE = (ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.JoinedStr, ast.Call)


def value_of(made_of: ast.expr, space: Mapping[str, Any]) -> Any:
    """What an expression of globals gives, if it is a name or puts a path together; LookupError for any other."""
    match made_of:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return space[name]
        case ast.Attribute(value=of, attr=name):
            return _attribute(value_of(of, space), name)
        case ast.Subscript(value=of, slice=key):
            held = value_of(of, space)
            if isinstance(held, dict | Sequence):
                return held[value_of(key, space)]
        case ast.BinOp(left=left, op=ast.Div() | ast.Add(), right=right):
            one, two = value_of(left, space), value_of(right, space)
            if isinstance(one, str) and isinstance(two, str):
                return one + two
            if isinstance(one, str | PurePath) and isinstance(two, str | PurePath):
                return Path(one) / two
        case ast.JoinedStr(values=parts):
            return "".join(str(value_of(part, space)) for part in parts)
        case ast.FormattedValue(value=value, format_spec=None, conversion=-1):
            return value_of(value, space)
        case ast.Call(func=function, args=args, keywords=[]):
            return _path_made(function, [value_of(arg, space) for arg in args], space)
    raise LookupError


def _path_made(function: ast.expr, args: list[Any], space: Mapping[str, Any]) -> Any:
    name = last_name(function)
    if not all(isinstance(arg, str | PurePath) for arg in args):
        raise LookupError
    if isinstance(function, ast.Attribute) and name in PATH_METHODS:
        try:
            of = value_of(function.value, space)
        except LookupError:
            of = None
        if isinstance(of, PurePath):
            return getattr(of, name)(*args)
    if name in PATH_MAKERS and args:
        return PATH_MAKERS[name](*args)
    raise LookupError


def _attribute(of: Any, name: str) -> Any:
    if isinstance(of, PurePath) and name in ("parent", "parents", "name", "stem"):
        return getattr(of, name)
    held = attribute(of, "__dict__", {})
    if name in held:
        return held[name]
    if isinstance(of, dict) and name in of:  # a dictionary that shows its items as attributes
        return of[name]
    return vars(type(of))[name]


def may_be_a_path(value: ast.expr) -> bool:
    """Whether an expression consists of nothing but what names files are made of."""
    kinds = (*MAY_NAME_A_FILE, ast.FormattedValue, ast.operator, ast.expr_context)
    return all(
        isinstance(part, kinds)
        and (not isinstance(part, ast.operator) or isinstance(part, ast.Div | ast.Add))
        and (not isinstance(part, ast.Call) or _makes_a_name(part))
        for part in ast.walk(value)
    )


def _makes_a_name(call: ast.Call) -> bool:
    name = last_name(call.func)
    return name in PATH_MAKERS or name in PATH_METHODS or name in IN_MEMORY or makes_parser(call)


def looks_like_a_path(what: ast.expr) -> bool:
    """Whether it is put together as a path is: of `__file__`, by `Path(…)` or `join(…)`, with `/` and a text."""
    parts = list(ast.walk(what))
    expressions = [part for part in parts if isinstance(part, ast.expr)]
    names = {last_name(part.func if isinstance(part, ast.Call) else part) for part in expressions}
    divided = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) for part in parts)
    return bool(names & {"__file__", "Path", "join", "joinpath"}) or (divided and any(map(literal, parts)))


def put_together(what: ast.expr) -> tuple[str, set[str], bool]:
    """(literals in the order in which they are written, names, whether the literals are whole parts of a path)."""
    parts = list(ast.walk(what))
    texts = [node for node in parts if isinstance(node, ast.Constant) and literal(node)]
    literals = [str(node.value) for node in sorted(texts, key=lambda node: (node.lineno, node.col_offset))]
    return (
        "/".join(literals),
        {part.id for part in parts if isinstance(part, ast.Name)},
        not any(isinstance(part, ast.JoinedStr) for part in parts),
    )


def makes_parser(value: ast.expr) -> bool:
    """`configparser.ConfigParser()`."""
    return isinstance(value, ast.Call) and last_name(value.func).endswith("ConfigParser")


def mode_of(call: ast.Call, owner: ast.expr | None) -> str:
    """How a file is opened; empty where that is not said."""
    mode = literal(argument(call, 0 if owner is not None and not isinstance(owner, ast.Name) else 1, "mode"))
    return mode if mode is not None and re.fullmatch(r"[rwaxbtU+]{1,4}", mode) else ""
