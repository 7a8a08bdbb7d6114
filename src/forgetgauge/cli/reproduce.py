"""`forgetgauge reproduce`: the paper's tables, run at a scale, in slices, with its numbers beside ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetgauge.cli.options import (
    Address,
    Device,
    Executor,
    Quiet,
    Resources,
    SharedStore,
    TimeLimit,
    Verbose,
    say,
    seconds_of,
    settings_of,
)
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import write_into, writing
from forgetgauge.report.watching import shown_progress

if TYPE_CHECKING:
    from forgetgauge.run.options import RunOptions
    from forgetgauge.suites.tables import Suite


TOY, SPLITTING, LIST, PAGE, ALL = "toy", "swap-vs-random", "list", "page", "all"
STRENGTHS, REPLICATES, ACCURACY = "strengths", "replicates", "accuracy"
FURTHER = {
    STRENGTHS: "Q along the strengths of Fisher, NegGrad, SalUn and SSD, on the models of table1",
    REPLICATES: "how far Q moves with the random seed: two pairs, three trainings each",
    ACCURACY: "accuracy of ResNet-20 on all training images, without and with augmentation",
    SPLITTING: "how far Q scatters for swap pairs and for random splits",
}
"""What is no table of the paper -> what it is."""
KEPT = ("result.json", "strengths.json", "replicates.json", f"{SPLITTING}.json", "invocations.jsonl")
PAGE_FILE, RESULTS = Path("docs/reproduction.md"), Path("results")


class ScaleChoice(StrEnum):
    """How large the games of a suite are."""

    smoke = "smoke"
    small = "small"
    paper = "paper"


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help=f"list, table1 … table8, table8-visible, toy, {', '.join(FURTHER)}, all; page writes the results up."
        ),
    ],
    scale: Annotated[
        ScaleChoice, typer.Option(help="smoke: minutes on two cores; small: minutes on a GPU; paper: the paper's.")
    ] = ScaleChoice.smoke,
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of all tables of a scale; runs/reproduce-SCALE without it.")
    ] = None,
    column: Annotated[list[str] | None, typer.Option("--column", help="Only this column; may be repeated.")] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Only the columns that --results has not yet as they are played today.")
    ] = False,
    together: Annotated[
        bool,
        typer.Option(
            "--together", help="Models of all tables named train side by side: faster on a GPU, but all end at once."
        ),
    ] = False,
    replicates: Annotated[
        int, typer.Option(min=1, help="Trainings of each split, averaged; the paper has 3. Tables only.")
    ] = 1,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Methods as their authors set them, and no search for strengths. Tables only."
        ),
    ] = False,
    run: Annotated[
        Path | None, typer.Option("--run", help="With replicates: use this finished run of several trainings.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="Also keep result.json and comparison.json here, beside columns kept before; page reads from here."
        ),
    ] = None,
    executor: Executor = "processes",
    address: Address = None,
    resources: Resources = None,
    shared_store: SharedStore = None,
    device: Device = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run tables of the paper and set them beside its numbers. The same command continues; models are shared."""
    from forgetgauge.run.options import RunOptions

    options = RunOptions(executor, device, settings=settings_of(address, resources, shared_store))
    wanted = _chosen(names)
    if column:
        _refuse_columns(wanted, column, scale.value)
    of_tables = {"--replicates": replicates > 1, "--published": published, "--missing": missing, "--together": together}
    _refuse_what_does_not_fit(wanted, scale.value, [option for option, is_given in of_tables.items() if is_given])
    if run is not None and wanted != [REPLICATES]:
        raise UserError("--run goes with replicates alone: reproduce replicates --run DIR")
    if results is not None and not next(path for path in (results, *results.parents) if path.exists()).is_dir():
        raise UserError(f"--results {results}: not a folder")
    if wanted == [LIST]:
        say(_listing())
        return
    if wanted == [PAGE]:
        _write_pages(results or RESULTS, out or PAGE_FILE)
        return
    if run is not None:
        _replicates_of(run, results)
        return
    limit = seconds_of(time_limit)
    deadline = None if limit is None else time.monotonic() + limit
    folder = out or Path("runs") / f"reproduce-{scale.value}"
    every = [Asked(name, scale.value, tuple(column or ()), replicates, published) for name in wanted]
    if missing:
        every = _those_missing(every, results, column)
    if together:
        _play_together(every, folder, replace(options, time_limit_s=limit), quiet, verbose)
    any_failed = False
    for asked in every:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            say(f"{asked.name}: not run: the time was up; the same command continues")
            continue
        has_failed, is_found = _one(asked, folder, replace(options, time_limit_s=left), quiet, verbose)
        any_failed |= has_failed
        if results is not None and is_found:
            _keep_one(asked, folder / asked.folder, results / "reproduce" / scale.value / asked.folder)
        elif results is not None:  # of an earlier command a record may lie there, perhaps by other settings
            say(f"{asked.name}: not finished; what is kept stays as it is", err=True)
    if any_failed:
        raise typer.Exit(1)


def _chosen(names: list[str]) -> list[str]:
    from forgetgauge.suites.tables import GROUPS, OUTLINES

    every = [TOY, *OUTLINES, *FURTHER]
    alone = {LIST, PAGE}
    wanted: list[str] = []
    for name in names:
        if name.lower() in alone:  # LIST, as some write it
            if len(names) > 1:
                raise UserError(f"{name.lower()} goes alone: forgetgauge reproduce {name.lower()}")
            return [name.lower()]
        if name not in {*every, *GROUPS, ALL}:
            raise UserError(unknown_name("table", name, {*every, *GROUPS, *alone, ALL}))
        wanted += every if name == ALL else GROUPS.get(name, (name,))
    return list(dict.fromkeys(wanted))


def _refuse_columns(wanted: list[str], asked: list[str], scale: str) -> None:
    """Rather than play all where a part is asked for, or one table before it shows that the next has no such column."""
    from forgetgauge.suites.accuracy import KINDS
    from forgetgauge.suites.tables import suite

    _refuse_others_than_tables(wanted, "--column", ACCURACY)
    for name in wanted:
        labels = list(KINDS) if name == ACCURACY else [column.label for column in suite(name, scale).columns]
        for label in asked:
            if label not in labels:
                raise UserError(f"{name}: {unknown_name('column', label, labels)}")


def _refuse_others_than_tables(wanted: list[str], option: str, *also: str) -> None:
    """UserError where an option would have no effect."""
    from forgetgauge.suites.tables import OUTLINES

    for name in wanted:
        if name not in {*OUTLINES, *also}:
            raise UserError(f"{option} goes with {' and '.join(['tables', *also])}, not with {name}")


def _refuse_what_does_not_fit(wanted: list[str], scale: str, given: list[str]) -> None:
    """UserError, before anything is played, where an option of tables would have no effect."""
    from forgetgauge.suites.tables import suite

    for option in given:
        _refuse_others_than_tables(wanted, option)
    for name in wanted if "--published" in given else ():
        suite(name, scale, published=True)


@dataclass(frozen=True)
class Asked:
    """What of the paper is to be run."""

    name: str
    scale: str
    columns: tuple[str, ...]
    replicates: int
    published: bool

    @property
    def folder(self) -> str:
        """Where its result lies, in the folder of the scale."""
        from forgetgauge.suites.tables import folder_of

        return folder_of(self.name, self.replicates, published=self.published)

    @property
    def suite(self) -> Suite:
        """The table."""
        from forgetgauge.suites.tables import suite

        return suite(self.name, self.scale, self.replicates, published=self.published)


def _those_missing(every: list[Asked], results: Path | None, column: list[str] | None) -> list[Asked]:
    """What is asked, less the columns that are kept; tables of which nothing is missing are named and left out."""
    from forgetgauge.suites.slices import missing_columns, take_from_others

    if results is None or column:
        raise UserError("--missing looks for what --results has: give that, and no --column")
    found = []
    for asked in every:
        made = asked.suite
        target = results / "reproduce" / asked.scale / asked.folder
        labels = missing_columns(made, target)
        if labels:
            found.append(replace(asked, columns=tuple(labels)))
            continue
        taken = ": its columns are taken from other tables" if take_from_others(made, target) else ""
        say(f"{asked.name}: nothing is missing{taken}")
    return found


def _play_together(every: list[Asked], folder: Path, options: RunOptions, quiet: bool, verbose: bool) -> None:
    """Do the jobs of all tables; what each finds is shown afterwards, one after another."""
    from forgetgauge.provenance import command_line
    from forgetgauge.run.campaign import started_ahead
    from forgetgauge.suites.invocation import play_together

    if len(every) < 2:
        return
    suites = [asked.suite for asked in every]
    only = {asked.name: asked.columns for asked in every}
    with started_ahead(options), shown_progress(quiet, verbose) as progress:
        how = replace(options, progress=progress)
        play_together(suites, folder, only=only, options=how, command=command_line())


def _one(asked: Asked, folder: Path, options: RunOptions, quiet: bool, verbose: bool) -> tuple[bool, bool]:
    """Run one and show it: (whether jobs failed, whether there is something to keep)."""
    from forgetgauge.provenance import command_line
    from forgetgauge.report.table import causes
    from forgetgauge.run.campaign import started_ahead

    if asked.name == TOY:
        return _toy(folder), True
    if asked.name == ACCURACY:
        return False, _accuracy(asked, folder, options, quiet)
    with started_ahead(options), shown_progress(quiet, verbose) as progress:
        play, text = _how_to_run(asked)
        invoked, found = play(asked.scale, folder, options=replace(options, progress=progress), command=command_line())
        if found is not None:
            say(f"{text(found)}\n\nresult: {folder / asked.folder}\n")
    ending = invoked.ending
    if ending.out_of_time:
        say(f"stopped at the time limit: {ending.n_missing} jobs are left; the same command continues")
    for line in causes([(failure.job, failure.line) for failure in ending.failed.values()]):
        say(line, err=True)
    return bool(ending.failed), found is not None


def _how_to_run(asked: Asked) -> tuple[Callable[..., Any], Callable[[Any], str]]:
    """How it is run, which gives the invocation and what was found (None where jobs are left); and how that reads."""
    name = asked.name
    if name == SPLITTING:
        from forgetgauge.suites.splits_page import splits_text
        from forgetgauge.suites.swap_vs_random import play_splitting

        return play_splitting, splits_text
    if name == STRENGTHS:
        from forgetgauge.suites.frontier_run import play_frontiers
        from forgetgauge.suites.frontier_words import frontier_text

        return play_frontiers, frontier_text
    if name == REPLICATES:
        from forgetgauge.suites.replicates import play_replicates, replicates_text

        return play_replicates, replicates_text
    from forgetgauge.suites.compare import text_table
    from forgetgauge.suites.invocation import play_suite

    def play_table(scale: str, out: Path, **how: Any) -> Any:
        return play_suite(asked.suite, out, only=asked.columns, **how)

    return play_table, text_table


def _replicates_of(run: Path, results: Path | None) -> None:
    """Beside the run's result.json, there and in the results."""
    from forgetgauge.suites.replicates import FILE, replicates_of_run, replicates_text

    say(f"{replicates_text(replicates_of_run(run))}\n\nresult: {run / FILE}\n")
    if results is not None:
        _keep(run, results / run.resolve().name)


def _accuracy(asked: Asked, folder: Path, options: RunOptions, quiet: bool) -> bool:
    """Whether any models are trained; nothing fails one by one here, and what is missing says so."""
    from forgetgauge.provenance import command_line
    from forgetgauge.suites.accuracy import KINDS, accuracy_text, play_accuracy

    tell = (lambda _: None) if quiet else partial(say, err=True)
    how: dict[str, Any] = {"device": options.device, "time_limit_s": options.time_limit_s, "say": tell}
    found, missing = play_accuracy(asked.scale, folder, only=asked.columns, command=command_line(), **how)
    say(f"{accuracy_text(found)}\n\nresult: {folder / ACCURACY}\n")
    for kind in missing:
        say(f"stopped at the time limit: {KINDS[kind]}; the same command continues")
    return bool(found.kinds)


def _toy(folder: Path) -> bool:
    """Whether a number is not the paper's."""
    from forgetgauge.store.runfolder import RunFolder
    from forgetgauge.suites.toy import toy, toy_record, toy_table

    rows = toy()
    opened = RunFolder(folder)
    opened.create()
    opened.write_text(folder / TOY / "result.json", toy_record(rows))
    opened.write_text(folder / TOY / "table.txt", toy_table(rows) + "\n")
    say(f"{toy_table(rows)}\n\nresult: {folder / TOY}\n")
    return not all(row.holds for row in rows)


def _listing() -> str:
    from forgetgauge.report.table import align
    from forgetgauge.suites.tables import OUTLINES

    rows = [["name", "what it is"], [TOY, "the six-point example, exactly; no training"]]
    rows += [[name, outline.title] for name, outline in OUTLINES.items()]
    return align([*rows, *([name, words] for name, words in FURTHER.items())])


def _keep_one(asked: Asked, source: Path, target: Path) -> None:
    """What the page is made from; columns join those that are kept already."""
    from forgetgauge.suites.accuracy import keep_accuracy
    from forgetgauge.suites.slices import keep_table
    from forgetgauge.suites.tables import OUTLINES

    if asked.name in OUTLINES:
        keep_table(asked.suite, source, target, partial(say, err=True))
    elif asked.name == ACCURACY:
        keep_accuracy(source, target)
    else:
        _keep(source, target)


def _keep(source: Path, target: Path) -> None:
    """Copy what the page is made from; the models stay where they are."""
    for name in KEPT:
        if (source / name).exists():
            with writing(target / name):
                write_into(target / name, (source / name).read_bytes())


def _write_pages(results: Path, target: Path) -> None:
    from forgetgauge.suites.findings import read_findings
    from forgetgauge.suites.page import render_markdown, render_page
    from forgetgauge.suites.quality_map import map_svg

    if not results.is_dir():
        raise UserError(f"{results}: {'not a folder' if results.exists() else 'no such folder'}: nothing to write up")
    if target.is_dir():
        raise UserError(f"--out {target}: a folder: name the Markdown page")
    if target.suffix.lower() in (".html", ".htm"):
        raise UserError(f"--out {target}: name the Markdown page; the HTML page is written beside it, as .html")
    found = read_findings(results)
    pages = {target: render_markdown(found, target), target.with_suffix(".html"): render_page(found)}
    drawn = None if found.frontiers is None else map_svg(found.frontiers)
    if drawn is not None and found.map_path is not None:
        pages[found.map_path] = drawn
    for path, text in pages.items():
        write_into(path, text)
        say(f"page: {path}")
