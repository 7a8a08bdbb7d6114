"""This module says whose a module is (the user's own, of an installed package, of Python), where it lies, and in which
version.

A module is the user's own unless it is part of the standard library or of a package installed in a site-packages
folder; an editable install lies elsewhere and so is the user's own.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import os
import site
import sys
import sysconfig
from types import ModuleType
from typing import Any

NOT_KEYED = frozenset({"torch", "numpy", "scipy", "sklearn", "forgetgauge"})
"""Recorded with every artefact, and in no key: a run may go on on a machine that has other versions of these."""

_STANDARD = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")


def kind_of(module: str) -> str:
    """`standard`, `package` (installed, not editable) or `own`; `none` where there is no such module."""
    top = module.partition(".")[0]
    if top == "__main__":
        return "own"
    origin = origin_of(top)
    if top in sys.stdlib_module_names and (not origin or origin.startswith(_STANDARD)):
        return "standard"  # a file of the user's may have the name of a module of Python's
    if top.startswith("_cython_"):
        return "standard"  # where the types of functions are that any library compiled
    if origin is None:
        return "own" if top in sys.modules else "none"
    inside = origin.startswith(_site_folders()) or (not origin and _is_namespace_of_package(top))
    return "package" if inside and (top in NOT_KEYED or (version_of(top) is not None and not _rebuilt(top))) else "own"


def _is_namespace_of_package(top: str) -> bool:
    spec = getattr(sys.modules.get(top), "__spec__", None) or importlib.util.find_spec(top)
    places = list(getattr(spec, "submodule_search_locations", None) or ())
    return bool(places) and all(str(place).startswith(_site_folders()) for place in places)


def source_file(module: str) -> str | None:
    """The file of an own module's source."""
    origin = origin_of(module) if kind_of(module) == "own" else None
    return origin if origin and origin.endswith(".py") and os.path.isfile(origin) else None


@functools.cache
def _site_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    folders |= set(site.getsitepackages())
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders if folder) + tuple(
        os.path.join(folder, "") for folder in folders if folder
    )


def origin_of(name: str) -> str | None:
    """The file of a module, loaded or not; empty for a namespace package; None where there is none."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        return os.path.abspath(file) if file else "" if hasattr(loaded, "__path__") else None
    parent = name.rpartition(".")[0]
    if parent and origin_of(parent) is None:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # a parent package that raises while it is imported: the code that asks for it will tell
        return None
    if spec is None:
        return None
    return os.path.abspath(spec.origin) if spec.origin and spec.has_location else ""


def version_of(top: str) -> str | None:
    """Of the distribution that a top-level module belongs to, with its commit or hash where it is of no index; None
    where no distribution has it."""
    return _distribution(top)[0]


def _rebuilt(top: str) -> bool:
    """Whether a package was installed from a folder of the user's: its version stays while it is edited."""
    return _distribution(top)[1]


@functools.cache
def _distribution(top: str) -> tuple[str | None, bool]:
    try:
        found = importlib.metadata.distribution(top)
    except importlib.metadata.PackageNotFoundError:
        owners = _distributions().get(top, [])
        if not owners:
            return None, False
        found = importlib.metadata.distribution(owners[0])
    told = json.loads(found.read_text("direct_url.json") or "{}")  # PEP 610
    if not told or (found.read_text("INSTALLER") or "").strip() == "conda":  # which tells where it was built
        return found.version, False
    archive = told.get("archive_info", {})
    exactly = told.get("vcs_info", {}).get("commit_id") or archive.get("hash") or archive.get("hashes")
    return f"{found.version} {exactly}" if exactly else found.version, told["url"].startswith("file:") and not exactly


@functools.cache
def _distributions() -> Any:
    return importlib.metadata.packages_distributions()


def is_module(base: str, name: str) -> bool:
    """Whether a name taken from a package is a module of it."""
    if f"{base}.{name}" in sys.modules:
        return True
    if name in vars(sys.modules.get(base, ModuleType("none"))):
        return False
    places = getattr(sys.modules.get(base), "__path__", None) or _places_of(base)
    return any(os.path.exists(os.path.join(place, name + end)) for place in places for end in ("", ".py"))


def _places_of(package: str) -> list[str]:
    """The folders of a package that is not loaded."""
    try:
        spec = importlib.util.find_spec(package)
    except Exception:  # a parent that raises while it is imported
        return []
    return list(spec.submodule_search_locations or ()) if spec else []
