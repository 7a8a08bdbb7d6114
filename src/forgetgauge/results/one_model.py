"""Evidence from one model, as it is stored: p, a lower bound of ε, and a verdict in words. It is not Q."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scipy.special import ndtri

from forgetgauge.game.one_model import ModelTest, group_epsilon, log_p_of_best, point_epsilon
from forgetgauge.records import Record
from forgetgauge.results.verdict import COARSE, INCONCLUSIVE, LIKE_RETRAIN, POWER_80, STILL_VISIBLE

RESTS_ON = {
    "training": "the training set R and everything else that the model was trained with ignored the draw",
    "shadows": "shadow models, thresholds and adversaries were made without F and T",
    "settings": "hyper-parameters and the choice of the checkpoint ignored the draw",
    "validation": "T was never used for validation",
}
"""What the test takes for granted and no file can show."""


@dataclass(frozen=True)
class TestResult(Record):
    """One adversary's answers, against chance."""

    n_right: int
    n_asked: int
    """Right answers, of how many."""
    advantage: float
    """The share of F that was called forgotten minus that of T."""
    log10_p: float
    """Of the two-sided p, before it is corrected for the choice among adversaries: −6 is one in a million."""


@dataclass(frozen=True)
class ModelResult(Record):
    """One model."""

    verdict: str
    """One of those of results.verdict."""
    best: str
    """The adversary whose answers are least like chance."""
    log10_p: float
    """Of its p, corrected for the choice among all of them."""
    epsilon: float
    """With the stated confidence, any (ε, δ)-certified removal of all of F together has at least this ε."""
    point_epsilon: float | None
    """The same of each point alone, for matched pairs and δ = 0; None elsewhere, where it would not be valid."""
    resolution: float
    """The advantage that this test would have seen with a power of 80 %."""
    tests: dict[str, TestResult]
    utility: dict[str, float] = field(default_factory=dict)
    """Accuracy on `forget` and `unseen`, where the file has logits."""


@dataclass(frozen=True)
class OneModelResult(Record):
    """What one model, or several that were made with one draw, show of F."""

    kind: str
    """What was drawn: points, groups of points, or one point of each matched pair."""
    n_forget: int
    """Units that were drawn to be forgotten; as many were kept unseen."""
    commitment: str
    """SHA-256 of the list of points that was drawn from."""
    seed: str
    seed_from: str
    """Whose the seed of the draw is."""
    own_draw: bool
    """Whether the tester drew alone, so that nobody else can know that the draw was not repeated."""
    digests: dict[str, str]
    """SHA-256 of the file of outputs and of the draw."""
    level: float
    delta: float
    stated: dict[str, bool]
    """What the test rests on, and whether the tester states that it holds."""
    models: dict[str, ModelResult]
    environment: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    schema: int = 1


def judged_model(
    tests: Mapping[str, ModelTest],
    n_units: int,
    *,
    level: float,
    delta: float,
    is_paired: bool,
    utility: dict[str, float],
) -> ModelResult:
    """One model's tests together; `n_units` are the points, groups or pairs on each side of the draw."""
    best = min(tests, key=lambda name: tests[name].log_p)
    log_p = log_p_of_best(list(tests.values()))
    resolution = resolution_of(n_units, len(tests), level)
    return ModelResult(
        _verdict(log_p, resolution, level),
        best,
        log_p / math.log(10),
        group_epsilon(log_p, level=level, delta=delta),
        point_epsilon(tests[best], level=1 - (1 - level) / len(tests)) if is_paired and delta == 0 else None,
        resolution,
        {
            name: TestResult(test.n_right, test.n_asked, test.advantage, test.log_p / math.log(10))
            for name, test in tests.items()
        },
        utility,
    )


def resolution_of(n_units: int, n_tests: int, level: float) -> float:
    """The advantage that answers right in (1 + it)/2 of all units are seen at with a power of 80 %, at most 1.

    By the normal law: the difference of two shares of n answers each has the deviation √(1/2n) by chance.
    """
    threshold = -ndtri((1 - level) / (2 * n_tests))
    return float(min(1.0, (threshold + POWER_80) * math.sqrt(1 / (2 * n_units))))


def _verdict(log_p: float, resolution: float, level: float) -> str:
    if log_p <= math.log(1 - level) + 1e-12:
        return STILL_VISIBLE
    return INCONCLUSIVE if resolution > COARSE else LIKE_RETRAIN


def unstated(stated: Mapping[str, bool]) -> Sequence[str]:
    """What the test rests on and nobody has stated, in words."""
    return [RESTS_ON[name] for name in RESTS_ON if not stated.get(name, False)]
