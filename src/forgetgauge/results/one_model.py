"""Evidence from one model, as it is stored: p, a lower bound of ε, and a verdict in words. It is not Q."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.special import ndtri

from forgetgauge.game.blind import advantage_limits, n_answers_of_ranks
from forgetgauge.game.one_model import ModelTest, group_epsilon, log_p_of_best, point_epsilon
from forgetgauge.records import Record
from forgetgauge.results.verdict import COARSE, INCONCLUSIVE, LIKE_RETRAIN, NOT_EVALUABLE, POWER_80, STILL_VISIBLE
from forgetgauge.wording import plain

RESTS_ON = {
    "training": "the training set R and everything else that the model was trained with ignored the draw",
    "shadows": "shadow models, thresholds and adversaries were made without F and T",
    "settings": "hyper-parameters and the choice of the checkpoint ignored the draw",
    "validation": "T was never used for validation",
}
"""What the test takes for granted and no file can show."""
REQUESTS_REST_ON = {
    "exchangeable": "F and T are of one kind: any other choice of these points was as likely to be asked for",
    "training": "the model was trained on F, and T played no part in training it",
    "shadows": RESTS_ON["shadows"],
    "settings": "hyper-parameters and the choice of the checkpoint took no account of F and T",
    "validation": RESTS_ON["validation"],
}
"""The same where F was not drawn, but asked for."""
INSTEAD = (
    "Instead: choose for each point of F a matched one that no training saw, or draw a half at random before the next "
    "training (forgetgauge draw)."
)
"""What to do where requests cannot be judged."""


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
    """The advantage that this test would have seen with a power of 80 %; of requests, beyond what `blind` may miss."""
    tests: dict[str, TestResult]
    utility: dict[str, float] = field(default_factory=dict)
    """Accuracy on `forget` and `unseen`, where the file has logits."""
    reason: str = ""
    """Why it is not evaluable, and what to do instead; empty where it is."""


@dataclass(frozen=True)
class BlindResult(Record):
    """Whether F and T can be told apart without the model under audit, and how far they could differ unseen."""

    by: list[str]
    """What was looked at: raw points, reference models; nothing, where the file has neither."""
    n_columns: int
    """Columns of the raw points, classes included, that are not the same for all points."""
    log10_p: float | None
    """Of the most telling test, corrected for the choice among them; None where there is none."""
    told_apart: bool
    """Whether that p is at most 1 − level."""
    missed: float
    """With the stated confidence, F and T have by themselves at most this advantage: a claim must exceed it."""
    tests: dict[str, TestResult]


@dataclass(frozen=True)
class OneModelResult(Record):
    """What one model, or several that were made with one draw, show of F."""

    kind: str
    """What was drawn: points, groups of points, or one point of each matched pair; of requests, points."""
    n_forget: int
    """Units that were drawn to be forgotten, as many were kept unseen; of requests, the points that were asked for."""
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
    schema: int = 2
    sha256: str = field(default="", compare=False)
    """Of the file itself, this digest left empty: set when it is written, checked when it is read."""
    origin: str = "drawn"
    """How F came about: drawn at random before training, or `requests` that came by themselves."""
    n_unseen: int | None = None
    """Points of T, where they need not be as many as those of F; None of a draw."""
    blind: BlindResult | None = None
    """Of requests: whether F and T differ by themselves. p and ε hold only if they do not."""


def judged_model(
    tests: Mapping[str, ModelTest],
    n_units: float,
    *,
    level: float,
    delta: float,
    is_paired: bool,
    utility: dict[str, float],
    blind: BlindResult | None = None,
) -> ModelResult:
    """One model's tests together; `n_units` are the points, groups or pairs on each side of the draw."""
    best = min(tests, key=lambda name: tests[name].log_p)
    log_p = log_p_of_best(list(tests.values()))
    resolution = resolution_of(n_units, len(tests), level)
    verdict, reason = _verdict(log_p, resolution, level), ""
    if blind is not None:
        n_answers = n_answers_of_ranks(1, 1) * n_units
        alone = resolution_of(n_answers / 2, len(tests), level)
        resolution = min(1.0, alone + blind.missed)
        verdict, reason = _verdict(log_p, resolution, level), _why_not_evaluable(blind)
        if verdict == STILL_VISIBLE and not reason:
            reason = _too_weak(blind, tests, best, n_answers, level)
            if reason and alone > COARSE:  # so few points would not do for a draw either
                verdict, reason = INCONCLUSIVE, ""
    is_evaluable = not reason
    return ModelResult(
        verdict if is_evaluable else NOT_EVALUABLE,
        best,
        log_p / math.log(10),
        group_epsilon(log_p, level=level, delta=delta) if is_evaluable else 0.0,
        point_epsilon(tests[best], level=1 - (1 - level) / len(tests)) if is_paired and delta == 0 else None,
        resolution,
        {name: _test_result(test) for name, test in tests.items()},
        utility,
        reason,
    )


def judged_again(model: ModelResult, found: OneModelResult) -> dict[str, Any]:
    """What follows from a model's tests as they are stored; of requests, no verdict, which rests on more."""
    best = min(model.tests, key=lambda name: model.tests[name].log10_p)
    log10_p = min(0.0, math.log10(len(model.tests)) + model.tests[best].log10_p)
    again: dict[str, Any] = {"best": best, "log10_p": log10_p}
    if found.blind is None:
        log_p = log10_p * math.log(10)
        again["epsilon"] = group_epsilon(log_p, level=found.level, delta=found.delta)
        again["verdict"] = _verdict(log_p, model.resolution, found.level)
    return again


def judged_blind(
    tests: Mapping[str, ModelTest], by: list[str], n_columns: int, missed: float, level: float
) -> BlindResult:
    """The tests that looked for a difference between F and T without the model under audit."""
    log_p = log_p_of_best(list(tests.values())) if tests else None
    told_apart = log_p is not None and log_p <= math.log(1 - level) + 1e-12
    return BlindResult(
        by,
        n_columns,
        None if log_p is None else log_p / math.log(10),
        told_apart,
        missed,
        {name: _test_result(test) for name, test in tests.items()},
    )


def _test_result(test: ModelTest) -> TestResult:
    return TestResult(test.n_right, test.n_asked, test.advantage, test.log_p / math.log(10))


def _why_not_evaluable(blind: BlindResult) -> str:
    """Why no model can be judged by these points; empty where one can."""
    if not blind.by:
        return (
            "The requests were not drawn at random, and nothing in the file can show whether F and T differ by "
            "themselves: add the raw points (features), or the outputs of models that saw neither (reference rows). "
            + INSTEAD
        )
    if blind.told_apart:
        return (
            "F and T can be told apart without the model, so an attacker's right answers say nothing about what the "
            "model remembers. " + INSTEAD
        )
    return ""


def _too_weak(blind: BlindResult, tests: Mapping[str, ModelTest], best: str, n_answers: float, level: float) -> str:
    """Why an advantage that is beyond chance is not beyond what F and T may have by themselves; empty where it is."""
    tail = (1 - level) / (2 * len(tests))
    claimed = max(advantage_limits(abs(test.advantage), n_answers, tail)[0] for test in tests.values())
    if claimed > blind.missed:
        return ""
    return (
        f"The model tells F from T with an advantage of {plain(abs(tests[best].advantage))}, of which "
        f"{plain(max(0.0, claimed))} is certain; but the test without the model could have missed a difference between "
        f"F and T of up to {plain(blind.missed)}. More points, fewer columns of features, or the outputs of models "
        "that saw neither F nor T would make it sharper. " + INSTEAD
    )


def resolution_of(n_units: float, n_tests: int, level: float) -> float:
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
    words = REQUESTS_REST_ON if "exchangeable" in stated else RESTS_ON
    return [words[name] for name in words if not stated.get(name, False)]
