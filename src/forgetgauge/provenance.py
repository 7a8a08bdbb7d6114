"""Where a result comes from: when, by which command, of which commit and on which processor it was made."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from forgetgauge.version import VERSION

COMMIT = "FORGETGAUGE_COMMIT"
"""Names the commit where the code was copied without its repository, to another machine say."""
PROVENANCE = ("date", "command", "commit", "cpu")
"""What `provenance` says: stated and not measured, and not the same when a result is computed again."""


def provenance() -> dict[str, str]:
    """When, by which command, from which commit and on which processor a thing is being made."""
    return dict(zip(PROVENANCE, (now(), command_line(), commit(), processor()), strict=True))


def now() -> str:
    """`2026-03-14 15:09:26 UTC`."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def command_line() -> str:
    """What was typed, near enough to type it again."""
    program = Path(sys.argv[0]).name
    typed = ["forgetgauge"] if program in ("forgetgauge", "__main__.py") else ["python", program]
    return shlex.join([*typed, *sys.argv[1:]]).encode("utf-8", "replace").decode()


@lru_cache(maxsize=1)
def commit() -> str:
    """`fcf398c1`, with `+` where the package's files were changed since; the version where there is no repository."""
    named = os.environ.get(COMMIT)
    if named:
        return named
    here = Path(__file__).parent
    hashed = _git(here, "rev-parse", "--short=8", "HEAD")
    if not hashed or not _git(here, "ls-files", "--", "__init__.py"):  # a repository, but not of this package
        return f"version {VERSION}"
    return hashed + ("+" if _git(here, "status", "--porcelain", "--", ".") else "")


@lru_cache(maxsize=1)
def processor() -> str:
    """`Intel(R) Xeon(R) Platinum 8481C, 2 cores`, as far as the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(named, platform.processor() or platform.machine())}, {os.cpu_count() or 1} cores"


def _git(folder: Path, *arguments: str) -> str:
    try:
        command = ["git", "-C", str(folder), *arguments]  # the user's own git, wherever it is; no shell
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603 - as above
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
