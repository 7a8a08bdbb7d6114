"""Options that several commands share, declared once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.errors import UserError
from forgetgauge.plugins.shipped import EXECUTORS

RunFile = Annotated[Path | None, typer.Argument(help="Run file (TOML); without one, the embedded default.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Change a key: --set game.alpha=0.25")]
TimeLimit = Annotated[str | None, typer.Option(help="Stop at a job boundary before this: 90s, 8m, 2h.")]
Executor = Annotated[str, typer.Option(help=f"Who does the work: {' or '.join(EXECUTORS)}.")]
Device = Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda or cuda:1.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def seconds_of(time_limit: str | None) -> float | None:
    """Seconds of `90s`, `8m`, `2h` or a bare number of seconds."""
    if time_limit is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", time_limit.strip())
    if not match:
        raise UserError(f"--time-limit {time_limit}: write a number and s, m or h, e.g. 8m")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
