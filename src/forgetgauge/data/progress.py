"""How a download tells where it stands: a callable given (file, bytes so far, bytes in all)."""

from __future__ import annotations

import sys
from collections.abc import Callable

Tell = Callable[[str, int, int], None]
MIB = 2**20


def line_on_terminal(name: str, n_done: int, n_bytes: int) -> None:
    """One line on standard error that rewrites itself; nothing where that is no terminal."""
    if sys.stderr.isatty():
        ending = "\n" if n_done >= n_bytes else ""
        print(f"\r{told(name, n_done, n_bytes)}", end=ending, file=sys.stderr, flush=True)


def told(name: str, n_done: int, n_bytes: int) -> str:
    """`cifar-10-binary.tar.gz  34 %  55.1 of 162.2 MiB`."""
    return f"{name} {100 * n_done // n_bytes:3d} %  {n_done / MIB:.1f} of {n_bytes / MIB:.1f} MiB"
