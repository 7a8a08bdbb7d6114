"""Calling a function of the user's with arguments known by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def call_by_name(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """`given` by place as far as its parameters allow, since wrappers often pass on `*args` alone, else by name."""
    signature = inspect.signature(function)
    bound = signature.bind_partial()
    own = [p.name for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    bound.arguments.update({name: given[name] for name in own if name in given})
    others = {name: value for name, value in given.items() if name not in own}
    return function(*bound.args, **bound.kwargs, **others)
