"""Several results set against each other: whether their games are one game, and what differs on the pairs they share.

Q is of a game: of the data, of how much of it is forgotten and retained, of who may attack. Where one of these differs,
a difference of two numbers says nothing about methods. Where even the splits are the same, what a split does to both
cancels in the difference, as it does for two methods of one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.comparison import compare
from forgetgauge.results.decisions import unpack_decisions
from forgetgauge.results.record import GameResult, Result, is_run
from forgetgauge.wording import setting

DRAWN_BY = ("data_digest", "n_points", "seed", "fraction", "alpha", "by", "oracle", "hardest")
"""What the swap pairs of a run depend on."""


@dataclass(frozen=True)
class SharedDifference:
    """One method in two results, on the pairs that both have played."""

    method: str
    first: str
    """The name of one result."""
    second: str
    value: Any
    """The value of the sweep; None without one."""
    difference: float
    """Q in the second result minus Q in the first (plug-in)."""
    interval: tuple[float, float]
    """Paired, on its own, for the difference of the true qualities."""
    n_pairs: int
    better: str | None
    """The result in which it is better, where the interval says so."""
    is_same: bool = False
    """Whether every adversary has the same advantage in both, on every pair, as where the models are the same ones."""

    @property
    def outcome(self) -> str:
        """What to make of it."""
        return self.better or ("the same in both" if self.is_same else "not settled")


def reasons_against(results: Sequence[tuple[str, Result]]) -> list[str]:
    """Why the numbers of these results cannot be compared, one line each; none where their games are one."""
    return differing({name: _game(result) for name, result in results})


def differing(each: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What is not the same in all of them, by name of a result, one line each."""
    lines = []
    for key in dict.fromkeys(key for choices in each.values() for key in choices):
        values = {name: choices.get(key, "not stated") for name, choices in each.items()}
        if len(set(values.values())) > 1:
            lines.append(f"not the same {key}: " + "; ".join(f"{name} {value}" for name, value in values.items()))
    return lines


def _game(result: Result) -> dict[str, str]:
    """What Q is a property of, beside the method and the model."""
    specs = [game.spec for game in result.games]
    first = specs[0]
    what = f"{first.get('by', 'point')}s"
    adversaries = {name: how for spec in specs for name, how in spec.get("adversaries", {}).items()}
    picked: dict[str, Any] = {
        "kind of test": "a run" if is_run(first) else "an audit",
        "data": result.digests.get("data", "")[:12] if is_run(first) else None,
        "draw": _drawn(first),
        f"retained {what}": first.get("n_retain"),
        f"forgotten {what}": first.get("n_forget"),
        "sensitivity": _sensitivity(first),
        "adversaries": ", ".join(sorted(adversaries)),
        "settings of adversaries": "; ".join(_settings(name, adversaries[name]) for name in sorted(adversaries)),
        "level": first.get("level"),
        "sweep": None if result.sweep is None else f"{result.sweep} = {setting([g.value for g in result.games])}",
    }
    return {key: setting(value) for key, value in picked.items() if value not in (None, "")}


def _drawn(spec: Mapping[str, Any]) -> str:
    """`points`, `groups, shown whole`, `points of the hardest 0.1`."""
    shown = ", shown whole" if spec.get("oracle") == "group" else ""
    share = spec.get("hardest", 1)
    return f"{spec.get('by', 'point')}s{shown}" + (f" of the hardest {setting(share)}" if share < 1 else "")


def _sensitivity(spec: Mapping[str, Any]) -> str | None:
    how = spec.get("sensitivity", {})
    return None if not is_run(spec) and how.get("kind") == "file" else setting(how)


def _settings(name: str, how: Any) -> str:
    chosen = how.get("adversary", {}) if isinstance(how, Mapping) else {}
    return f"{name} {setting(chosen.get('params', {}))} {chosen.get('code', '')[:12]}".strip()


def shared_differences(results: Sequence[tuple[str, Result]]) -> list[SharedDifference]:
    """Of every method that two results have, game by game, where they share pairs and carry their decisions."""
    found = []
    for (first, one), (second, other) in combinations(results, 2):
        for game, again in _same_games(one, other):
            before, after = _outcomes(game), _outcomes(again)
            order = [_adversaries(again).index(name) for name in _adversaries(game)]
            for method in (name for name in before if name in after):
                pairs = _pairs(before[method], after[method], order)
                if pairs:
                    level = float(game.spec.get("level", 0.95))
                    difference = compare([late for _, late in pairs], [early for early, _ in pairs], level)
                    better = {(True, False): second, (False, True): first}.get(
                        (difference.first_is_better, difference.second_is_better)
                    )
                    ends = difference.interval.low, difference.interval.high
                    is_same = all(np.array_equal(early.advantage, late.advantage) for early, late in pairs)
                    found.append(
                        SharedDifference(
                            method, first, second, game.value, difference.difference, ends, len(pairs), better, is_same
                        )
                    )
    return found


def _same_games(one: Result, other: Result) -> list[tuple[GameResult, GameResult]]:
    """The games of both results whose pairs were drawn alike, of the same points."""
    both = zip(one.games, other.games, strict=False)
    return [
        (game, again)
        for game, again in both
        if is_run(game.spec)
        and all(game.spec.get(key) == again.spec.get(key) for key in DRAWN_BY)
        and sorted(_adversaries(game)) == sorted(_adversaries(again))
    ]


def _adversaries(game: GameResult) -> list[str]:
    return [] if game.decisions is None else game.decisions.adversaries


def _outcomes(game: GameResult) -> Mapping[str, Mapping[Any, PairOutcome]]:
    return {} if game.decisions is None else unpack_decisions(game.decisions)


def _pairs(
    one: Mapping[Any, PairOutcome], other: Mapping[Any, PairOutcome], order: Sequence[int]
) -> list[tuple[PairOutcome, PairOutcome]]:
    """(of one, of the other) of the pairs that both have; the other's adversaries in the order of the one's."""
    return [
        (mine, replace(other[pair], differences=other[pair].differences[:, list(order)]))
        for pair, mine in one.items()
        if pair in other
        and np.array_equal(mine.in_forget, other[pair].in_forget)
        and np.array_equal(mine.weight, other[pair].weight)
    ]
