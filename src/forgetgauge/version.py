"""The version of forgetgauge, and of what its numbers may depend on in the last digit."""

from __future__ import annotations

import functools
import platform
from importlib.metadata import version

VERSION = "0.1.0"


@functools.cache
def versions() -> dict[str, str]:
    """Read, not imported: importing scikit-learn takes a second."""
    libraries = {name: version(name) for name in ("torch", "numpy", "scipy", "scikit-learn")}
    return {"forgetgauge": VERSION, "python": platform.python_version(), **libraries}
