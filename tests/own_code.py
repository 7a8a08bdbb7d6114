"""Shared by the tests that hand `evaluate` something of their own: a game of a second, and an adversary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetgauge.attack.adversary import Need
from forgetgauge.game.adversary import Access

TINY: dict[str, Any] = {
    "pairs": 2,
    "shadows": 2,
    "fraction": 0.2,
    "learner": {"epochs": 1, "batch_size": 64},
    "adversaries": ("correctness", "confidence", "entropy", "modified-entropy"),
}
"""Arguments of `evaluate`."""


@dataclass(frozen=True)
class Constant:
    """Accuses every point: its advantage is 0 on every pair."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()

    def fit(self, shadows, target):
        return self

    def load(self, arrays):
        return self

    def arrays(self):
        return {}

    def decide(self, signals):
        return np.ones(len(signals), dtype=bool)
