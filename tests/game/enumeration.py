"""The game played out in full, in exact fractions, for data sets and mechanisms small enough to list.

A mechanism is given by its law: for each split, the probability of each model. The adversary's view of one play is the
model together with what the oracle showed it: one point (weak) or, after endless queries, the whole set (strong). The
supremum over *all* adversaries is the total variation distance between the laws of the view under b = 0 and b = 1.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias, TypeVar

import numpy as np

from forgetgauge.game.arrays import Ints
from forgetgauge.game.splits import Split, split_sizes

Model = TypeVar("Model", bound=Hashable)
Shown = TypeVar("Shown", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)
Weight: TypeAlias = Sequence[Fraction | int] | None
Law: TypeAlias = Callable[[Split], Mapping[Model, Fraction]]
View: TypeAlias = Callable[[Ints, Weight], Mapping[Shown, Fraction]]


def enumerate_splits(n: int, alpha: float | Fraction) -> Iterator[Split]:
    """All of S_α, each split once."""
    _, k = split_sizes(n, alpha)
    for forget in combinations(range(n), k):
        others = [point for point in range(n) if point not in forget]
        for unseen in combinations(others, k):
            retain = [point for point in others if point not in unseen]
            yield Split(*(np.array(points, dtype=np.int64) for points in (retain, forget, unseen)))


def one_point(points: Ints, weight: Weight = None) -> dict[int, Fraction]:
    """What a weak adversary is shown: one point of the set, with probability proportional to ``weight`` (by point)."""
    share = {point: Fraction(1) if weight is None else Fraction(weight[point]) for point in points.tolist()}
    total = sum(share.values())
    if total == 0:
        raise ValueError(f"the set {points.tolist()} has no mass")
    return {point: value / total for point, value in share.items() if value}


def whole_set(points: Ints, weight: Weight = None) -> dict[frozenset[int], Fraction]:
    """What endless queries show: every point of the set that can be drawn at all."""
    return {frozenset(one_point(points, weight)): Fraction(1)}


def views(
    splits: Iterable[Split], law: Law[Model], sees: View[Shown], weight: Weight = None
) -> tuple[dict[tuple[Model, Shown], Fraction], dict[tuple[Model, Shown], Fraction]]:
    """The law of (model, what was shown) under b = 0 and under b = 1, for s uniform over ``splits``."""
    every = list(splits)
    if not every:
        raise ValueError("an average over splits needs at least one split")
    under_forget: dict[tuple[Model, Shown], Fraction] = defaultdict(Fraction)
    under_unseen: dict[tuple[Model, Shown], Fraction] = defaultdict(Fraction)
    for split in every:
        shown_forget, shown_unseen = sees(split.forget, weight), sees(split.unseen, weight)
        for model, probability in law(split).items():
            for shown, chance in shown_forget.items():
                under_forget[model, shown] += probability * chance / len(every)
            for shown, chance in shown_unseen.items():
                under_unseen[model, shown] += probability * chance / len(every)
    return dict(under_forget), dict(under_unseen)


def supremum(splits: Iterable[Split], law: Law[Model], sees: View[Shown], weight: Weight = None) -> Fraction:
    """sup_A Adv(A, Ul) over every adversary with this view (``one_point``: weak, ``whole_set``: strong)."""
    return total_variation(*views(splits, law, sees, weight))


def advantage(
    splits: Iterable[Split],
    law: Law[Model],
    accepts: Callable[[Model, Shown], Fraction | int],
    sees: View[Shown],
    weight: Weight = None,
) -> Fraction:
    """The exact signed advantage of one adversary, averaged over ``splits``; Definition 3.1 is its absolute value."""
    under_forget, under_unseen = views(splits, law, sees, weight)
    accepted_forget = sum((p * accepts(*view) for view, p in under_forget.items()), Fraction(0))
    accepted_unseen = sum((p * accepts(*view) for view, p in under_unseen.items()), Fraction(0))
    return accepted_forget - accepted_unseen


def swap_supremum(split: Split, law: Law[Model]) -> Fraction:
    """sup_A of the SWAP test on {s, s'} over every adversary, weak or strong: TV(P_M(Ul, s), P_M(Ul, s'))."""
    return total_variation(law(split), law(split.swapped()))


def total_variation(first: Mapping[Outcome, Fraction], second: Mapping[Outcome, Fraction]) -> Fraction:
    """½ Σ |p − q| of two finite distributions."""
    outcomes = first.keys() | second.keys()
    gaps = (abs(first.get(outcome, Fraction(0)) - second.get(outcome, Fraction(0))) for outcome in outcomes)
    return sum(gaps, Fraction(0)) / 2
