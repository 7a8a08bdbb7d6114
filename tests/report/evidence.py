"""Evidence from one model, made up."""

from __future__ import annotations

import dataclasses
from typing import Any

from forgetgauge.game.one_model import ModelTest
from forgetgauge.results.one_model import (
    REQUESTS,
    BlindResult,
    ModelResult,
    OneModelResult,
    TestResult,
    judged_again,
    judged_blind,
)
from forgetgauge.results.verdict import INCONCLUSIVE

BLIND = judged_blind(
    {"reference models: loss": ModelTest(5100, 10_000, 0.02, -0.6, -0.8, "ranks")}, 0, 0.7, 100, 100, 0.95
)
"""No difference between F and T was found by reference models that resemble the model."""


def _model(tests: dict[str, TestResult], blind: BlindResult | None = None) -> ModelResult:
    """What follows from these tests, of 100 points that were drawn or, with a test without the model, asked for."""
    bare = ModelResult(INCONCLUSIVE, "", 0.0, None, None, 0.0, tests, {"forget": 0.99, "unseen": 0.91})
    whole = evidence({"model": bare})
    if blind is not None:
        whole = dataclasses.replace(whole, origin=REQUESTS, n_unseen=100, blind=blind)
    return judged_again(whole, "model")


def evidence(models: dict[str, ModelResult] | None = None, **changes: Any) -> OneModelResult:
    """Of 100 points that were drawn with somebody else's seed, everything stated."""
    whole = OneModelResult(
        "points", 100, "c0ffee" * 10, "5f3c0a", "a beacon", False, {"file": "aa" * 32, "draw": "bb" * 32}, 0.95, 1e-5,
        dict.fromkeys(("training", "shadows", "settings", "validation"), True),
        models or {"model": SEEN}, {"forgetgauge": "0.1.0", "date": "2026-11-16"},
    )  # fmt: skip
    return dataclasses.replace(whole, **changes)


SEEN = _model(
    {
        "gap": TestResult(53, 100, 0.0612345678901234, -0.2),
        "loss": TestResult(71, 100, 0.42, -7.64670889689855),
    }
)
CLEAN = _model({"gap": TestResult(51, 100, 0.02, -0.1), "loss": TestResult(53, 100, 0.0612345678901234, -0.2)})
SEEN_OF_REQUESTS, CLEAN_OF_REQUESTS = (_model(one.tests, BLIND) for one in (SEEN, CLEAN))


def requested(**changes: Any) -> OneModelResult:
    """Of points that somebody asked to delete: nobody drew them."""
    asked = {
        "models": {"model": SEEN_OF_REQUESTS}, "origin": REQUESTS, "n_unseen": 100, "blind": BLIND,
        "seed": "", "seed_from": "", "commitment": "", "digests": {"file": "aa" * 32},
    }  # fmt: skip
    return evidence(**{**asked, **changes})
