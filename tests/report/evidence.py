"""Evidence from one model, made up."""

from __future__ import annotations

import dataclasses
from typing import Any

from forgetgauge.results.one_model import ModelResult, OneModelResult, TestResult
from forgetgauge.results.verdict import LIKE_RETRAIN, STILL_VISIBLE

SEEN = ModelResult(
    STILL_VISIBLE,
    "loss",
    -7.345678901234567,
    12.3456789,
    None,
    0.218,
    {
        "gap": TestResult(53, 100, 0.0612345678901234, -0.2),
        "loss": TestResult(71, 100, 0.42, -7.64670889689855),
    },
    {"forget": 0.99, "unseen": 0.91},
)
CLEAN = dataclasses.replace(SEEN, verdict=LIKE_RETRAIN, log10_p=-0.1, epsilon=0.0)


def evidence(models: dict[str, ModelResult] | None = None, **changes: Any) -> OneModelResult:
    """Of 100 points that were drawn with somebody else's seed, everything stated."""
    whole = OneModelResult(
        "points", 100, "c0ffee" * 10, "5f3c0a", "a beacon", False, {"file": "aa" * 32, "draw": "bb" * 32}, 0.95, 1e-5,
        dict.fromkeys(("training", "shadows", "settings", "validation"), True),
        models or {"model": SEEN}, {"forgetgauge": "0.1.0", "date": "2026-11-16"},
    )  # fmt: skip
    return dataclasses.replace(whole, **changes)


def requested(**changes: Any) -> OneModelResult:
    """Of points that somebody asked to delete: nobody drew them."""
    return evidence(**{"seed": "", "seed_from": "", "commitment": "", "digests": {"file": "aa" * 32}, **changes})
