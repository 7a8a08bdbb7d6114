"""Questions to objects of the user's, whose attributes may raise anything.

A dictionary that shows its items as attributes raises KeyError, where Python's `hasattr` and `getattr` expect
AttributeError.
"""

from __future__ import annotations

from typing import Any


def attribute(thing: Any, name: str, default: Any = None) -> Any:
    """An attribute, or the default where asking for it raises whatever it may."""
    try:
        return getattr(thing, name, default)
    except Exception:
        return default


def has(thing: Any, name: str) -> bool:
    """Whether there is such an attribute."""
    missing = object()
    return attribute(thing, name, missing) is not missing
