"""What a benchmark says when it is asked for help, where it reads its few arguments by itself."""

from __future__ import annotations

import sys


def show_help(text: str | None) -> None:
    """Print what a script is for, and how it is called, and end, where `-h` or `--help` is among its arguments."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print((text or "").strip())
        sys.exit(0)
