"""What must be the same on every machine of a run: the versions that numbers may depend on, and our own source."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

from forgetgauge.version import versions

SOURCE = "forgetgauge's source"


@functools.cache
def environment() -> dict[str, str]:
    """Of this process: versions without what says how a library was built (`+cpu`), Python's without its last part."""
    found = {name: version.partition("+")[0] for name, version in versions().items()}
    return {**found, "python": ".".join(found["python"].split(".")[:2]), SOURCE: source_digest()}


def source_digest() -> str:
    """SHA-256 over every file of the installed package that is code, with its name."""
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    files = {path.relative_to(root).as_posix(): path for kind in ("*.py", "*.cu", "*.cuh") for path in root.rglob(kind)}
    for name in sorted(files):
        content = files[name].read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """`torch 2.12.0 instead of 2.13.0`, for all that differs; empty where nothing does."""
    names = [name for name in {**theirs, **ours} if ours.get(name) != theirs.get(name)]
    return ", ".join(f"{name} {ours.get(name, 'missing')} instead of {theirs.get(name, 'none')}" for name in names)
