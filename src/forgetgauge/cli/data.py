"""`forgetgauge data check` and `data get`: where the known data sets are, whether they are whole, and fetching them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetgauge import plugins
from forgetgauge.cli.options import say

app = typer.Typer(name="data", help="Look for data sets and fetch them.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets, or paths of your own .npz; all known without.")
    ] = None,
) -> None:
    """Say of each data set where it is looked for, whether it is as published, and how large it is."""
    from forgetgauge.data.checking import catalogued, examine
    from forgetgauge.report.table import align

    findings = [examine(name) for name in names or catalogued()]
    rows = [["data set", "state", "points", "test", "classes", "where"]]
    for found in findings:
        counts = (found.n_train, found.n_test, found.n_classes)
        rows.append([found.name, found.state, *(f"{n:,}" if n else "–" for n in counts), found.where])
    say(align(rows))
    for found in findings:
        if found.problem:
            say(found.problem if found.problem.startswith(found.name) else f"{found.name}: {found.problem}")
    if names and any(found.state != "present" for found in findings):
        raise typer.Exit(2)


@app.command()
def get(
    names: Annotated[list[str], typer.Argument(help="Data sets to download.")],
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder; FORGETGAUGE_DATA or the user's cache without it.")
    ] = None,
) -> None:
    """Download data sets; what broke off is continued, what is there and whole is left alone."""
    from forgetgauge.data.download import fetch
    from forgetgauge.data.files import PART_OF, known_set
    from forgetgauge.data.folders import VARIABLE, data_folder

    root = to or data_folder()
    entries = plugins.data.entries
    wanted = {
        name: None if name in entries and entries[name].embedded else known_set(PART_OF.get(name, name))
        for name in names
    }
    for name, known in wanted.items():
        where = fetch(known, root) if known else "embedded, nothing to download"
        say(f"{name}: {where}")
    if to is not None and to != data_folder():
        say(f"set {VARIABLE}={to} for runs to find it there")
