"""The errors a user can mend: each is one line that says where, what is wrong and, where it helps, the nearest name."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class UserError(Exception):
    """A mistake of the user's: the command line prints it as one line and exits with code 2."""


class NotComparable(UserError):
    """Results are of different games: `reasons` has one line for each way in which they differ."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(" ".join(f"{reason}." for reason in reasons))
        self.reasons = list(reasons)


class WrongOutput(TypeError):
    """What the user's code gave back cannot be used, whatever points it is given."""


class RunFailed(Exception):
    """Some jobs of a run failed: the message has each cause once, with how many jobs, and the first traceback.

    `result` is what could be measured all the same (None where the time was up too).
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class DoubtfulResult(UserWarning):
    """Something may make a number of a result untrue; it stands in the result's `warnings` or `not_covered` too."""


class DiskFull(UserError):
    """The disk filled up; everything finished before that is kept."""


EXTRA = {"torch": "PyTorch"}
"""What the extra [run] installs, by the name of its module."""


def needs_extra(module: str) -> UserError:
    """To raise where a module of the extra [run] is wanted and not there."""
    return UserError(f"this needs {EXTRA[module]}, which is not installed: pip install 'forgetgauge[run]'")


def require_torch() -> None:
    """UserError where torch is not installed; it is looked for, not imported."""
    if find_spec("torch") is None:
        raise needs_extra("torch")


def unknown_name(what: str, name: str, valid: Iterable[str]) -> str:
    """`unknown unlearner 'neggrad'; did you mean 'neg-grad'?`, or all that `lira` begins, or the whole list."""
    valid = sorted(valid)
    longer = [other for other in valid if len(name) > 2 and other.startswith(f"{name}-")]
    near = longer or difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    listed = f"valid: {', '.join(valid)}" if valid else "there are none"
    hint = f"did you mean {' or '.join(repr(other) for other in near)}?" if near else listed
    return f"unknown {what} '{name}'; {hint}"


# -- what others' code raised ------------------------------------------------------------------------------------------

LONGEST = 1000
"""Most characters of an exception's text that are shown."""


def text_of(error: BaseException) -> str:
    """The first line of what an exception says: it may be anything, or even raise."""
    try:
        lines = str(error).strip().splitlines()
    except BaseException:
        return "(its text cannot be shown)"
    line = about_failure(lines[0]) if lines else ""
    return line[:LONGEST] + "…" * (len(line) > LONGEST)


def about_failure(text: str) -> str:
    """Of what PyTorch says of full memory, what it is full of; its allocator's figures and advice are left out."""
    said, *_ = text.partition(" Of the allocated memory ")
    return said if "out of memory" in said else text


def line_of(error: BaseException) -> str:
    """`TypeError: …`."""
    if isinstance(error, SystemExit) and not isinstance(error.code, str):
        return f"SystemExit: it ended the program, with code {text_of(error) or None}"
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def placed_line_of(error: BaseException) -> str:
    """`TypeError: … (mine.py, line 3)`: the place is the last one that is the user's."""
    ours = Path(__file__).parent
    theirs = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if ours not in Path(frame.filename).parents and "site-packages" not in frame.filename
    ]
    if isinstance(error, UserError | WrongOutput) or not theirs:
        return (text_of(error) if isinstance(error, UserError | WrongOutput) else "") or line_of(error)
    return f"{line_of(error)} ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})"
