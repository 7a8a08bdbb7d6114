"""A table that is finished column by column: what an invocation left joins what is kept of the table already.

A column is kept where it is still what the table asks for, methods, strengths and all, so that old settings never stand
beside new ones. One that another table of the scale has is taken from there: α = 0.1 of Table 2 is η = 1.0 of Table 1.
Of the same column in two places the one with more completed pairs counts. A game carries along how it was made, so that
what is said of all games, and how long they took, is always that of the columns that are there.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forgetgauge.errors import UserError
from forgetgauge.files import write_into
from forgetgauge.plan.game import Game, game_from_json
from forgetgauge.results.made import MadeResult, StackResult
from forgetgauge.results.record import GameResult, Result, lacks_pairs, read_result, role_of
from forgetgauge.results.verified import refuse_differing
from forgetgauge.suites.availability import is_of
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.invocation import NOT_ASKED, read_invocations
from forgetgauge.suites.paper import in_column, table_name
from forgetgauge.suites.records import FILE, TableComparison, read_comparison
from forgetgauge.suites.tables import OUTLINES, Suite, TableColumn, folder_of

RESULT, INVOCATIONS = "result.json", "invocations.jsonl"
OTHER_SETTINGS = "what there is of it has other settings"
_FIELDS = {field.name for field in dataclasses.fields(Game)}


@dataclass(frozen=True)
class Finished:
    """A finished column of a table."""

    column: TableColumn
    """Or what stands in for it."""
    game: GameResult
    made: MadeResult

    @property
    def n_pairs(self) -> int:
        """Swap pairs that were completed, of all methods together."""
        return sum(method.n_pairs for method in self.game.methods.values())

    @property
    def is_judged(self) -> bool:
        """Whether any method has a Q; Retrain and None count only where there is no other."""
        tested = [method for name, method in self.game.methods.items() if role_of(self.game, name) == "tested"]
        return any(method.quality is not None for method in tested or self.game.methods.values())


Columns = dict[str, Finished]
"""By label."""


def keep_table(
    made: Suite, source: Path, target: Path, tell: Callable[[str], None] = lambda _: None
) -> TableComparison:
    """Put what an invocation left in `source` beside what `target` and the tables next to it have, and write it there.

    What is kept stays as it is where no column is finished, and where it is damaged, which is a UserError. `tell` hears
    what is not kept.
    """
    comparison = read_comparison(source / FILE)
    new = read_result(source / RESULT) if (source / RESULT).exists() else None
    if new is None or new.digests != comparison.digests:  # of an earlier invocation, perhaps by other settings
        tell(f"{made.name}: no column is finished; what is kept stays as it is")
        return comparison
    before = _kept(made, target, _stored(made, target))
    columns = _chosen(made, new, before, tell)
    if all(columns.get(str(game.value)) is before.get(str(game.value)) for game in new.games):
        return comparison
    return _written(made, columns, before, target, comparison, new.games)


def take_from_others(made: Suite, target: Path) -> bool:
    """Write a table with the columns that only the tables next to it have; whether there are any."""
    own = _stored(made, target)
    before = _kept(made, target, own)
    if before.keys() <= own.keys():
        return False
    _written(made, _in_order(made, before), before, target)
    return True


def _written(
    made: Suite,
    columns: Columns,
    before: Columns,
    target: Path,
    now: TableComparison | None = None,
    games: Sequence[GameResult] = (),
) -> TableComparison:
    """The table of these columns, written to `target`, where those of `before` were kept; `now` and `games` are of the
    invocation that played, if one did."""
    is_before = any(one is before.get(label) and not one.made.taken_from for label, one in columns.items())
    earlier = read_invocations(target / INVOCATIONS) if is_before else []
    invocations = list(dict.fromkeys([*earlier, *(now.invocations if now else [])]))
    missing = [column.label for column in made.columns if column.label not in columns]
    why = now.not_run if now else {}
    stored = read_result(target / RESULT).games if (target / RESULT).exists() else []
    others = {str(game.value) for game in (*stored, *games)}
    not_run = {label: OTHER_SETTINGS if label in others else why.get(label, NOT_ASKED) for label in missing}
    result = _joined(made, list(columns.values()))
    joined = compare_suite(made, [one.column for one in columns.values()], result, not_run, invocations)
    written = {
        INVOCATIONS: "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in invocations),
        FILE: joined.to_json(),
        RESULT: result.to_json(),  # last: until it is there, the two do not fit, and the page says so
    }
    for name, content in written.items():
        write_into(target / name, content)
    return joined


def _chosen(made: Suite, new: Result, before: Columns, tell: Callable[[str], None]) -> Columns:
    """What was played now, else what was kept before, in the order of the table; never fewer pairs for more."""
    columns = {**before, **_columns_of(made, new)}
    for label in (str(game.value) for game in new.games):
        name, now, then = f"{made.name}: {in_column(made.variable, label)}", columns.get(label), before.get(label)
        if now is then:
            tell(f"{name} is not kept: it was played by other settings than the table has today")
        elif now and then and then.n_pairs > now.n_pairs:
            columns[label] = then
            tell(
                f"{name} stays as it was kept, with {then.n_pairs} completed pairs of all methods; what was played now "
                f"has {now.n_pairs}"
            )
    return _in_order(made, columns)


def _in_order(made: Suite, columns: Columns) -> Columns:
    return {column.label: columns[column.label] for column in made.columns if column.label in columns}


def missing_columns(made: Suite, target: Path) -> list[str]:
    """The columns of a table, as it is played today, of which neither `target` nor the tables next to it have a Q."""
    kept = _kept(made, target, _stored(made, target))
    return [c.label for c in made.columns if c.label not in kept or not kept[c.label].is_judged]


def _kept(made: Suite, target: Path, own: Columns) -> Columns:
    """What is kept of a table: what was played for it, then for others; last, copies whose original is gone. `own` is
    what its own folder has."""
    names = [folder_of(name, made.replicates, published=made.published) for name in OUTLINES]
    others = [_stored(made, target.with_name(name), taken_from=name) for name in names if name != made.folder]
    played, copies = (
        {k: one for k, one in own.items() if bool(one.made.taken_from) is is_copy} for is_copy in (False, True)
    )
    found: Columns = {}
    for columns in (played, *others, copies):
        found |= {k: one for k, one in columns.items() if k not in found or one.n_pairs > found[k].n_pairs}
    return found


def _stored(made: Suite, folder: Path, taken_from: str = "") -> Columns:
    """The columns that a kept result has of a table as it is played today, if it says what its decisions say."""
    path = folder / RESULT
    if not path.exists():
        return {}
    try:
        result = read_result(path)
        found = _columns_of(made, result, taken_from)
        refuse_differing(path, replace(result, games=[one.game for one in found.values()]))
    except UserError:  # of another version, or damaged
        if not taken_from:  # it would be written over
            raise
        return {}
    return found


def _columns_of(made: Suite, result: Result, taken_from: str = "") -> Columns:
    """The columns of a table that a result has."""
    every = ((c.label, _finished(made, c, result, game, taken_from)) for c in made.columns for game in result.games)
    return {label: one for label, one in every if one is not None}


def _finished(made: Suite, column: TableColumn, result: Result, game: GameResult, taken_from: str) -> Finished | None:
    """The column, where the game is its own, or another table's that is the same and no copy in its turn."""
    if taken_from:
        may_be = not column.method and not (game.made and game.made.taken_from)
    else:
        may_be = str(game.value) == column.label
    meant = _meant(column, game) if may_be and game.decisions is not None else None
    if meant is None:
        return None
    how = _made_of(result, game, taken_from)
    if how.taken_from:
        table = table_name(how.taken_from)
        taken = f"{in_column(made.variable, column.label)} is taken from {table}, which counts its time."
        meant = replace(meant, note=f"{meant.note} {taken}".strip())
    spec = {**game.spec, "value": column.label}
    return Finished(meant, replace(game, value=column.label, spec=spec, made=how), how)


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


def _made_of(result: Result, game: GameResult, taken_from: str) -> MadeResult:
    """How a game was made. One that does not say so was made as its whole result was; what failed there is not of a
    game that lacks no pair."""
    made = game.made
    if made is None:
        is_whole = len(result.games) > 1 and not any(lacks_pairs(game, method) for method in game.methods.values())
        failures = [] if is_whole else result.failures
        made = MadeResult(result.digests, failures, result.stacks, result.total_seconds)
    return replace(made, environment=made.environment or result.environment, taken_from=made.taken_from or taken_from)


def _joined(suite: Suite, columns: Sequence[Finished]) -> Result:
    """One result of all; time and models are of those that were played for this table, each run once."""
    every = [one.made for one in columns]
    own = list({one.digests["decisions"]: one for one in every if not one.taken_from}.values())
    return Result(
        environment=_each([one.environment for one in every], " and "),
        digests=_each([one.digests for one in every], "+"),
        games=[one.game for one in columns],
        failures=list(dict.fromkeys(failure for one in every for failure in one.failures)),
        stacks=_added(own),
        sweep=suite.variable or None,
        total_seconds=round(sum(one.total_seconds for one in own), 3),
    )


def _each(every: Sequence[Mapping[str, str]], between: str) -> dict[str, str]:
    """`80e66d5 and 23a891a` where they differ, each once, though one may be such a list already."""
    names = dict.fromkeys(name for one in every for name in one)
    parts = {name: [part for one in every if name in one for part in one[name].split(between)] for name in names}
    return {name: between.join(dict.fromkeys(found)) for name, found in parts.items()}


def _added(every: Sequence[MadeResult]) -> list[StackResult]:
    """The models made in each way, counted over all."""
    ways: Counter[tuple[str, str, int, str]] = Counter()
    for stack in (stack for one in every for stack in one.stacks):
        ways[stack.kind, stack.engine, stack.width, stack.device] += stack.models
    return [StackResult(*way, models=ways[way]) for way in sorted(ways)]
