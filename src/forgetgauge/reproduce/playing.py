"""Running a table: its columns are games of one campaign, in a store that all tables of a scale share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forgetgauge.data.files import KNOWN
from forgetgauge.data.folders import data_folder, find
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plan.graph import Graph, build_graph
from forgetgauge.report.html import render_report
from forgetgauge.reproduce.compare import compare_suite
from forgetgauge.reproduce.confused import with_confused_accuracy
from forgetgauge.reproduce.folder import add_sitting, remember_games, table_folder
from forgetgauge.reproduce.origin import commit
from forgetgauge.reproduce.record import FILE, Sitting, TableComparison
from forgetgauge.reproduce.remembered import remembered
from forgetgauge.reproduce.suites import Column, Suite
from forgetgauge.reproduce.text import text_table
from forgetgauge.results.assembly import assemble
from forgetgauge.results.record import Result
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import DEFAULTS, RunOptions
from forgetgauge.run.packing import jobs_to_do
from forgetgauge.run.resolve import resolve
from forgetgauge.run.scheduler import Ending
from forgetgauge.run.tasks import Resolved, Sources
from forgetgauge.store.runfolder import RunFolder

READ_FROM = {"mnist-3-8": "mnist"}
"""Data that are a part of others."""

NOT_ASKED = "not asked for"
NOT_YET = "the time was up; the same command continues"


@dataclass(frozen=True)
class Planned:
    """The columns of a table that can be played here, and why the others cannot."""

    columns: list[Column]
    campaign: Campaign
    """Of these columns, in their order."""
    not_run: dict[str, str]
    before: list[tuple[Column, Graph]]
    """Columns that are not asked for, but were finished in an earlier sitting: the table has them all the same."""


@dataclass(frozen=True)
class Sat:
    """What came of a sitting."""

    ending: Ending
    campaign: Campaign
    comparison: TableComparison


def plan_suite(suite: Suite, only: Sequence[str] = (), out: Path | None = None) -> Planned:
    """Resolve every column; `only` names those that are wanted, all without. `out` may know some from elsewhere."""
    for label in only:
        if label not in [column.label for column in suite.columns]:
            raise UserError(f"{suite.name}: " + unknown_name("column", label, [c.label for c in suite.columns]))
    chosen: list[Column] = []
    parts: list[Resolved] = []
    not_run: dict[str, str] = {}
    before: list[tuple[Column, Graph]] = []
    for column in suite.columns:
        if only and column.label not in only:
            finished = _finished_before(suite, column, out)
            if finished is None:
                not_run[column.label] = NOT_ASKED
            else:
                before.append(finished)
            continue
        found = _settle(suite, column, out)
        if isinstance(found, str):
            not_run[column.label] = found
        else:
            chosen.append(found[0])
            parts.append(found[1])
    if not parts:
        raise UserError(next(why for why in not_run.values() if why != NOT_ASKED))
    return Planned(chosen, Campaign.plan(_joined(suite, chosen, parts)), not_run, before)


def play_suite(
    suite: Suite,
    out: Path,
    *,
    only: Sequence[str] = (),
    options: RunOptions = DEFAULTS,
    command: str = "",
) -> Sat:
    """Do what is missing of a table and compare what there is; columns that are not finished are called not run."""
    start = time.monotonic()
    planned = plan_suite(suite, only, out)
    remember_games(out, suite.name, planned.campaign)
    folder = table_folder(out, suite.name)
    ending, result = play(planned.campaign, folder, options)
    shown = _shown(suite, planned, folder, out_of_time=result is None)
    columns, not_run = [column for column, _ in shown], dict(planned.not_run)
    not_run |= {column.label: NOT_YET for column in planned.columns if column not in columns}
    if result is None or planned.before:
        result = _result([graph for _, graph in shown], planned.campaign.resolved, folder)
    else:
        result = with_confused_accuracy(result, planned.campaign.graphs, folder)
    made_on = result.environment["device"] if result else planned.campaign.resolved.environment["device"]
    sitting = Sitting(command, commit(), made_on, round(time.monotonic() - start, 1), ending.n_run)
    sittings = add_sitting(folder, suite.name, sitting)
    comparison = compare_suite(suite, columns, result, not_run, sittings)
    _write(folder, suite.name, comparison, result)
    return Sat(ending, planned.campaign, comparison)


def _settle(suite: Suite, column: Column, out: Path | None) -> tuple[Column, Resolved] | str:
    """The column or what stands in for it, resolved; or why neither can be played here."""
    try:
        refuse_download(column.raw["data"]["name"])
        return column, resolve(column.raw, f"{suite.name} {column.label}")
    except UserError as error:
        known = None if out is None else remembered(out, suite.name, column)
        if known is not None:
            return column, known
        instead = "" if column.instead is None else _settle(suite, column.instead, out)
        return instead or str(error)


def refuse_download(name: str) -> None:
    """A run never fetches hundreds of megabytes unasked."""
    known = KNOWN.get(READ_FROM.get(name, name))
    if known is not None and find(known, data_folder()) is None:
        raise UserError(f"the data '{known.name}' are not here; 'forgetgauge data get {known.name}' downloads them")


def _joined(suite: Suite, columns: Sequence[Column], parts: Sequence[Resolved]) -> Resolved:
    """One campaign; every column is one game, under its label."""
    games = [replace(part.games[0], value=column.label) for column, part in zip(columns, parts, strict=True)]
    datasets = {digest: data for part in parts for digest, data in part.sources.datasets.items()}
    keep = all(part.keep_weights for part in parts)
    return Resolved(games, suite.variable or None, keep, Sources(datasets), parts[0].environment)


def _finished_before(suite: Suite, column: Column, out: Path | None) -> tuple[Column, Graph] | None:
    """The column, or what stood in for it, where an earlier sitting finished it."""
    known = None if out is None else remembered(out, suite.name, column)
    if known is not None:
        return column, build_graph(replace(known.games[0], value=column.label))
    return None if column.instead is None else _finished_before(suite, column.instead, out)


def _shown(suite: Suite, planned: Planned, folder: RunFolder, *, out_of_time: bool) -> list[tuple[Column, Graph]]:
    """The columns that have a result, in the order of the table: so it grows over several sittings."""
    state = folder.open_ledger().state
    played = list(zip(planned.columns, planned.campaign.graphs, strict=True))
    if out_of_time:
        played = [(column, graph) for column, graph in played if not jobs_to_do(graph.jobs, state)]
    order = [column.label for column in suite.columns]
    return sorted([*planned.before, *played], key=lambda item: order.index(item[0].label))


def _result(graphs: Sequence[Graph], resolved: Resolved, folder: RunFolder) -> Result | None:
    if not graphs:
        return None
    result = assemble(graphs, folder, sweep_key=resolved.sweep_key, environment=resolved.environment)
    return with_confused_accuracy(result, graphs, folder)


def _write(folder: RunFolder, name: str, comparison: TableComparison, result: Result | None) -> None:
    if result is not None:
        folder.write_text(folder.result, result.to_json())
        folder.write_text(folder.report, render_report(result))
    folder.write_text(folder.path / name / FILE, comparison.to_json())
    folder.write_text(folder.path / name / "table.txt", text_table(comparison) + "\n")
