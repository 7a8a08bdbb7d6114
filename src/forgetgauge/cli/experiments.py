"""`forgetgauge experiment …`: the paper's experiments that are not one game's Q."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.cli.options import Device, Quiet, Settings, TimeLimit, seconds_of

app = typer.Typer(
    name="experiment", help="Run an experiment of the paper.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def experiment() -> None:
    """Run an experiment of the paper."""


@app.command("swap-vs-random")
def swap_vs_random(
    file: Annotated[Path | None, typer.Argument(help="Run file (TOML); digits without one.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Run folder.")] = Path("runs/swap-vs-random"),
    repetitions: Annotated[
        int | None, typer.Option(help="Swap pairs, an even number; game.pairs of the run file without it.")
    ] = None,
    settings: Settings = None,
    time_limit: TimeLimit = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Swap pairs against random splits: how far Q scatters, and the look-up adversary. The same command continues."""
    from forgetgauge.run.options import RunOptions
    from forgetgauge.run.progress import told
    from forgetgauge.suites import swap_vs_random as experiment
    from forgetgauge.suites.splits_page import splits_text

    limit = seconds_of(time_limit)
    try:
        with told(quiet) as tell:
            found = experiment.swap_vs_random(
                file,
                out=out,
                repetitions=repetitions,
                settings=settings or [],
                options=RunOptions("processes", device, time_limit_s=limit, tell=tell),
            )
    except TimeoutError as error:
        typer.echo(f"stopped at the time limit: {error}")
        return
    typer.echo(f"{splits_text(found)}\n")
    typer.echo("\n".join(str(out / f"{experiment.NAME}.{ending}") for ending in ("html", "svg", "json")))
