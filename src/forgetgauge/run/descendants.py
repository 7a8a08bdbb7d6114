"""Processes that a process started, for those who end it in the midst of its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Processes that it started, and those that these did, but not what was given a session of its own: that is a
    service, meant to outlive it. None where the system does not say (outside Linux)."""
    found, session = [pid], _session(pid)
    for parent in found:
        for listed in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):  # it is gone
                found += [child for child in map(int, listed.read_text().split()) if _session(child) == session]
    return found[1:]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def kill(pids: Sequence[int]) -> None:
    """End processes that may have ended already."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
