"""What several commands share: their options, declared once, and how they say things."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from forgetgauge.errors import UserError
from forgetgauge.plugins.shipped import EXECUTORS
from forgetgauge.wording import visible

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


def one_by_one(names: list[str] | None) -> list[str] | None:
    """The names that an option was given: `a,b` stands for `a` and `b`."""
    return None if names is None else [part.strip() for name in names for part in name.split(",")]


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
