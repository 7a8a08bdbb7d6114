"""Certified removal: whether the advantage falls with its ε, and whether the models at hand could show that at all."""

from __future__ import annotations

import math
from dataclasses import replace

from forgetgauge.suites.findings import Stored
from forgetgauge.suites.level_claims import Trend, trend_of
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.tables import suite
from forgetgauge.suites.verdicts import (
    MISSING,
    SAME_MODELS,
    Claim,
    Verdict,
    incomplete,
    interval_of,
    reasons,
    source_of,
)
from forgetgauge.wording import bracket, listed, plain


def removal_claim(stored: Stored | None) -> Claim:
    """The advantage against certified removal falls with its ε."""
    statement = (
        "The advantage is smaller the smaller the ε of certified removal is",
        "the Advantage monotonically decreases as ε decreases",
        "the advantage at the smallest ε is below that at the largest, beyond both intervals, and none rises beyond "
        "them from one ε to the next smaller",
    )
    if stored is None:
        return Claim(*statement, "not run")
    table = stored.comparison
    trend = trend_of(table, [label for label in table.columns if label != "Retrain"])
    cells = [table.rows["advantage"][label] for label in trend.columns]
    values = [f"{plain(c.ours.value)} {bracket(c.ours.interval)}" for c in cells if c.ours and c.ours.interval]
    verdict: Verdict = "not confirmed" if trend.rising else "confirmed" if trend.all_fall else "undecided"
    alike, retrained = same_models(stored)
    figure = f"{', '.join(values)}{incomplete(trend.missing)}"
    figure += f"; the models at ε = {listed(alike)} are the same" if alike else ""
    figure += f"; at ε = {listed(retrained)} every one is retrained" if alike and retrained else ""
    verdict = verdict if trend.n_columns > 1 else "not run"
    is_open = verdict == "undecided"
    why = reasons({MISSING: is_open and trend.missing, SAME_MODELS: is_open and alike})
    return Claim(*statement, verdict, figure, source_of(stored), why)


def same_models(stored: Stored) -> tuple[list[str], list[str]]:
    """Columns of certified removal whose methods gave the very same models, no budget being exceeded; and those where
    every budget was, so that all models are retrained ones. Known only where games say how many were."""
    shares: dict[str, list[str]] = {"none": [], "all": []}
    steps: set[tuple[tuple[str, tuple[float, ...]], ...]] = set()
    for column in suite(stored.comparison.name, stored.comparison.scale).columns:
        game = stored.games.get(column.label)
        found = None if game is None else game.methods.get(column.method)
        share = None if found is None else found.facts.get("retrainings")
        if found is not None and share == 0:
            shares["none"].append(column.label)
            steps.add(tuple((name, tuple(one.by_pair)) for name, one in found.by_adversary.items()))
        elif share == 1:
            shares["all"].append(column.label)
    return (shares["none"] if len(shares["none"]) > 1 == len(steps) else []), shares["all"]


def removal_shown(table: TableComparison) -> str:
    """What the table beside Table 8 shows: what None gives away, the most that may be left after removal, and whether
    it falls. Empty unless every interval of what is left lies below None's."""
    none = interval_of(table, "advantage", "None")
    budgets = [label for label in table.columns if label not in ("None", "Retrain")]
    intervals = {label: interval_of(table, "advantage", label) for label in budgets if label not in table.not_run}
    left = [interval[1] for interval in intervals.values() if interval is not None]
    before = table.rows["advantage"]["None"].ours if none else None
    if none is None or before is None or not left or len(left) < len(intervals) or max(left) >= none[0]:
        return ""
    trend = trend_of(replace(table, rows={"advantage": table.rows["advantage"]}), budgets)
    most = math.ceil(1000 * max(left) - 1e-9) / 1000
    return (
        f"certified removal cuts None’s advantage of {plain(before.value)} to at most {plain(most)}; {_course(trend)}"
    )


def _course(trend: Trend) -> str:
    if trend.rising:
        return "it rises as ε falls"
    if trend.missing or trend.n_columns < 2:
        return "whether it falls with ε is unknown"
    return "it falls with ε" if trend.falling else "no fall with ε"
