"""From what the game's arithmetic finds to the records of a result, for a run and for an audit alike."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats
from forgetgauge.game.assessment import Assessment
from forgetgauge.game.comparison import compare_all, rank_stability
from forgetgauge.game.diagnostics import diagnose
from forgetgauge.game.quality import first_largest
from forgetgauge.game.roc import ScoredPair, tpr_within
from forgetgauge.results.record import (
    AdversaryResult,
    ComparisonResult,
    DiagnosticResult,
    GameResult,
    MethodResult,
    NoiseFloorResult,
    StrongResult,
    WorstPairResult,
    reference_named,
)
from forgetgauge.results.roc_and_parts import RocResult

USUAL = 0.95
"""The level at which the noise floor is told."""
NOTICEABLE = 0.05
"""Q shown too high by more than this is warned of."""


def assessed_fields(found: Assessment | None, adversaries: Sequence[str]) -> dict[str, Any]:
    """The fields of a MethodResult that an assessment fills; all None where there is none."""
    if found is None:
        names = ("quality", "quality_plugin", "chosen_on", "interval", "interval_basis", "epsilon", "p_value")
        return dict.fromkeys((*names, "noise_floor", "adversary"))
    return {
        "quality": found.quality,
        "quality_plugin": found.quality_plugin,
        "chosen_on": found.basis,
        "interval": (found.quality_interval.low, found.quality_interval.high),
        "interval_basis": found.quality_interval.basis,
        "epsilon": found.epsilon,
        "adversary": adversaries[found.best],
        "p_value": found.noise.p_value,
        "noise_floor": found.noise.q95,
        "noise_at_level": None if found.quality_interval.level == USUAL else found.noise.at_level,
        "bounded_interval": (found.bounded_interval.low, found.bounded_interval.high),
        "advantage_floor": found.advantage_floor,
        "model_log10_p": found.model_log_p / math.log(10),
        "n_models": found.n_models,
        "worst_pair": worst_pair(found.by_pair, adversaries, found.noise.pair_q95),
    }


def worst_pair(by_pair: Floats, adversaries: Sequence[str], noise_floor: float | None = None) -> WorstPairResult:
    """The largest |signed advantage| of (P, J); the first of them on a tie."""
    size = np.abs(by_pair)
    pair, which = divmod(first_largest(size.ravel()), size.shape[1])
    return WorstPairResult(float(1 - min(1.0, size.max())), pair, adversaries[which], noise_floor)


def with_shared_retrain(game: GameResult) -> GameResult:
    """Where one retrained model serves both sides, nobody can tell it from itself: its Q is 1 by construction."""
    if not game.spec.get("share_retrain"):
        return game
    blind = [name for name in game.methods if is_blind(game.spec, name)]
    return replace(game, methods={**game.methods, **{name: _certain(game.methods[name]) for name in blind}})


def is_blind(spec: Mapping[str, Any], method: str) -> bool:
    """Whether a method knows nothing of F; an audit knows Retrain by its name alone."""
    usual = reference_named(method) != "retrain"
    return not spec.get("methods", {}).get(method, {}).get("uses_original", usual)


def _certain(method: MethodResult) -> MethodResult:
    one = None if method.interval is None else (1.0, 1.0)
    by_adversary = {
        name: replace(found, interval=(0.0, 0.0), roc=None if found.roc is None else _without_doubt(found.roc))
        for name, found in method.by_adversary.items()
    }
    parts = {column: [replace(part, interval=(0.0, 0.0)) for part in found] for column, found in method.parts.items()}
    return replace(method, interval=one, bounded_interval=one, by_adversary=by_adversary, parts=parts)


def _without_doubt(roc: RocResult) -> RocResult:
    return replace(roc, band=None if roc.band is None else [(rate, rate) for rate in roc.tpr])


def adversary_result(
    found: Assessment,
    which: int,
    diagnostics: DiagnosticResult | None,
    strong: Sequence[StrongResult] = (),
    roc: RocResult | None = None,
) -> AdversaryResult:
    """One adversary's part of an assessment."""
    return AdversaryResult(
        advantage=float(found.advantage[which]),
        interval=(found.intervals[which].low, found.intervals[which].high),
        by_pair=[float(value) for value in found.by_pair[:, which]],
        diagnostics=diagnostics,
        strong=list(strong),
        roc=roc,
    )


def diagnostic_result(pairs: Sequence[ScoredPair]) -> DiagnosticResult:
    """AUC and envelope averaged over pairs and seeds; true positives by one threshold for all models."""
    each = [
        diagnose(first, second, pair.in_forget, pair.weight)
        for pair in pairs
        for first, second in zip(*pair.scores, strict=True)
    ]
    return DiagnosticResult(
        auc=mean([found.auc for found in each]),
        tpr_at_fpr_1_percent=tpr_within(pairs, 0.01) if pairs else 0.0,
        tpr_at_fpr_1_permille=tpr_within(pairs, 0.001) if pairs else 0.0,
        ks=mean([found.ks_envelope for found in each]),
    )


def optimism_warnings(n_forget: int, n_pairs: int, n_adversaries: int, what: str = "points") -> list[str]:
    """Where F is so small that choosing the adversary on one half of the pairs and scoring it on the other flatters.

    In simulations with 8 and 16 adversaries Q lay above the truth by up to 1/√(2 |F| pairs) (docs/statistics.md).
    """
    optimism = 1 / math.sqrt(2 * n_forget * n_pairs)
    if n_adversaries < 2 or optimism <= NOTICEABLE:
        return []
    return [
        f"Q may be shown too high by up to {optimism:.2f}: with {n_forget} forgotten {what} and {n_pairs} pairs, the "
        f"best of {n_adversaries} adversaries is often not the one chosen; read the lower end of the interval"
    ]


def noise_floor_of(assessed: Mapping[str, Assessment], blind: Collection[str], n_pairs: int) -> NoiseFloorResult | None:
    """What chance gives, in a run and in an audit: the largest 95 % quantile, so as to claim no less.

    Among the ``blind`` methods, which know nothing of F, where there are any; else among all. Chance gives more on
    fewer pairs: methods that lack some of all ``n_pairs`` are asked only where every method does. One model shared by
    both sides leaves nothing to chance and says nothing about it; None where every method is like that.
    """
    loud = {name: found.noise for name, found in assessed.items() if found.noise.q95 > 0}
    loud = {name: noise for name, noise in loud.items() if len(assessed[name].by_pair) == n_pairs} or loud
    asked = [name for name in loud if name in blind] or list(loud)
    if not asked:
        return None
    method = max(asked, key=lambda name: loud[name].q95)
    return NoiseFloorResult(method, loud[method].mean, loud[method].q95)


def comparison_results(complete: Mapping[str, Sequence[PairOutcome]], level: float) -> list[ComparisonResult]:
    """Every two methods that completed all pairs."""
    return [
        ComparisonResult(
            first,
            second,
            found.difference,
            (found.interval.low, found.interval.high),
            first if found.first_is_better else second if found.second_is_better else None,
        )
        for (first, second), found in compare_all(complete, level, simultaneous=False).items()
    ]


def stability_of_ranks(complete: Mapping[str, Sequence[PairOutcome]]) -> float | None:
    """Mean Kendall τ; None where there is nothing to rank."""
    if len(complete) < 2:
        return None
    return rank_stability(np.array([[outcome.advantage for outcome in found] for found in complete.values()]))


# -- means over pairs, replicates and models --------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    """The mean, or 0 where there are no values."""
    return float(np.mean(values)) if values else 0.0


def mean_of_each(records: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By name, over the records that have it."""
    columns: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, value in record.items():
            columns[name].append(value)
    return {name: mean(values) for name, values in columns.items()}


def mean_of_all(records: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By name, of what every record has: a mean over those that have it would leave out the models that blew up."""
    shared = set.intersection(*map(set, records)) if records else set()
    return {name: value for name, value in mean_of_each(records).items() if name in shared}


def means_by_group(records: Iterable[tuple[int, Mapping[str, float]]]) -> dict[str, list[float]]:
    """Name -> the mean of each group that has it, in the order of the groups."""
    groups: dict[int, list[Mapping[str, float]]] = defaultdict(list)
    for group, record in records:
        groups[group].append(record)
    found: dict[str, list[float]] = defaultdict(list)
    for group in sorted(groups):
        for name, value in mean_of_each(groups[group]).items():
            found[name].append(value)
    return dict(found)
