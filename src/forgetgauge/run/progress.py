"""How a run goes, shown to a person: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from forgetgauge.run.scheduler import Progress


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A function that shows the progress it is called with; nothing where `quiet`."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _print_line(time.monotonic())


def _print_line(start: float) -> Callable[[Progress], None]:
    def show(progress: Progress) -> None:
        left = "" if progress.seconds_left is None else f", about {_duration(progress.seconds_left)} left"
        print(
            f"[{_duration(time.monotonic() - start)}] {progress.models_done}/{progress.n_models} models, "
            f"{progress.n_done}/{progress.n_jobs} jobs{left}: {progress.doing}",
            file=sys.stderr,
            flush=True,
        )

    return show


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.fields[models]} models"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} jobs"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[doing]}"),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("", total=1, models="0", left="", doing="starting")

        def show(progress: Progress) -> None:
            left = "" if progress.seconds_left is None else f"{_duration(progress.seconds_left)} left"
            bars.update(
                bar,
                total=progress.n_jobs,
                completed=progress.n_done,
                models=f"{progress.models_done}/{progress.n_models}",
                left=left,
                doing=progress.doing,
            )

        yield show


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
