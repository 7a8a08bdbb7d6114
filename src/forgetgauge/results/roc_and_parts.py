"""Where a method leaks: the ROC of its strongest adversary, and what that one gains on each class or other part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.intervals import IntervalKind
from forgetgauge.game.parts import Codes, advantage_by_part
from forgetgauge.game.roc import ScoredPair, rates, swap_roc
from forgetgauge.records import Record


@dataclass(frozen=True)
class RocResult(Record):
    """How many forgotten points a score finds at how many false alarms, over all models: one threshold for all."""

    fpr: list[float]
    """Share of unseen points at or above a threshold, averaged over sides, seeds and pairs; rising."""
    tpr: list[float]
    """Share of forgotten points there: TPR − FPR is the signed SWAP advantage of that threshold."""
    band: list[tuple[float, float]] | None
    """For TPR at each FPR on its own, over pairs, the adversary taken as given; None below five of them."""
    n_unseen: int
    """Scores of unseen points that the false positive rate is a share of."""


@dataclass(frozen=True)
class PartResult(Record):
    """What a method's strongest adversary gains on the points of one class, or of one value of another column."""

    part: str
    advantage: float
    """Signed SWAP advantage with P_D restricted to these points, averaged over pairs; Q of the part is 1 − |·|."""
    interval: tuple[float, float]
    """For that; holds together with the intervals of all other parts of the method."""
    n_points: int
    """Such points of F and T, summed over pairs."""
    n_pairs: int
    """Pairs that have some of them in F and in T."""


def roc_result(pairs: Sequence[ScoredPair], level: float) -> RocResult | None:
    """The ROC curve of all pairs of a method; None where there is no pair."""
    if not pairs:
        return None
    n_unseen = sum(pair.scores.size for pair in pairs) // 2
    found = swap_roc(pairs, rates(n_unseen))
    band = found.band(level)
    fpr, tpr = (np.clip(rate, 0, 1).tolist() for rate in (found.fpr, found.tpr))
    return RocResult(fpr, tpr, None if band is None else [(float(low), float(high)) for low, high in band], n_unseen)


def part_results(
    outcomes: Mapping[Any, PairOutcome],
    codes: Mapping[Any, Mapping[str, Codes]],
    names: Mapping[str, Sequence[str]],
    adversary: int,
    level: float,
    kind: IntervalKind,
) -> dict[str, list[PartResult]]:
    """Column -> its parts; of each pair, `codes` tells which part of each column a point belongs to."""
    if not outcomes or not names:
        return {}
    n_looks = sum(len(parts) for parts in names.values())
    found: dict[str, list[PartResult]] = {}
    for column, parts in names.items():
        members = [[codes[pair][column] == which for pair in outcomes] for which in range(len(parts))]
        each = advantage_by_part(list(outcomes.values()), members, adversary, level, kind, n_looks)
        found[column] = [
            PartResult(name, one.advantage, (one.interval.low, one.interval.high), one.n_points, len(one.by_pair))
            for name, one in zip(parts, each, strict=True)
            if one is not None
        ]
    return found
