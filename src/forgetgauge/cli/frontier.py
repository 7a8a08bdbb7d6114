"""`forgetgauge frontier`: what each method costs and how much it forgets, along its strength."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.cli.options import (
    Device,
    Executor,
    Quiet,
    RunFile,
    Settings,
    TimeLimit,
    say,
    seconds_of,
    shown_progress,
)
from forgetgauge.cli.showing import TABLE, Form, exit_on_failure, print_result, run_folder
from forgetgauge.plugins.catalogue import code_announced


def frontier(
    file: RunFile = None,
    methods: Annotated[
        list[str] | None, typer.Option("--methods", help="This method alone, beside Retrain and None; may be repeated.")
    ] = None,
    points: Annotated[int, typer.Option(help="Strengths at which each method is played.")] = 8,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder, whose models serve; runs/NAME without it.")
    ] = None,
    settings: Settings = None,
    time_limit: TimeLimit = None,
    executor: Executor = "processes",
    device: Device = "auto",
    quiet: Quiet = False,
    form: Form = TABLE,
) -> None:
    """Show Q against accuracy: play each method along its strength, on the models of a run, none trained again."""
    from forgetgauge.plan.runfile import apply_settings, read_run_file
    from forgetgauge.report.html import render_report
    from forgetgauge.report.strengths import frontier_rows, map_headline, price_line
    from forgetgauge.report.table import align
    from forgetgauge.run.campaign import Campaign, play, started_ahead
    from forgetgauge.run.frontier import FOLDER, resolve_frontier
    from forgetgauge.run.options import RunOptions

    options = RunOptions(executor, device, False, seconds_of(time_limit))
    folder = run_folder(file, out).part(FOLDER)
    folder.check()
    with started_ahead(options), code_announced(partial(say, err=True)):
        raw, source = read_run_file(file)
        resolved = resolve_frontier(apply_settings(raw, settings or []), source, methods or [], points)
        with shown_progress(quiet) as progress:
            told = replace(options, progress=progress, tell=partial(say, err=True))
            ending, result = play(Campaign.plan(resolved), folder, told)
    for note in ending.notes:
        say(note, err=True)
    if result is None:
        say("stopped at the time limit: the same command continues", err=form != TABLE)
    else:
        folder.write_text(folder.report, render_report(result))
        if form == TABLE:
            (game,) = result.games
            say("\n\n".join(filter(None, [map_headline(game), align(frontier_rows(game)), price_line(game)])))
            for line in game.warnings:
                say(f"warning: {line}")
        else:
            print_result(result, form)
        say(f"\nresult: {folder.result}\nreport: {folder.report}", err=form != TABLE)
    exit_on_failure(ending, folder)
