"""One set of models, grouped by two in two ways: as swap pairs, and as pairs of independent random splits.

Of P swap pairs, s₁, …, s_P are independent and uniform over S_α, and so are their swaps s'₁, …, s'_P. So (s₁, s₂),
(s'₁, s'₂), (s₃, s₄), … are pairs of independent random splits, as many as swap pairs and of the very same models: the
training cost is equal to the last gradient, and so is the mean over all repetitions.
"""

from collections.abc import Callable, Sequence

import numpy as np

from forgetgauge.game.arrays import Floats
from forgetgauge.game.lookup import LookupAdversary
from forgetgauge.game.splits import Split, SwapPair

TwoSplits = tuple[Split, Split]


def swap_estimates(by_split: Floats) -> Floats:
    """(P, …): ½(Adv_s + Adv_s') of each swap pair, from Adv_s and Adv_s' in (P, 2, …)."""
    return np.asarray(by_split.mean(axis=1), dtype=np.float64)


def random_estimates(by_split: Floats) -> Floats:
    """(P, …): ½(Adv_s₁ + Adv_s₂), ½(Adv_s'₁ + Adv_s'₂), ½(Adv_s₃ + Adv_s₄), … from (P, 2, …) with an even P."""
    blocks = by_split.reshape(-1, 2, *by_split.shape[1:])  # (P/2, neighbours, sides, …)
    return np.asarray(blocks.mean(axis=1).reshape(by_split.shape[0], *by_split.shape[2:]), dtype=np.float64)


def as_swap_pairs(pairs: Sequence[SwapPair]) -> list[TwoSplits]:
    """(s, s') of each."""
    return [pair.sides for pair in pairs]


def as_random_pairs(pairs: Sequence[SwapPair]) -> list[TwoSplits]:
    """The two splits behind each of `random_estimates`, in its order."""
    neighbours = zip(pairs[::2], pairs[1::2], strict=True)
    return [(first.sides[side], second.sides[side]) for first, second in neighbours for side in (0, 1)]


def lookup_advantages(groups: Sequence[TwoSplits], weights: Floats, n_queries: float) -> Floats:
    """(P,) what the look-up adversary of Proposition 3.9 gains on each group, its table made for that group; exact.

    It looks at no model, so these are its advantages against every method, Retrain included.
    """
    return np.array([_lookup_advantage(group, weights, n_queries) for group in groups])


def _lookup_advantage(group: TwoSplits, weights: Floats, n_queries: float) -> float:
    accepts: Callable[..., float] = LookupAdversary(*group).acceptance
    gains = [accepts(split, 0, weights, n_queries) - accepts(split, 1, weights, n_queries) for split in group]
    return float(np.mean(gains))
