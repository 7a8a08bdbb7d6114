"""Where a run or an audit stands, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where it stands, shown after every assignment."""

    n_done: int
    n_jobs: int
    models_done: int = 0
    n_models: int = 0
    """0 where none are made."""
    seconds_left: float | None = None
    """Estimated from the jobs done so far; None before there are any."""
    doing: str = ""
    """What was finished or begun last, for people."""
    crew: str = ""
    """The workers and their speed, where the executor says so."""


Watch = Callable[[Progress], None]
"""Is called with where it stands."""


def steps(watch: Watch, n_steps: int) -> Callable[[str], None]:
    """A function to call with what comes next, where each of so many calls is one step."""
    begun = 0

    def tell(doing: str) -> None:
        nonlocal begun
        watch(Progress(begun, n_steps, doing=doing))
        begun = min(begun + 1, n_steps)

    return tell


def unwatched(_: Progress) -> None:
    """Ignores progress."""
