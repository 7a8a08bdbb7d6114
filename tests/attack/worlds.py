"""Made-up shadow models and what they answer."""

import numpy as np

from forgetgauge.attack.adversary import Shadows
from forgetgauge.attack.signals import Signals

N_CLASSES = 4


def draw_signals(n: int, seed: int, member_boost: float | np.ndarray = 0.0, decimals: int = 6) -> Signals:
    """Random logits; a member's true logit is higher by `member_boost`. Few decimals make ties."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n)
    logits = rng.standard_normal((n, N_CLASSES))
    logits[np.arange(n), labels] += member_boost
    return Signals(np.round(logits, decimals).astype(np.float32), labels)


def draw_shadows(n: int, seed: int, boost: float = 1.0, decimals: int = 6) -> Shadows:
    member = np.random.default_rng(seed + 1).random(n) < 0.5
    return Shadows(draw_signals(n, seed, boost * member, decimals), member)


def rows(signals: Signals, at: np.ndarray) -> Signals:
    return Signals(signals.logits[at], signals.labels[at])
