"""The random draws of the Initialization phase: halves, swap pairs, shadow sets, each named by what it depends on."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.splits import SwapPair, draw_pair
from forgetgauge.streams import Streams, identity_key


def draw_halves(data: str, n: int, seed: int, fraction: float) -> tuple[Ints, Ints]:
    """(target half, shadow half): D is the first. A smaller η keeps a part of what a larger one keeps."""
    order = _streams(draw="halves", data=data, seed=seed).generator("order").permutation(n)
    target, shadow = order[: n // 2], order[n // 2 :]
    return target[: round(fraction * len(target))], shadow[: round(fraction * len(shadow))]


def half_sizes(n: int, fraction: float) -> tuple[int, int]:
    """Sizes of what `draw_halves` gives."""
    return round(fraction * (n // 2)), round(fraction * (n - n // 2))


def draw_swap_pair(data: str, n: int, seed: int, fraction: float, alpha: float, pair: int) -> SwapPair:
    """The pair-th swap pair of D, uniform over S_α; its indices are positions in the target half of n points."""
    named = _streams(draw="pair", data=data, n=n, seed=seed, fraction=fraction, alpha=alpha, pair=pair)
    return draw_pair(n, alpha, named.generator("split"))


def draw_shadow_members(data: str, n: int, seed: int, fraction: float, size: int, shadow: int) -> Bools:
    """(n,) which points of the shadow half the shadow-th shadow model is trained on: `size` of them, uniformly."""
    named = _streams(draw="shadow", data=data, n=n, seed=seed, fraction=fraction, size=size, shadow=shadow)
    member = np.zeros(n, dtype=bool)
    member[named.generator("members").permutation(n)[:size]] = True
    return member


def _streams(**identity: Any) -> Streams:
    return Streams(identity_key(identity))
