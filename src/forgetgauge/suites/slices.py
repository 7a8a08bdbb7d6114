"""A table that is finished column by column: what an invocation left joins what is stored of the table already.

A stored column stays where it is still what the table asks for, methods, strengths and all, so that old settings never
stand beside new ones. A column that another table of the scale has is taken from there: α = 0.1 of Table 2 is η = 1.0
of Table 1.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forgetgauge.errors import UserError
from forgetgauge.files import write_whole, writing
from forgetgauge.plan.game import Game, game_from_json
from forgetgauge.results.record import GameResult, Result, StackResult, read_result
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.invocation import NOT_ASKED, is_of, read_invocations
from forgetgauge.suites.paper import in_column, table_name
from forgetgauge.suites.records import FILE, TableComparison, read_comparison
from forgetgauge.suites.tables import Suite, TableColumn

RESULT, INVOCATIONS = "result.json", "invocations.jsonl"
OTHER_SETTINGS = "what was kept of it had other settings"
_FIELDS = {field.name for field in dataclasses.fields(Game)}


@dataclass(frozen=True)
class Slice:
    """Columns of a table that one result has."""

    result: Result
    columns: dict[str, tuple[TableColumn, GameResult]]
    """Label -> the column, or what stands in for it, and its game."""
    is_own: bool
    """Whether the result is the table's own."""
    is_whole: bool
    """Whether it has nothing else: then its time and its stacks are the table's too."""


def keep_table(made: Suite, source: Path, target: Path) -> TableComparison:
    """Put what an invocation left in `source` beside what `target` and the tables next to it have, and write it there.

    `source` has a result where any column is finished; without one what is stored stays as it is. So does a stored
    result that cannot be read: UserError says what is wrong with it.
    """
    comparison = read_comparison(source / FILE)
    if not (source / RESULT).exists():
        return comparison
    new = read_result(source / RESULT)
    if _has_joined(new, target):
        return read_comparison(target / FILE)
    kept = _kept(made, target, without={str(game.value) for game in new.games})
    result, columns = _joined(made, new, kept)
    is_own = any(one.is_own for one in kept)
    before = read_invocations(target / INVOCATIONS) if is_own else []
    invocations = list(dict.fromkeys([*before, *comparison.invocations]))
    missing = [label for label in (column.label for column in made.columns) if label not in columns]
    not_run = {label: comparison.not_run.get(label, NOT_ASKED) for label in missing}
    stored = read_result(target / RESULT).games if (target / RESULT).exists() else []
    not_run |= {str(game.value): OTHER_SETTINGS for game in stored if str(game.value) in missing}
    joined = compare_suite(made, list(columns.values()), result, not_run, invocations)
    written = {
        RESULT: result.to_json(),
        FILE: joined.to_json(),
        INVOCATIONS: "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in invocations),
    }
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
    for name, content in written.items():
        write_whole(target / name, content)
    return joined


def missing_columns(made: Suite, target: Path) -> list[str]:
    """The columns of a table, as it is played today, that neither `target` nor the tables next to it have."""
    kept = {label for one in _kept(made, target, without=set()) for label in one.columns}
    return [column.label for column in made.columns if column.label not in kept]


def _kept(made: Suite, target: Path, without: set[str]) -> list[Slice]:
    """What is stored of a table's other columns: its own first."""
    found: list[Slice] = []
    paths = [path for path in sorted(target.parent.glob(f"*/{RESULT}")) if path.parent != target]
    for path in [target / RESULT, *paths]:
        one = _stored(made, path, without=without.union(*(other.columns for other in found)))
        found += [one] if one else []
    return found


def _has_joined(new: Result, target: Path) -> bool:
    """Whether the table has this very result already, alone or with others."""
    if not ((target / RESULT).exists() and (target / FILE).exists()):
        return False
    return new.digests["decisions"] in read_result(target / RESULT).digests["decisions"].split("+")


def _stored(made: Suite, path: Path, without: set[str]) -> Slice | None:
    """The columns that a stored result has of a table as it is played today; None where it has none."""
    is_own = path.parent.name == made.folder
    try:
        result = read_result(path) if path.exists() else None
    except UserError:  # of another version, or damaged
        if is_own:  # it would be written over
            raise
        return None
    found: dict[str, tuple[TableColumn, GameResult]] = {}
    for game in [] if result is None or made.columns[0].method else result.games:
        for column in made.columns:
            meant = _meant(column, game)
            if meant is not None and column.label not in {*found, *without} and game.decisions is not None:
                found[column.label] = _from(path, meant, made), replace(game, value=column.label)
    if result is None or not found:
        return None
    return Slice(result, found, is_own, is_own and len(found) == len(result.games))


def _meant(column: TableColumn, game: GameResult) -> TableColumn | None:
    """The column, or what stands in for it, whose game it is; None where it is neither's."""
    try:
        spec = {name: value for name, value in game.spec.items() if name in _FIELDS}  # it has sizes too
        same = is_of(game_from_json(spec), column)
    except (KeyError, TypeError, ValueError, AttributeError):  # a spec of another version
        return None
    if same:
        return column
    return None if column.instead is None else _meant(column.instead, game)


def _from(path: Path, column: TableColumn, made: Suite) -> TableColumn:
    """With a word on the table that a column is taken from."""
    name = path.parent.name
    if name == made.folder:
        return column
    taken = f"{in_column(made.variable, column.label)} is taken from {table_name(name)}, which counts its time."
    return replace(column, note=f"{column.note} {taken}".strip())


def _joined(made: Suite, new: Result, others: Sequence[Slice]) -> tuple[Result, dict[str, TableColumn]]:
    """One result of all, in the order of the table, and the columns it has."""
    games = {str(game.value): game for game in new.games}
    columns = {label: _of_new(column, games[label]) for label, column in _labelled(made) if label in games}
    for one in others:
        games |= {label: game for label, (_, game) in one.columns.items()}
        columns |= {label: column for label, (column, _) in one.columns.items()}
    order = [label for label, _ in _labelled(made) if label in games]
    results = [new, *(one.result for one in others)]
    whole = [new, *(one.result for one in others if one.is_whole)]
    result = replace(
        new,
        environment=_either([one.environment for one in results]),
        digests={
            what: "+".join(dict.fromkeys(part for one in results for part in one.digests[what].split("+")))
            for what in new.digests
        },
        games=[games[label] for label in order],
        failures=list(dict.fromkeys(failure for one in results for failure in one.failures)),
        stacks=_added(whole),
        total_seconds=round(sum(one.total_seconds for one in whole), 3),
    )
    return result, {label: columns[label] for label in order}


def _labelled(made: Suite) -> Iterator[tuple[str, TableColumn]]:
    return ((column.label, column) for column in made.columns)


def _of_new(column: TableColumn, game: GameResult) -> TableColumn:
    """The column that was just played: itself, or what stood in for it."""
    return _meant(column, game) or column


def _either(environments: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """`80e66d5 and 23a891a`, the newest first, where they differ."""
    names = dict.fromkeys(name for one in environments for name in one)
    return {name: " and ".join(dict.fromkeys(one[name] for one in environments if name in one)) for name in names}


def _added(results: Sequence[Result]) -> list[StackResult]:
    """The models made in each way, counted over all."""
    ways: Counter[tuple[str, str, int, str]] = Counter()
    for stack in (stack for one in results for stack in one.stacks):
        ways[stack.kind, stack.engine, stack.width, stack.device] += stack.models
    return [StackResult(*way, models=ways[way]) for way in sorted(ways)]
