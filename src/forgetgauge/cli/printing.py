"""What commands print of a result, in the format that was asked for; and the command `compare`.

In every format but the table, standard output is that format alone: where files are, and remarks, go to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetgauge.cli.options import Json, say
from forgetgauge.errors import UserError
from forgetgauge.files import refuse_other_kind, set_aside, write_whole
from forgetgauge.plugins.catalogue import code_announced
from forgetgauge.report.watching import shown_progress

if TYPE_CHECKING:
    from forgetgauge.results.one_model import OneModelResult
    from forgetgauge.results.record import Result
    from forgetgauge.run.campaign import Campaign
    from forgetgauge.run.options import RunOptions
    from forgetgauge.run.scheduler import Ending
    from forgetgauge.store.runfolder import RunFolder

TABLE = "table"


def _known(form: str | None) -> str | None:
    """Refused before anything is done."""
    if form is None or form == TABLE:
        return form
    from forgetgauge.report.formats import known_format

    return known_format(form)


FORM_HELP = "table, csv, json, latex or markdown; all but the table leave standard output to it alone."
Form = Annotated[str, typer.Option("--format", help=FORM_HELP, callback=_known)]
Out = Annotated[Path | None, typer.Option("--out", help="Run folder; runs/NAME without it.")]
Folder = Annotated[Path, typer.Argument(help="Run folder.")]
OnlyIfAsked = Annotated[str | None, typer.Option("--format", help=f"Print the table too: {FORM_HELP}", callback=_known)]


def asked_for(form: str, as_json: bool) -> str:
    """`--json` is short for `--format json`."""
    if as_json and form not in (TABLE, "json"):
        raise UserError(f"--json and --format {form}: choose one")
    return "json" if as_json else form


def show(folder: RunFolder, form: str = TABLE, *, failures: bool = True) -> None:
    """Write the report of a folder again and print its result."""
    from forgetgauge.report.html import render_report
    from forgetgauge.results.record import read_result

    result = read_result(folder.result)
    folder.write_text(folder.report, render_report(result))
    print_result(result if failures else replace(result, failures=[]), form)
    where = f"result: {folder.result}\nreport: {folder.report}"
    say(f"\n{where}" if form == TABLE else where, err=form != TABLE)


def seen_by(adversaries: Sequence[str], result: Result) -> str:
    """One row for each adversary and method: its advantage with an interval, and the strongest adversary beside it."""
    from forgetgauge.report.table import align
    from forgetgauge.wording import setting, signed, signed_bracket

    sweep = [] if result.sweep is None else [result.sweep]
    rows = [[*sweep, "adversary", "method", "advantage", "interval", "the strongest"]]
    for name, game in product(adversaries, result.games):
        for method, found in game.methods.items():
            if name not in found.by_adversary or found.adversary is None:
                continue
            own, best = found.by_adversary[name], found.by_adversary[found.adversary]
            beside = "itself" if found.adversary == name else f"{found.adversary} {signed(best.advantage)}"
            at = [setting(game.value)] if sweep else []
            rows.append([*at, name, method, signed(own.advantage), signed_bracket(own.interval), beside])
    return align(rows)


def print_result(result: Result, form: str) -> None:
    """The table with its remarks, or the rows alone."""
    from forgetgauge.report.table import causes, render_table

    if form == TABLE:
        say(render_table(result))
        return
    from forgetgauge.results.verdict import no_controls, reservations

    remarks = [line for game in result.games for line in (*reservations(game), *no_controls(game))]
    _print_rows([("", result)], form, [*remarks, *causes([(failed.job, failed.error) for failed in result.failures])])


def show_evidence(found: OneModelResult, target: Path, form: str = TABLE) -> None:
    """Keep evidence from one model in a folder, for programs and for people, and print it."""
    from forgetgauge.report.one_model import render_evidence_page
    from forgetgauge.store.runfolder import RunFolder

    folder = RunFolder(target)
    folder.create()
    evidence, page, text = target / "evidence.json", target / "evidence.html", found.to_json()
    earlier = set_aside(evidence, text, page)
    folder.write_text(evidence, text)
    folder.write_text(page, render_evidence_page(found))
    print_evidence(found, form)
    where = f"evidence: {evidence}\nreport: {page}"
    say(f"\n{where}" if form == TABLE else where, err=form != TABLE)
    say_set_aside(earlier)


def say_set_aside(earlier: Path | None) -> None:
    """That another audit's numbers stood in the folder, and where they are now."""
    if earlier is not None:
        say(f"this folder held another audit, which is kept: {earlier}", err=True)


def print_evidence(found: OneModelResult, form: str) -> None:
    """The evidence with its remarks, or the rows alone."""
    from forgetgauge.report.one_model import not_said, render_evidence
    from forgetgauge.results.one_model import warnings_on

    if form == TABLE:
        say(render_evidence(found))
    else:
        _print_rows([("", found)], form, [*warnings_on(found), *not_said(found)])


def report_evidence(folder: Path, to: Path | None, form: str | None, *, unverified: bool = False) -> bool:
    """Write the page of evidence from one model again, where that is what a folder keeps."""
    from forgetgauge.records import read_record
    from forgetgauge.report.one_model import render_evidence_page
    from forgetgauge.results.one_model import OneModelResult
    from forgetgauge.results.reading import at_its_word
    from forgetgauge.results.verified import refuse_unverified_evidence

    path = folder / "evidence.json"
    if (folder / "result.json").exists() or not path.exists():
        return False
    found = read_record(path, OneModelResult, sealed=False) if unverified else refuse_unverified_evidence(path)
    refuse_other_kind(to, ".html", ".htm")
    target = to or folder / "evidence.html"
    with at_its_word(path):
        write_whole(target, render_evidence_page(found))
        if form is not None:
            print_evidence(found, form)
    say(f"report: {target}", err=form not in (None, TABLE))
    return True


def compare(
    results: Annotated[list[Path], typer.Argument(help="A result.json or an evidence.json each, or their folders.")],
    to: Annotated[
        Path | None, typer.Option(help="Where to write the page; comparison.html beside you without it.")
    ] = None,
    form: Form = TABLE,
    as_json: Json = False,
) -> None:
    """Set stored results side by side: a table and a page, with differences where they share pairs. Refused where
    their games differ."""
    form = asked_for(form, as_json)
    from forgetgauge.report import comparison
    from forgetgauge.results.reading import at_its_word, read_either

    named = [(str(path), read_either(path, verified=False)[1]) for path in results]
    refuse_other_kind(to, ".html", ".htm")
    target = to or (Path("comparison.html") if form == TABLE else None)
    if target is not None and to is None and target.exists():
        comparison.refuse_foreign_page(str(target), target.read_bytes())
    with at_its_word(*results):
        comparison.refuse_unlike(named)
        found = comparison.differences_of(named)
        if form == TABLE:
            say(comparison.compared_table(named, found))
        else:
            _print_rows(named, form, comparison.remarks_of(named, found))
        if target is not None:
            write_whole(target, comparison.render_comparison(named))
            say(f"page: {target}", err=form != TABLE)


def _print_rows(named: list[tuple[str, Result | OneModelResult]], form: str, remarks: list[str]) -> None:
    from forgetgauge.report.formats import written
    from forgetgauge.report.rows import rows_of

    say(written(rows_of(named), form))
    for line in remarks:
        say(line, err=form != TABLE)


def run_folder(file: Path | None, out: Path | None) -> RunFolder:
    """Where the run of a file goes, unless somebody says otherwise."""
    from forgetgauge.store.runfolder import RunFolder

    return RunFolder(out or Path("runs") / (file.stem if file else "digits"))


def existing(path: Path) -> RunFolder:
    """The run folder at a path, which may also be that of its result."""
    from forgetgauge.results.reading import FILES
    from forgetgauge.store.runfolder import RunFolder

    if path.name in FILES and path.is_file():
        path = path.parent
    if not path.is_dir():
        raise UserError(f"{path}: no such folder")
    return RunFolder.at(path)


def mib(n_bytes: int) -> str:
    """A number of bytes as people read it: `3.2 MiB`."""
    return f"{n_bytes / 2**20:.1f} MiB"


def play_shown(
    plan: Callable[[], Campaign], folder: RunFolder, options: RunOptions, *, quiet: bool, verbose: bool, form: str
) -> tuple[Ending, Result | None]:
    """Plan a run and play it, with its progress, and say what must be known of it before its result."""
    from forgetgauge.run.campaign import play, started_ahead

    folder.check()
    with started_ahead(options), code_announced(partial(say, err=True)):
        campaign = plan()
        with shown_progress(quiet, verbose) as progress, _prints_kept(options, folder) as kept:
            ending, result = play(campaign, folder, replace(kept, progress=progress, tell=partial(say, err=True)))
    for note in ending.notes:
        say(note, err=True)
    if result is None:
        note = f"stopped at the time limit: {ending.n_missing} jobs are left; the same command continues"
        say(note, err=form != TABLE)
    return ending, result


@contextmanager
def _output_to_errors() -> Iterator[None]:
    """What is written to standard output by its number, as libraries in C do, goes to standard error."""
    try:
        spare = os.dup(1)
    except OSError:  # there is none
        yield
        return
    try:
        with suppress(OSError):
            os.dup2(2, 1)
        yield
    finally:
        os.dup2(spare, 1)
        os.close(spare)


@contextmanager
def _prints_kept(options: RunOptions, folder: RunFolder) -> Iterator[RunOptions]:
    """Options by which what the user's code prints stays out of the table: in a file or, in one process, beside it."""
    from forgetgauge.run.output import FILE

    path = folder.path / FILE
    before = path.stat().st_size if path.exists() else 0
    with redirect_stdout(sys.stderr), _output_to_errors():
        kept = {"output": path} if options.executor == "processes" else {}
        yield replace(options, settings={**options.settings, **kept})
    if path.exists() and path.stat().st_size > before:
        say(f"printed while it ran: {path}", err=True)
    elif path.exists() and not before:
        path.unlink()


def exit_on_failure(ending: Ending, folder: RunFolder) -> None:
    """Say each cause once, how many jobs it stopped, and where the tracebacks are."""
    from forgetgauge.report.table import causes

    if ending.failed:
        for line in causes([(failure.job, failure.line) for failure in ending.failed.values()]):
            say(line, err=True)
        say(f"{ending.n_missing} jobs could not be done; tracebacks: {folder.failures}", err=True)
        raise typer.Exit(1)
