"""Which code, command and machine a number is from."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from forgetgauge.version import VERSION

VARIABLE = "FORGETGAUGE_COMMIT"
"""Names the commit where the code was copied without its repository, to another machine say."""


def commit() -> str:
    """`fcf398c1`, with `+` where the package's files were changed since; the version where there is no repository."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    here = Path(__file__).parents[1]
    hashed = _git(here, "rev-parse", "--short=8", "HEAD")
    if not hashed or not _git(here, "ls-files", "--", "__init__.py"):  # a repository, but not of this package
        return f"version {VERSION}"
    return hashed + ("+" if _git(here, "status", "--porcelain", "--", ".") else "")


def command() -> str:
    """What was typed, near enough to type it again."""
    return shlex.join(["forgetgauge", *sys.argv[1:]])


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
