"""The version of forgetgauge, and of what its numbers may depend on in the last digit."""

from __future__ import annotations

import functools
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

VERSION = "0.1.0"


@functools.cache
def versions() -> dict[str, str]:
    """Read, not imported: importing scikit-learn takes a second. What is not installed is left out."""
    libraries = {}
    for name in ("torch", "numpy", "scipy", "scikit-learn"):
        with suppress(PackageNotFoundError):
            libraries[name] = version(name)
    return {"forgetgauge": VERSION, "python": platform.python_version(), **libraries}
