"""`forgetgauge experiment …`: an experiment of the paper that is not one game's Q."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.cli.options import Device, Quiet, Settings, TimeLimit, say, seconds_of
from forgetgauge.report.watching import shown_progress

experiments = typer.Typer(
    name="experiment", help="Run an experiment of the paper.", no_args_is_help=True, rich_markup_mode=None
)


@experiments.callback()
def experiment() -> None:
    """Run an experiment of the paper."""


@experiments.command("swap-vs-random")
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
    from forgetgauge.suites import swap_vs_random as experiment
    from forgetgauge.suites.splits_page import splits_text

    limit = seconds_of(time_limit)
    try:
        with shown_progress(quiet) as progress:
            found = experiment.swap_vs_random(
                file,
                out=out,
                repetitions=repetitions,
                settings=settings or [],
                options=RunOptions("processes", device, time_limit_s=limit, progress=progress),
            )
    except TimeoutError as error:
        say(f"stopped at the time limit: {error}")
        return
    say(f"{splits_text(found)}\n")
    say("\n".join(str(out / f"{experiment.NAME}.{ending}") for ending in ("html", "svg", "json")))
