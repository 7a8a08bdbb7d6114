"""All that is stored under a results folder, read and checked: what the page is made from, and claims are judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.results.record import GameResult, read_result
from forgetgauge.suites import accuracy, frontier, replicates, searches
from forgetgauge.suites.accuracy import FullData, read_accuracy
from forgetgauge.suites.compare import compared_again
from forgetgauge.suites.device_time import Spent, spent_beside, spent_on_tables
from forgetgauge.suites.evidence import RESTS_ON, Evidence, evidence
from forgetgauge.suites.frontier import Frontiers, read_frontiers, with_table
from forgetgauge.suites.rankings import ByMethod
from forgetgauge.suites.readings import signed_by_pair
from forgetgauge.suites.records import FILE, TableComparison, read_comparison, read_strictly
from forgetgauge.suites.replicates import Replicates, read_replicates
from forgetgauge.suites.searches import SEARCHES, Search, read_search, spent_on_recipes
from forgetgauge.suites.spread import SwapVsRandom
from forgetgauge.suites.strengths import TUNED
from forgetgauge.suites.tables import OUTLINES, SCALES
from forgetgauge.suites.toy import ToyRow, toy

SPLITTING = "swap-vs-random"
RecordT = TypeVar("RecordT")


@dataclass(frozen=True, eq=False)
class Stored:
    """One table at one scale."""

    comparison: TableComparison
    columns: dict[str, ByMethod] = field(default_factory=dict)
    """Label -> signed advantages by pair, from the `result.json` beside it; empty where that is not there."""
    games: dict[str, GameResult] = field(default_factory=dict)
    """Label -> the game of the column, from there too."""
    words: list[str] = field(default_factory=list)
    """Where ours differs and what was tried: the lines of the list in `notes.md` beside it, by whoever ran it."""

    @property
    def by_price(self) -> bool:
        """Whether strengths were chosen in the run, for each column; else they are of one setting in all columns."""
        return any(method.tuning is not None for game in self.games.values() for method in game.methods.values())

    @property
    def is_borrowed(self) -> bool:
        """Whether some strength was not chosen for its column: what columns then differ by may be tuning."""
        played = [(game, name) for game in self.games.values() for name in TUNED if name in game.methods]
        return any(game.methods[name].tuning is None for game, name in played)

    @property
    def strengths(self) -> str:
        """Which of the two sorts its methods have, in words; empty where no method has a strength that is known."""
        is_known = any(name in game.methods for game in self.games.values() for name in TUNED)
        if not is_known or "accuracy" in OUTLINES[self.comparison.name].layout:  # which is of originals
            return ""
        if self.comparison.published:
            return "published settings alone"
        if not self.by_price:
            return "strengths not chosen for each column"
        rules = [(game.spec.get("price") or {}).get("rule", 1) for game in self.games.values()]
        return "strengths by price" + (EARLIER if min(rules) < PRICE_RULE else "")

    @property
    def verifiable(self) -> bool | None:
        """Whether `forgetgauge verify` can compute the result again from its decisions; None where there is none."""
        return all(game.decisions is not None for game in self.games.values()) if self.games else None


@dataclass(frozen=True, eq=False)
class Findings:
    """All there is to show."""

    stored: dict[tuple[str, str], Stored]
    """(table, scale) -> what was found."""
    splittings: list[SwapVsRandom]
    """Swap pairs against random splits: data of the paper first, then by repetitions."""
    frontiers: Frontiers | None
    searches: list[Search]
    replicates: Replicates | None
    accuracy: FullData | None
    toy: list[ToyRow]
    also: list[Stored] = field(default_factory=list)
    """Tables that are stored once more at the same scale: with replicates, or with strengths of another sort."""
    spent: list[Spent] = field(default_factory=list)
    """Device time of everything that is stored."""
    map_path: Path | None = None
    """Where the map of Q against accuracy is kept, beside the curves that it is drawn from."""
    root: Path = Path("results")
    """The folder of it all."""
    evidence: list[Evidence] = field(default_factory=list)
    """Every result that the page rests on, and whether it can be verified."""

    def shown(self, name: str) -> list[Stored]:
        """A table at its largest scale; below it at smaller ones, until one has every column. Smoke is shown alone."""
        scales = [scale for scale in reversed(SCALES) if (name, scale) in self.stored]
        found = [self.stored[name, scale] for scale in scales if scale != "smoke" or scales == ["smoke"]]
        whole = [place for place, stored in enumerate(found) if not stored.comparison.not_run]
        return found[: whole[0] + 1] if whole else found

    def besides(self, name: str) -> list[Stored]:
        """What there is of a table once more."""
        return [stored for stored in self.also if stored.comparison.name == name]

    def fullest(self, name: str) -> Stored | None:
        """What a table is judged by: by price where that is complete, at the largest scale; else at the scale that has
        most of its columns, the larger of equals. None where smoke is all there is."""
        by_price = [one for one in self.every(name) if one.by_price and not one.comparison.not_run]
        found = by_price or [stored for stored in self.shown(name) if stored.comparison.scale != "smoke"]
        return min(found, key=lambda stored: len(stored.comparison.not_run), default=None)

    def every(self, name: str) -> list[Stored]:
        """All there is of a table but smoke, the largest scale first; replicates of splits last."""
        found = [one for one in (*self.stored.values(), *self.also) if one.comparison.name == name]
        found = [one for one in found if one.comparison.scale != "smoke"]
        scales = list(SCALES)
        return sorted(found, key=lambda one: (one.comparison.replicates, -scales.index(one.comparison.scale)))


EARLIER = " (an earlier rule, decision 0043)"
"""Of strengths that were chosen by a rule that has been changed since."""


def read_findings(results: Path) -> Findings:
    """Tables at every scale, of the rest the largest; the toy example is computed now."""
    spreads = _all(results, replicates.FILE, read_replicates)
    splittings = _all(results, f"{SPLITTING}.json", lambda path: read_strictly(path, SwapVsRandom))
    full = _all(results, accuracy.FILE, read_accuracy)
    every = [(read_frontiers(path), path) for path in _all(results, frontier.FILE, Path)]
    curves, drawn_from = max(every, key=lambda one: _size(one[0]), default=(None, Path()))
    found_searches = _all(results, searches.FILE, read_search)
    stored, also = _one_of_each(_all(results, FILE, _read_table))
    return Findings(
        stored=stored,
        splittings=sorted(splittings, key=lambda found: (found.settings["data"] in EMBEDDED, -found.repetitions)),
        frontiers=None if curves is None else _beside_tables(curves, (*stored.values(), *also)),
        map_path=None if curves is None else drawn_from.with_name(frontier.MAP),
        root=results,
        searches=found_searches,
        evidence=evidence(results),
        replicates=max(spreads, key=_weight, default=None),
        accuracy=max(full, key=_size, default=None),
        toy=toy(),
        also=also,
        spent=[
            *spent_on_tables(one.comparison for one in (*stored.values(), *also)),
            *(one for kind in full for one in _spent_on_accuracy(kind)),
            *(one for record, what in RESTS_ON.items() for one in _spent_on(results, record, what)),
            *filter(None, _all(results, searches.RECIPES_FILE, spent_on_recipes)),
            *(Spent(SEARCHES, "", one.device, one.seconds) for one in found_searches if one.seconds is not None),
        ],
    )


def _beside_tables(found: Frontiers, tables: Iterable[Stored]) -> Frontiers:
    """Curves with what Table 1 has of the same originals."""
    for stored in tables:
        if (stored.comparison.name, stored.comparison.scale) == ("table1", found.scale) and stored.by_price:
            for game in stored.games.values():
                found = with_table(found, game)
    return found


def _spent_on(results: Path, name: str, what: str) -> list[Spent]:
    return [one for found in _all(results, name, lambda path: spent_beside(path, what)) for one in found]


def _spent_on_accuracy(found: FullData) -> list[Spent]:
    trained = found.kinds.values()
    return [Spent("accuracy on all images", found.scale, kind.device, kind.wall_s) for kind in trained]


def _one_of_each(found: list[Stored]) -> tuple[dict[tuple[str, str], Stored], list[Stored]]:
    """(Table, scale) -> the one with most columns, of equals with strengths by price, then with all methods, then with
    fewest replicates; and the others."""
    stored: dict[tuple[str, str], Stored] = {}
    also: list[Stored] = []
    for one in sorted(found, key=_place):
        place = one.comparison.name, one.comparison.scale
        if place in stored:
            also.append(one)
        else:
            stored[place] = one
    return stored, also


def _place(one: Stored) -> tuple[int, bool, bool, int]:
    table = one.comparison
    return len(table.not_run), not one.by_price, table.published, table.replicates


EMBEDDED = tuple(name for name, entry in plugins.data.entries.items() if entry.embedded)
"""Data that stand in for the paper's: what they show counts for none of its claims."""


def _weight(found: Replicates) -> tuple[bool, bool, int]:
    """How much a record says: what no claim can be judged by comes last, whatever its size."""
    return found.data not in EMBEDDED, found.n_replicates >= replicates.LEAST, found.n_freedom


def _all(results: Path, name: str, read: Callable[[Path], RecordT]) -> list[RecordT]:
    return [read(path) for path in sorted(results.rglob(name))] if results.is_dir() else []


def _size(found: Frontiers | FullData) -> int:
    return list(SCALES).index(found.scale)


def _read_table(path: Path) -> Stored:
    comparison, beside, notes = read_comparison(path), path.with_name("result.json"), path.with_name("notes.md")
    words = read_notes(notes) if notes.exists() else []
    result = read_result(beside) if beside.exists() else None
    if result is None or result.digests != comparison.digests:  # of another invocation
        return Stored(comparison, words=words)
    games = {str(game.value): game for game in result.games}
    columns = {label: advantages_of(game) for label, game in games.items()}
    return Stored(compared_again(comparison, result), columns, games, words)


def read_notes(path: Path) -> list[str]:
    """The bullets of a Markdown file, each as one line, however it is wrapped."""
    try:
        text = path.read_text(encoding="utf-8")
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    bullets: list[str] = []
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("- "):
            bullets.append(line[2:].strip())
            inside = True
        elif inside and line and not line.startswith("#"):
            bullets[-1] += f" {line}"
        else:
            inside = False
    return bullets


def advantages_of(game: GameResult) -> ByMethod:
    """Method -> (pairs, adversaries), for methods with a completed pair."""
    return {name: signed_by_pair(method) for name, method in game.methods.items() if method.by_adversary}
