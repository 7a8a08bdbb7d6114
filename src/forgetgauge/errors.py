"""The errors a user can mend: each is one line that says where, what is wrong and, where it helps, the nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake of the user's: the command line prints it as one line and exits with code 2."""


class DiskFull(UserError):
    """The disk filled up; everything finished before that is kept."""


def unknown_name(what: str, name: str, valid: Iterable[str]) -> str:
    """`unknown unlearner 'neggrad'; did you mean 'neg-grad'?`, or the whole list where nothing is near."""
    valid = sorted(valid)
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"valid: {', '.join(valid)}"
    return f"unknown {what} '{name}'; {hint}"
