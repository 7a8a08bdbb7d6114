"""`forgetgauge frontier`: what each method costs and how much it forgets, along its strength."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetgauge.cli.options import (
    Address,
    Device,
    Executor,
    Json,
    Quiet,
    Resources,
    RunFile,
    Settings,
    SharedStore,
    TimeLimit,
    Verbose,
    one_by_one,
    say,
    seconds_of,
    settings_of,
)
from forgetgauge.cli.printing import TABLE, Form, asked_for, exit_on_failure, play_shown, print_result, run_folder


def frontier(
    file: RunFile = None,
    methods: Annotated[
        list[str] | None,
        typer.Option("--methods", callback=one_by_one, help="These methods alone, beside Retrain and None: a,b,c."),
    ] = None,
    points: Annotated[int, typer.Option(help="Strengths at which each method is played.")] = 8,
    out: Annotated[
        Path | None, typer.Option("--out", help="Run folder, whose models serve; runs/NAME without it.")
    ] = None,
    settings: Settings = None,
    time_limit: TimeLimit = None,
    executor: Executor = "processes",
    address: Address = None,
    resources: Resources = None,
    shared_store: SharedStore = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
    form: Form = TABLE,
    as_json: Json = False,
) -> None:
    """Show Q against accuracy: play each method along its strength, on the models of a run where it kept them."""
    from forgetgauge.plan.runfile import apply_settings, read_run_file
    from forgetgauge.report.html import render_report
    from forgetgauge.report.strengths import frontier_rows, gap_lines, map_headline, price_line
    from forgetgauge.report.table import align
    from forgetgauge.results.verdict import reservations
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.run.frontier import FOLDER, resolve_frontier
    from forgetgauge.run.options import RunOptions

    def plan() -> Campaign:
        raw, source = read_run_file(file)
        return Campaign.plan(resolve_frontier(apply_settings(raw, settings or []), source, methods or [], points))

    form = asked_for(form, as_json)
    cluster = settings_of(address, resources, shared_store)
    options = RunOptions(executor, device, False, seconds_of(time_limit), settings=cluster)
    folder = run_folder(file, out).part(FOLDER)
    ending, result = play_shown(plan, folder, options, quiet=quiet, verbose=verbose, form=form)
    if result is not None:
        folder.write_text(folder.report, render_report(result))
        if form == TABLE:
            (game,) = result.games
            say("\n\n".join(filter(None, [map_headline(game), align(frontier_rows(game)), price_line(game)])))
            for line in gap_lines(game):
                say(line)
            for line in reservations(game):
                say(f"warning: {line}")
        else:
            print_result(result, form)
        say(f"\nresult: {folder.result}\nreport: {folder.report}", err=form != TABLE)
    exit_on_failure(ending, folder)
