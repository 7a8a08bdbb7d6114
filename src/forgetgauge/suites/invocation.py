"""One invocation of a suite: its columns are games of one campaign, in a store that all tables of a scale share.

DIR/objects, ledger.jsonl     shared: a model that two tables need is trained once
DIR/run.json                  the games of all tables, for `status`, `export` and `import`
DIR/table1/                   run.json, result.json, report.html, comparison.json, table.txt, invocations.jsonl
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import parse_json
from forgetgauge.plan.game import Game, game_from_json
from forgetgauge.plan.graph import Graph, build_graph
from forgetgauge.provenance import commit
from forgetgauge.report.html import render_report
from forgetgauge.results.assembly import assemble
from forgetgauge.results.record import Result
from forgetgauge.run.assignments import Resolved, Sources
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.frontier import resolve_frontier
from forgetgauge.run.options import DEFAULTS, RunOptions
from forgetgauge.run.packing import jobs_to_do
from forgetgauge.run.resolve import resolve
from forgetgauge.run.scheduler import Ending
from forgetgauge.run.stages import is_open
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites.availability import is_of, refuse_download
from forgetgauge.suites.compare import compare_suite, text_table
from forgetgauge.suites.records import FILE, Invocation, TableComparison
from forgetgauge.suites.tables import Raw, Suite, TableColumn
from forgetgauge.wording import listed

TOGETHER = "together"
"""The folder of what several tables did as one."""
NOT_ASKED = "not asked for"
NOT_YET = "the time was up; the same command continues"


@dataclass(frozen=True)
class Planned:
    """The columns of a table that can be played here, and why the others cannot."""

    columns: list[TableColumn]
    campaign: Campaign
    """The campaign of these columns, in their order."""
    not_run: dict[str, str]
    before: list[tuple[TableColumn, Graph]]
    """Columns that are not asked for, but were finished in an earlier invocation: the table has them all the same."""


@dataclass(frozen=True)
class Invoked:
    """What one invocation of a suite left."""

    ending: Ending
    campaign: Campaign
    folder: RunFolder
    result: Result | None
    """None where jobs are missing because the time was up."""
    invocations: list[Invocation]
    """All that worked on this table, this one last."""


def plan_suite(suite: Suite, only: Sequence[str] = (), out: Path | None = None) -> Planned:
    """Resolve every column; `only` names those that are wanted, all without. `out` may know some from elsewhere."""
    for label in only:
        if label not in [column.label for column in suite.columns]:
            raise UserError(f"{suite.name}: " + unknown_name("column", label, [c.label for c in suite.columns]))
    chosen: list[TableColumn] = []
    parts: list[Resolved] = []
    not_run: dict[str, str] = {}
    before: list[tuple[TableColumn, Graph]] = []
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
    games = [replace(part.games[0], value=column.label) for column, part in zip(chosen, parts, strict=True)]
    return Planned(chosen, Campaign.plan(_joined(games, parts, suite.variable or None)), not_run, before)


def play_suite(
    suite: Suite, out: Path, *, only: Sequence[str] = (), options: RunOptions = DEFAULTS, command: str = ""
) -> tuple[Invoked, TableComparison]:
    """Do what is missing of a table and compare what there is; columns that are not finished are called not run."""
    start = time.monotonic()
    planned = plan_suite(suite, only, out)
    remember_games(out, suite.folder, planned.campaign)
    folder = table_folder(out, suite.folder)
    ending, result = play(planned.campaign, folder, options)
    planned = replace(planned, campaign=_as_played(planned.campaign, folder))
    remember_games(out, suite.folder, planned.campaign)
    shown = _shown(suite, planned, folder, out_of_time=result is None)
    columns, not_run = [column for column, _ in shown], dict(planned.not_run)
    not_run |= {column.label: NOT_YET for column in planned.columns if column not in columns}
    if result is None or planned.before:
        result = _result([graph for _, graph in shown], planned.campaign.resolved, folder)
    invocations = add_invocation(folder, suite.folder, command, options, start, ending.n_run)
    comparison = compare_suite(suite, columns, result, not_run, invocations)
    _write(folder, suite.folder, comparison, result)
    return Invoked(ending, planned.campaign, folder, result, invocations), comparison


def play_together(
    suites: Sequence[Suite],
    out: Path,
    *,
    only: Mapping[str, Sequence[str]],
    options: RunOptions = DEFAULTS,
    command: str = "",
) -> Ending:
    """Do what is missing of several tables as one campaign, so that models alike train in one stack; each table then
    finds its own done. `only` names columns, by table. The time stands in the record of each table."""
    start = time.monotonic()
    planned = {one.folder: plan_suite(one, only.get(one.name, ()), out).campaign for one in suites}
    parts = [one.resolved for one in planned.values()]
    if len({part.keep_weights for part in parts}) > 1:
        keeping, dropping = ([n for n, p in planned.items() if p.keep_weights is keep] for keep in (True, False))
        raise UserError(
            f"--together: weights are kept of {listed(keeping)}, but not of {listed(dropping)}: give two commands"
        )
    games = [
        replace(game, value=f"{name}: {game.value}") for name, one in planned.items() for game in one.resolved.games
    ]
    for name, campaign in planned.items():
        remember_games(out, name, campaign)
    folder = table_folder(out, TOGETHER)
    ending, _ = play(Campaign.plan(_joined(games, parts, "table")), folder, options, wants_result=False)
    played = {game.value: game for game in Campaign.read(folder).resolved.games}
    for name, campaign in planned.items():
        chosen = [replace(played[f"{name}: {game.value}"], value=game.value) for game in campaign.resolved.games]
        remember_games(out, name, Campaign.plan(replace(campaign.resolved, games=chosen)))
        add_invocation(folder, name, command, options, start, ending.n_run)
    return ending


def play_single(
    name: str, raw: Raw, scale: str, out: Path, *, frontier: int = 0, options: RunOptions = DEFAULTS, command: str = ""
) -> Invoked:
    """Do what is missing of a game on images that is no table of the paper; `OUT/NAME` has its result and report."""
    start = time.monotonic()
    column = TableColumn("all", raw, frontier=frontier)
    campaign = plan_suite(Suite(name, "", "", (column,), "quality", scale, ()), out=out).campaign
    remember_games(out, name, campaign)
    folder = table_folder(out, name)
    ending, result = play(campaign, folder, options)
    campaign = _as_played(campaign, folder)
    remember_games(out, name, campaign)
    invocations = add_invocation(folder, name, command, options, start, ending.n_run)
    if result is not None:
        folder.write_text(folder.report, render_report(result))
    return Invoked(ending, campaign, folder, result, invocations)


def _settle(suite: Suite, column: TableColumn, out: Path | None) -> tuple[TableColumn, Resolved] | str:
    """The column or what stands in for it, resolved; or why neither can be played here."""
    try:
        refuse_download(column.raw["data"]["name"])
        source = f"{suite.name} {column.label}"
        if column.frontier:
            return column, resolve_frontier(column.raw, source, [], column.frontier)
        return column, resolve(column.raw, source)
    except UserError as error:
        known = None if out is None else remembered(out, suite.folder, column)
        if known is not None:
            return column, known
        instead = "" if column.instead is None else _settle(suite, column.instead, out)
        return instead or str(error)


def _as_played(campaign: Campaign, folder: RunFolder) -> Campaign:
    """With the strengths that were chosen in it."""
    return Campaign.plan(replace(campaign.resolved, games=Campaign.read(folder).resolved.games))


def _joined(games: list[Game], parts: Sequence[Resolved], sweep_key: str | None) -> Resolved:
    """One campaign of games that were resolved apart; each has its label for a value."""
    datasets = {digest: data for part in parts for digest, data in part.sources.datasets.items()}
    keep = all(part.keep_weights for part in parts)
    return Resolved(games, sweep_key, keep, Sources(datasets), parts[0].environment)


def _finished_before(suite: Suite, column: TableColumn, out: Path | None) -> tuple[TableColumn, Graph] | None:
    """The column, or what stood in for it, where an earlier invocation finished it."""
    known = None if out is None else remembered(out, suite.folder, column)
    if known is not None:
        return column, build_graph(replace(known.games[0], value=column.label))
    return None if column.instead is None else _finished_before(suite, column.instead, out)


def _shown(suite: Suite, planned: Planned, folder: RunFolder, *, out_of_time: bool) -> list[tuple[TableColumn, Graph]]:
    """The columns that have a result, in the order of the table: so it grows over several invocations."""
    state = folder.open_ledger().state
    here = list(zip(planned.columns, planned.campaign.graphs, strict=True))
    if out_of_time:
        here = [
            (column, graph) for column, graph in here if not is_open(graph.game) and not jobs_to_do(graph.jobs, state)
        ]
    order = [column.label for column in suite.columns]
    return sorted([*planned.before, *here], key=lambda item: order.index(item[0].label))


def _result(graphs: Sequence[Graph], resolved: Resolved, folder: RunFolder) -> Result | None:
    if not graphs:
        return None
    return assemble(graphs, folder, sweep_key=resolved.sweep_key, environment=resolved.environment)


def _write(folder: RunFolder, name: str, comparison: TableComparison, result: Result | None) -> None:
    if result is not None:
        folder.write_text(folder.result, result.to_json())
        folder.write_text(folder.report, render_report(result))
    folder.write_text(folder.path / name / FILE, comparison.to_json())
    folder.write_text(folder.path / name / "table.txt", text_table(comparison) + "\n")


def table_folder(out: Path, name: str) -> RunFolder:
    """The shared store, with the run file and the result of one table."""
    folder = RunFolder(out)
    folder.run_file, folder.result = out / name / "run.json", out / name / "result.json"
    folder.report = out / name / "report.html"
    return folder


def remember_games(out: Path, name: str, campaign: Campaign) -> None:
    """Add a table's games to those of the folder; a column that was planned before is replaced.

    `export` packs the signals of the games in DIR/run.json, so all tables must be in it.
    """
    folder = RunFolder(out)
    folder.create()
    before = folder.read_run()["games"] if folder.run_file.exists() else []
    run = campaign.to_json()
    ours = {f"{name}: {game['value']}": game for game in run["games"]}
    kept = [game for game in before if game.get("value") not in ours]
    games = [*kept, *({**game, "value": label} for label, game in ours.items())]
    folder.write_run({**run, "games": games, "sweep": "table"})


def add_invocation(
    folder: RunFolder, name: str, command: str, options: RunOptions, start: float, n_jobs: int
) -> list[Invocation]:
    """All invocations of a table, this one last, which began at `start` of the monotonic clock; one that found nothing
    to do is not kept beside those that did."""
    path = folder.path / name / "invocations.jsonl"
    before = read_invocations(path)
    if before and n_jobs == 0:
        return before
    wall_s, device = time.monotonic() - start, folder.read_run()["environment"]["device"]
    began = round(time.time() - wall_s, 1)
    every = [*before, Invocation(command, commit(), device, round(wall_s, 1), n_jobs, began, _where(options))]
    folder.write_text(path, "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in every))
    return every


def _where(options: RunOptions) -> str | None:
    """Which devices of this machine do the work; None where they are not this machine's."""
    from forgetgauge.learn.device import choose_devices, identity

    executor = options.load_executor()
    if hasattr(executor, "chosen_device"):
        return None
    chosen = choose_devices(options.device)
    return identity(*(chosen[:1] if getattr(executor, "in_this_process", False) else chosen))


def read_invocations(path: Path) -> list[Invocation]:
    """The invocations that a table's file has on record."""
    if not path.exists():
        return []
    try:
        return [Invocation(**parse_json(line)) for line in path.read_bytes().splitlines()]
    except (ValueError, TypeError, OSError) as error:
        raise UserError(f"{path}: damaged: {error}") from None


def remembered(out: Path, name: str, column: TableColumn) -> Resolved | None:
    """The column's game as another machine resolved it, where all its signals and decisions are in the folder."""
    folder = RunFolder(out)
    if not folder.run_file.exists():
        return None
    run = folder.read_run()
    records = [record for record in run["games"] if record.get("value") == f"{name}: {column.label}"]
    for game in map(game_from_json, records):
        if (
            is_of(game, column)
            and not is_open(game)
            and not jobs_to_do(build_graph(game).jobs, folder.open_ledger().state)
        ):
            return Resolved([game], None, True, Sources({game.data_digest: game.data}), run["environment"])
    return None
