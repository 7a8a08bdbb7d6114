"""From what the game's arithmetic finds to the records of a result, for a run and for an audit alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.assessment import Assessment
from forgetgauge.game.comparison import compare_all, rank_stability
from forgetgauge.game.diagnostics import Diagnostics
from forgetgauge.report.means import mean
from forgetgauge.report.result import (
    AdversaryResult,
    ComparisonResult,
    DiagnosticResult,
    NoiseFloorResult,
    StrongResult,
)

LARGEST_EPSILON = 1e6
"""Stands for an infinite bound, which JSON cannot say."""


def assessed_fields(found: Assessment | None) -> dict[str, Any]:
    """The fields of a MethodResult that an assessment fills; all None where there is none."""
    if found is None:
        names = ("quality", "quality_plugin", "chosen_on", "interval", "interval_basis", "epsilon", "p_value")
        return dict.fromkeys((*names, "noise_floor"))
    epsilon = found.epsilon if found.epsilon is None else min(found.epsilon, LARGEST_EPSILON)
    return {
        "quality": found.quality,
        "quality_plugin": found.quality_plugin,
        "chosen_on": found.basis,
        "interval": (found.quality_interval.low, found.quality_interval.high),
        "interval_basis": found.quality_interval.basis,
        "epsilon": epsilon,
        "p_value": found.noise.p_value,
        "noise_floor": found.noise.q95,
    }


def adversary_result(
    found: Assessment, which: int, diagnostics: DiagnosticResult | None, strong: Sequence[StrongResult] = ()
) -> AdversaryResult:
    """One adversary's part of an assessment."""
    return AdversaryResult(
        advantage=float(found.advantage[which]),
        interval=(found.intervals[which].low, found.intervals[which].high),
        by_pair=[float(value) for value in found.by_pair[:, which]],
        diagnostics=diagnostics,
        strong=list(strong),
    )


def diagnostic_result(each: Sequence[Diagnostics]) -> DiagnosticResult:
    """Averaged over pairs and seeds."""
    return DiagnosticResult(
        auc=mean([found.auc for found in each]),
        tpr_at_fpr_1_percent=mean([found.tpr_at_1_percent for found in each]),
        tpr_at_fpr_1_permille=mean([found.tpr_at_01_percent for found in each]),
        ks=mean([found.ks_envelope for found in each]),
    )


def noise_floor_result(method: str, found: Assessment) -> NoiseFloorResult:
    """What chance gives, as this method's relabellings tell it."""
    return NoiseFloorResult(method, found.noise.mean, found.noise.q95)


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
