"""Shared by the tests of the suites: the command line in this process, and results made by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.results.record import (
    AdversaryResult,
    ComparisonResult,
    GameResult,
    MethodResult,
    MetricResult,
    Result,
    TuningResult,
)
from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.findings import Findings, Stored, advantages_of, read_findings
from forgetgauge.suites.strengths import PUBLISHED
from forgetgauge.suites.strengths import TUNED as TUNED_METHODS
from forgetgauge.suites.tables import suite


def method(
    quality: float | None, interval: tuple[float, float] | None, by_pair: list[float] | None = None, **fields
) -> MethodResult:
    empty = dict.fromkeys(("chosen_on", "interval_basis", "epsilon", "adversary", "p_value", "noise_floor"))
    if by_pair is None:
        by_pair = [] if quality is None else [1 - quality] * 6
    attacks = {"shadow": AdversaryResult(by_pair[0], (0.0, 1.0), by_pair)} if by_pair else {}
    rest = {"by_adversary": attacks, "n_pairs": 6, "utility": {"unseen": 0.5, "test": 0.6}, "n_gradients": 1.0}
    return MethodResult(
        quality=quality, quality_plugin=quality, interval=interval, seconds=1.0, **{**empty, **rest, **fields}
    )


def metric(value: float, interval: tuple[float, float]) -> MetricResult:
    return MetricResult(value, interval, [value] * 6)


def result_of(columns: dict[str, dict[str, MethodResult]]) -> Result:
    games = [
        GameResult(label, {"level": 0.95}, methods, None, [], None, "over pairs") for label, methods in columns.items()
    ]
    return Result({"device": "cpu"}, {"decisions": "0"}, games, sweep="η", total_seconds=12.0)


TUNED = TuningResult("lr", 0.1, 0.01, True, "untreated", 4, [])
SIX = ("neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")
UP = dict(zip(SIX, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7), strict=True))
DOWN = dict(zip(SIX, reversed(UP.values()), strict=True))


def played(
    table: str,
    columns: dict[str, dict[str, float]],
    *,
    half: float = 0.01,
    noise: float = 0.0,
    scale: str = "paper",
    published: bool = False,
    by_price: bool = True,
    better: dict[tuple[str, str, str], str | None] | None = None,
    damaged: dict[str, list[str]] | None = None,
) -> Stored:
    """A table with these Q, each with an interval of ± half, whose pairs scatter by `noise`.

    By price, the same numbers stand in the rows of published settings too. Of each two methods the one with the higher
    Q is better, unless `better` says otherwise; `damaged` names rows whose models lost accuracy.
    """
    made = suite(table, scale, published=published)
    rng = np.random.default_rng(0)
    methods: dict[str, dict[str, MethodResult]] = {}
    for place, (label, column) in enumerate(columns.items()):
        rows = dict(column)
        if by_price and not published:
            rows |= {PUBLISHED[m]: q for m, q in column.items() if m in PUBLISHED}
        methods[label] = {
            row: method(
                q,
                (q - half, q + half),
                by_pair=(1 - q + 1e-9 * place + noise * rng.standard_normal(6)).tolist(),  # no two columns are one game
                tuning=TUNED if by_price and not published and row in TUNED_METHODS else None,
                utility={"unseen": 0.5, "test": 0.4 if row in (damaged or {}).get(label, ()) else 0.6},
                metrics={"ic": metric(q, (q - half, q + half)), "mia": metric(q, (q - half, q + half))},
            )
            for row, q in rows.items()
        }
    games = []
    for game in result_of(methods).games:
        pairs = []
        for one, other in combinations(game.methods, 2):
            gap = game.methods[one].quality - game.methods[other].quality
            won = one if gap > 0 else other if gap < 0 else None
            won = (better or {}).get((game.value, one, other), won)
            pairs.append(ComparisonResult(one, other, gap, (gap - half, gap + half) if won else (-1.0, 1.0), won))
        games.append(replace(game, comparisons=pairs, spec={**game.spec, "price": {"price": 0.01, "rule": PRICE_RULE}}))
    result = replace(result_of(methods), games=games)
    run = [column for column in made.columns if column.label in columns]
    not_run = {column.label: "not asked for" for column in made.columns if column.label not in columns}
    return Stored(
        compare_suite(made, run, result, not_run, []),
        {game.value: advantages_of(game) for game in games},
        {game.value: game for game in games},
    )


def at_sizes(*columns: dict[str, float]) -> dict[str, dict[str, float]]:
    """All four η of Table 1."""
    return dict(zip(("0.1", "0.4", "0.8", "1.0"), columns, strict=True))


def by_budget(*values: float, retrain: float = 0.99) -> dict[str, dict[str, float]]:
    """All four ε of Table 3, with one Q for every method but Retrain."""
    budgets = zip(("50", "150", "600", "inf"), values, strict=True)
    return {label: {**dict.fromkeys((*SIX, "none"), q), "retrain": retrain} for label, q in budgets}


def findings(tmp_path: Path, *tables: Stored) -> Findings:
    """What a folder with these tables and nothing else holds."""
    stored = {(one.comparison.name, one.comparison.scale): one for one in tables}
    return replace(read_findings(tmp_path), stored=stored, also=[one for one in tables if one not in stored.values()])
