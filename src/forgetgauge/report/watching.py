"""Progress as people see it: a bar on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.progress import Progress, Watch, unwatched
from forgetgauge.wording import visible

LINE_EVERY = 5.0
"""Seconds between two lines of progress where nobody asked for more."""
BAR = 16
"""Letters of a bar on a terminal."""
NOTEBOOK_EVERY = 0.2
"""Seconds between two pictures of a notebook's bar."""


def refuse_no_watch(progress: object) -> None:
    """UserError where progress is asked for by neither a word of yes or no nor a function."""
    if not isinstance(progress, bool) and not callable(progress):
        raise UserError(f"progress must be True, False or a function, not {progress!r}")


@contextmanager
def watched(progress: Watch | bool) -> Iterator[Watch]:
    """Of a call from Python: the caller's own function; or a bar, where somebody looks and did not say False."""
    if not isinstance(progress, bool):
        yield progress
    elif progress and in_notebook():
        with _notebook_bar() as show:
            yield show
    elif progress and sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield unwatched


@contextmanager
def shown_progress(quiet: bool = False, verbose: bool = False) -> Iterator[Watch]:
    """Of a command: on a terminal a bar, elsewhere a line every few seconds; all of it where `verbose`, nothing where
    `quiet`."""
    if quiet:
        yield unwatched
    elif sys.stderr.isatty() and not verbose:
        with _bar() as show:
            yield show
    else:
        yield _lines(0.0 if verbose else LINE_EVERY)


def in_notebook() -> bool:
    """Whether the code runs in the kernel of a notebook, which shows what it is given."""
    asked = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return asked is not None and hasattr(asked(), "kernel")


def _lines(every: float) -> Watch:
    start = time.monotonic()
    last = -every

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic() - start
        if now - last < every and progress.n_done < progress.n_jobs:
            return
        last = now
        left = "" if progress.seconds_left is None else f", about {_duration(progress.seconds_left)} left"
        line = visible(f"[{_duration(now)}] {_counts(progress)}{left}{_crew(progress)}: {progress.doing}")
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(f"{line}\n".encode(encoding, "replace").decode(encoding))
        sys.stderr.flush()

    return show


@contextmanager
def _bar() -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.fields[models]}"),
        BarColumn(bar_width=BAR),
        TextColumn("{task.completed:.0f}/{task.total:.0f} jobs"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[doing]}", markup=False),
    )
    screen, moved = Console(stderr=True), sys.stdout.isatty()  # what is printed into a file goes there all the same
    with Bars(*columns, console=screen, transient=True, redirect_stdout=moved) as bars:
        bar = bars.add_task("", total=1, models="", left="", doing="starting")

        def show(progress: Progress) -> None:
            left = "" if progress.seconds_left is None else f"{_duration(progress.seconds_left)} left"
            models, doing = _models(progress), visible(f"{progress.doing}{_crew(progress)}")
            others = [models, f"{progress.n_done}/{progress.n_jobs} jobs", "0:00:00", left]
            room = screen.width - BAR - sum(len(text) + 1 for text in others) - 2
            doing = doing if len(doing) <= room else f"{doing[: max(room - 1, 0)]}…"
            bars.update(bar, total=progress.n_jobs, completed=progress.n_done, models=models, left=left, doing=doing)

        yield show


class _Picture:
    """A bar as a notebook shows it, and as text where that shows no HTML."""

    def __init__(self, text: str, n_done: int = 0, n_jobs: int = 0) -> None:
        self.text, self.n_done, self.n_jobs = text, n_done, n_jobs

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self.n_done}" max="{self.n_jobs}"></progress> ' if self.n_jobs else ""
        return f"<div>{bar}{html.escape(self.text)}</div>"


@contextmanager
def _notebook_bar() -> Iterator[Watch]:
    from IPython.display import display

    start, last, latest = time.monotonic(), -NOTEBOOK_EVERY, None
    shown: Any = display(_Picture("starting"), display_id=True)

    def show(progress: Progress) -> None:
        nonlocal last, latest
        latest, now = progress, time.monotonic() - start
        if now - last < NOTEBOOK_EVERY and progress.n_done < progress.n_jobs:
            return
        last = now
        left = "" if progress.seconds_left is None else f", about {_duration(progress.seconds_left)} left"
        doing = visible(f"{progress.doing}{_crew(progress)}")
        text = f"{_counts(progress)}, {_duration(now)}{left}: {doing}"
        shown.update(_Picture(text, progress.n_done, progress.n_jobs))

    try:
        yield show
    finally:
        done = "" if latest is None else f"{_counts(latest)} in {_duration(time.monotonic() - start)}"
        shown.update(_Picture(done))


def _counts(progress: Progress) -> str:
    return ", ".join(filter(None, [_models(progress), f"{progress.n_done}/{progress.n_jobs} jobs"]))


def _models(progress: Progress) -> str:
    return f"{progress.models_done}/{progress.n_models} models" if progress.n_models else ""


def _crew(progress: Progress) -> str:
    return f", {progress.crew}" if progress.crew else ""


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
