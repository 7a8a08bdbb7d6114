"""What several commands share: their options, declared once, and the progress of a run.

Progress is a bar on a terminal, and plain lines elsewhere.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetgauge.errors import UserError
from forgetgauge.plugins.shipped import EXECUTORS
from forgetgauge.wording import visible

if TYPE_CHECKING:
    from forgetgauge.run.scheduler import Progress

RunFile = Annotated[Path | None, typer.Argument(help="Run file (TOML); without one, the embedded default.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Change a key: --set game.alpha=0.25")]
TimeLimit = Annotated[str | None, typer.Option(help="Stop by then, between two jobs if possible: 90s, 8m, 2h.")]
Executor = Annotated[str, typer.Option(help=f"Who does the work: {' or '.join(EXECUTORS)}.")]
Address = Annotated[
    str | None, typer.Option(help="Of ray: auto or HOST:PORT of a cluster; without it, one of this machine alone.")
]
Resources = Annotated[
    str | None, typer.Option(help="Of ray: what a job is given, e.g. cpu=1,gpu=0.25,memory=2GiB; one CPU, one GPU.")
]
SharedStore = Annotated[
    bool | None, typer.Option("--shared-store", help="Of ray: all machines see the run folder, and use it directly.")
]
Device = Annotated[str, typer.Option(help="auto (every GPU, where there is one), cpu, cuda, cuda:1 or cuda:0,cuda:2.")]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Import and call the code that the file names; nothing is without it.")
]
Json = Annotated[bool, typer.Option("--json", help="For programs: JSON alone on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="A line for every step, in place of a bar.")]


def say(text: str, *, err: bool = False) -> None:
    """Print text, whoever wrote parts of it: nothing in it can steer the terminal, and what cannot be spelled in the
    terminal's alphabet is a question mark."""
    stream = sys.stderr if err else sys.stdout
    line = f"{visible(text)}\n"
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(line.encode(encoding, "replace").decode(encoding))
    stream.flush()


def settings_of(address: str | None, resources: str | None, shared_store: bool | None) -> dict[str, Any]:
    """What was said of a cluster, by the names that the executor has for it."""
    return {"address": address, "resources": resources, "shared_store": shared_store}


def seconds_of(time_limit: str | None) -> float | None:
    """Seconds of `90s`, `8m`, `2h` or a bare number of seconds."""
    if time_limit is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", time_limit.strip())
    if not match:
        raise UserError(f"--time-limit {time_limit}: write a number and s, m or h, e.g. 8m")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


LINE_EVERY = 5.0
"""Seconds between two lines of progress where nobody asked for more."""


@contextmanager
def shown_progress(quiet: bool = False, verbose: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A function that shows the progress it is called with: on a terminal by a bar, elsewhere by a line every few
    seconds; all of it where `verbose`, nothing where `quiet`."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty() and not verbose:
        with _bar() as show:
            yield show
    else:
        yield _print_line(0.0 if verbose else LINE_EVERY)


def _print_line(every: float) -> Callable[[Progress], None]:
    start = time.monotonic()
    last = -every

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic() - start
        if now - last < every and progress.n_done < progress.n_jobs:
            return
        last = now
        left = "" if progress.seconds_left is None else f", about {_duration(progress.seconds_left)} left"
        say(
            f"[{_duration(now)}] {progress.models_done}/{progress.n_models} models, "
            f"{progress.n_done}/{progress.n_jobs} jobs{left}{_crew(progress)}: {progress.doing}",
            err=True,
        )

    return show


@contextmanager
def _bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    columns = (
        TextColumn("{task.fields[models]} models"),
        BarColumn(bar_width=16),
        TextColumn("{task.completed:.0f}/{task.total:.0f} jobs"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[doing]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
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
                doing=visible(f"{progress.doing}{_crew(progress)}"),
            )

        yield show


def _crew(progress: Progress) -> str:
    return f", {progress.crew}" if progress.crew else ""


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
