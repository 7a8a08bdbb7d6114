"""What one unlearned model shows: an exact test, and a lower bound of ε, from one random draw of F.

Let U be a set of points, F a uniformly random part of it, T the rest, and let the adversary and every choice of
training be made without knowing which is which. A model that was trained on R alone is then independent of the draw:
given its answers, how many of the points that were called forgotten lie in F is a hypergeometric number (binomial for
matched pairs; for groups of points the sum over a random choice of groups). So p is exact for one model, whatever the
dependence between points, and where removal is (ε, δ)-certified, P(p ≤ t) ≤ e^ε t + δ: with confidence 1 − β,
ε ≥ ln((β − δ)/p). Tails are taken as logarithms, because p may be smaller than the smallest number of a computer.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import betaincinv, expit, gammaln

from forgetgauge.game.advantage import Grouped, PairOutcome
from forgetgauge.game.arrays import Bools, Floats, Ints, frozen_bools, frozen_floats, group_means

_LARGEST_TABLE = 2e8
"""Steps of a table of how the sum of a choice is distributed, a fifth of a second; beyond it, it is found by waves."""
_LARGEST_GRID = 4_000_000
"""Units times levels of what is summed by waves, at most a second; of more units, what is summed is rounded further."""
_UNSEEN = 40.0
"""What is left out of a sum by waves is less than e^−40 of all: less than a computer's numbers can tell from 1."""
_CANDIDATES = 20
"""In a game, the exact p is computed for this many answers about a model: those that are furthest from chance."""
_CANDIDATES_OF_GROUPS = 3
"""The same where groups were drawn, where one such p takes about a second."""
ANSWERS, RANKS, TOP, PAIRS, GROUPS = "answers", "ranks", "top", "pairs", "groups"
"""Kinds of tests: of answers about a half, of the ranks of scores, of the largest scores alone, of pairs, of groups."""
_FINEST = 60
"""Groups' means and ranks are rounded to sixtieths, which halves, thirds, quarters, fifths and sixths are, at best."""


@dataclass(frozen=True)
class ModelTest:
    """One adversary's answers about one model, against chance."""

    n_right: int
    """Points of F that were called forgotten, and points of T that were not; of matched pairs, those told rightly."""
    n_asked: int
    """How many answers that is of."""
    advantage: float
    """The share of F that was called forgotten minus that of T, each drawn unit weighing the same."""
    log_p_above: float
    """ln of the chance of at least as many right answers, if the model is independent of the draw."""
    log_p_below: float
    """ln of the chance of at most as many: a model that was made to answer wrongly shows F as well."""
    by: str = ANSWERS
    """The kind of test."""
    told: float = 1.0
    """How much of what so many units could tell is left by their ties, at most 1.

    Of pairs the share that was told apart. Of ranks 1 − Σ q³, q the shares of points with equal scores: what such
    scores tell of a logistic shift, beside scores without ties (Whitehead 1993); where they are rounded to less than
    sixtieths, of points with equal levels. Answers are scores of two values, which tell most where each is of one
    half: there it is 1.
    """

    @property
    def log_p(self) -> float:
        """ln of the two-sided p."""
        return min(0.0, math.log(2) + min(self.log_p_above, self.log_p_below))

    @property
    def log10_p(self) -> float:
        """log10 of the two-sided p."""
        return self.log_p / math.log(10)


def half_test(says_forget: Bools, in_forget: Bools) -> ModelTest:
    """Of points of which F was drawn as a random part, |F| fixed beforehand: hypergeometric."""
    says, forget = _checked(says_forget, in_forget)
    found = _of_half(int((says & forget).sum()), int(says.sum()), int(forget.sum()), int((~forget).sum()))
    return replace(found, told=_told_by(float(says.mean())))


def _of_half(in_both: int, n_said: int, n_forget: int, n_unseen: int) -> ModelTest:
    """By the points that were called forgotten, and those of F among them."""
    least = max(0, n_said - n_unseen)
    tails = _tails(in_both - least, log_hypergeometric(n_forget + n_unseen, n_forget, n_said))
    n_wrong = n_said - in_both
    advantage = in_both / n_forget - n_wrong / n_unseen
    return ModelTest(in_both + n_unseen - n_wrong, n_forget + n_unseen, advantage, *tails)


def _told_by(share: float) -> float:
    """`told` of answers of which this share is "forgotten": 1 where it is a half, 0 where all answers are equal."""
    return 4 * share * (1 - share)


def top_test(scores: Floats, in_forget: Bools, n_top: int) -> ModelTest:
    """Of the points with the largest scores alone, where low rates of false positives are decided: hypergeometric too.

    `n_top` is fixed beforehand. Of points that tie for the last places the first ones are taken, so the order of the
    points must say nothing.
    """
    values = frozen_floats(scores, "scores")
    if not 0 < n_top <= len(values):
        raise ValueError(f"the top {n_top} of {len(values)} scores cannot be taken")
    top = np.zeros(len(values), dtype=np.bool_)
    top[np.argsort(-values, kind="stable")[:n_top]] = True
    _, forget = _checked(top, in_forget)
    return top_counted(int((top & forget).sum()), n_top, int(forget.sum()), int((~forget).sum()))


def top_counted(n_right: int, n_top: int, n_forget: int, n_unseen: int) -> ModelTest:
    """The test of the largest scores, from the number of points of F among them."""
    found = _of_half(n_right, n_top, n_forget, n_unseen)
    return ModelTest(n_right, n_top, found.advantage, found.log_p_above, found.log_p_below, TOP)


def ranks_test(scores: Floats, in_forget: Bools) -> ModelTest:
    """Of scores without a threshold: the sum of F's ranks, as the test of Wilcoxon, Mann and Whitney has it, exactly.

    Ranks are rounded to 61 levels, of more than 66,666 points to fewer. An answer is right where a point of F has a
    larger score than one of T, so there are |F| · |T| of them, which depend on each other.
    """
    values, forget = frozen_floats(scores, "scores"), frozen_bools(in_forget, "the draw")
    _checked(np.zeros(len(values), dtype=np.bool_), forget)
    n, n_forget = len(values), int(forget.sum())
    levels = _levels(n)
    _, kinds, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - (counts + 1) / 2)[kinds]  # ranks from 0, the mean of those that tie
    told = 2 * middle if n <= levels else np.minimum((middle + 0.5) * (levels + 1) // n, levels)
    rounded: Ints = told.astype(np.int64)
    tails = _tails_over_choice(rounded, forget)
    if levels < _FINEST:
        counts = np.unique(rounded, return_counts=True)[1]
    n_couples = n_forget * (n - n_forget)
    above = float(middle[forget].sum() - n_forget * (n_forget - 1) / 2)
    told_apart = 1 - float((counts * (counts**2 - 1.0)).sum()) / (n * (n**2 - 1.0))
    return ModelTest(round(above), n_couples, 2 * above / n_couples - 1, *tails, RANKS, told_apart)


def pairs_test(says_forget: Bools, in_forget: Bools, pair: Ints) -> ModelTest:
    """Of matched pairs, one point of each drawn into F by a fair coin: binomial over the pairs that were told apart."""
    says, forget = _checked(says_forget, in_forget)
    ids, place = np.unique(pair, return_inverse=True)
    if not (np.bincount(place) == 2).all() or not (np.bincount(place, weights=forget) == 1).all():
        raise ValueError("each pair must have two points, one of F and one of T")
    told = np.bincount(place, weights=says) == 1
    right = np.bincount(place, weights=says & forget) == 1
    return pairs_counted(int((told & right).sum()), int(told.sum()), len(ids))


def pairs_counted(n_right: int, n_told: int, n_pairs: int) -> ModelTest:
    """The same by the numbers of pairs that were told rightly, told at all, and drawn."""
    advantage = (2 * n_right - n_told) / n_pairs
    return ModelTest(n_right, n_told, advantage, *_tails(n_right, _log_binomial(n_told)), PAIRS, n_told / n_pairs)


def groups_test(says_forget: Bools, in_forget: Bools, group: Ints) -> ModelTest:
    """Of groups of points (a person's records), F a random choice of groups: each group counts by its mean answer.

    The means are rounded to a grid that is fixed by the number of groups, so that the distribution of their sum over a
    random choice of groups can be computed exactly.
    """
    says, forget = _checked(says_forget, in_forget)
    ids, place = np.unique(group, return_inverse=True)
    share = group_means(forget, place)  # of each group, how much of it is in F
    if not ((share == 0) | (share == 1)).all():
        raise ValueError("the points of a group must all be in F or all in T")
    means, chosen = group_means(says, place), share > 0
    tails = _tails_over_choice(np.rint(means * _levels(len(ids))).astype(np.int64), chosen)
    right = int((says & forget).sum() + (~says & ~forget).sum())
    advantage, told = float(means[chosen].mean() - means[~chosen].mean()), _told_by(float(means.mean()))
    return ModelTest(right, len(says), advantage, *tails, GROUPS, told)


N_ANSWERS = {ANSWERS: 2.0, RANKS: 1.5, TOP: 1.5, PAIRS: 1.0, GROUPS: 2.0}
"""As many independent answers for each unit (point, pair, group) on each side have the variance of the advantage.

Of answers about a half it is 1/2n by chance, of ranks 2/3n, of n pairs, each told by one answer, 1/n. These are the
largest: it is less where few points are called forgotten, or not all pairs are told apart, or the points of a group,
whatever their number, are answered differently. The largest scores are counted as ranks, which is too many.
"""


# -- what follows from it ----------------------------------------------------------------------------------------------


def log10_p_of_best(log10_ps: Collection[float]) -> float:
    """log10 p of the most telling of several tests, corrected for the choice among them (Bonferroni)."""
    if not log10_ps:
        raise ValueError("the best of no adversaries is nobody")
    return min(0.0, math.log10(len(log10_ps)) + min(log10_ps))


def log_p_of_most_visible(outcomes: Sequence[PairOutcome], n_looks: int = 1) -> tuple[float, int]:
    """(ln p of the model and adversary that show F most, corrected for the choice among all of them; models asked).

    Every model of a swap pair is one with its own F, so each alone is tested as `half_test` has it (`groups_test` where
    groups were drawn), and however they depend on each other, Bonferroni's rule holds. The candidates are found by
    their distance from chance in standard deviations; the exact tail is taken of a few of them alone, which can only
    make p larger. Where the number of pairs was chosen after a look at some of them, those before and those after each
    have half of the error: two `n_looks`.
    """
    tests, distances, n_models, n_candidates = [], [], 0, _CANDIDATES
    for outcome in outcomes:
        if outcome.decisions is None:
            continue
        n_models += outcome.decisions.shape[0] * outcome.decisions.shape[1]
        n_candidates = _CANDIDATES if outcome.grouped is None else _CANDIDATES_OF_GROUPS
        for says, forget in zip(outcome.decisions, outcome.sides, strict=True):
            distances.append(_from_chance(says, forget, outcome.grouped))
            tests += [(says[seed, :, at], forget, outcome.grouped) for seed, at in np.ndindex(distances[-1].shape)]
    if not tests:
        return 0.0, 0
    furthest = np.argsort(-np.concatenate([each.ravel() for each in distances]), kind="stable")[:n_candidates]
    return min(0.0, math.log(n_looks * len(tests)) + min(_drawn(*tests[which]).log_p for which in furthest)), n_models


def _from_chance(says: Bools, forget: Bools, grouped: Grouped | None) -> Floats:
    """(seeds, adversaries) how far the answers about F, (seeds, points, adversaries), are from those about all, in
    standard deviations of a random draw of the 2k points or groups."""
    k = len(forget) // 2
    if grouped is None:
        n_said = says.sum(axis=1)
        spread = np.sqrt(np.maximum(n_said * (2 * k - n_said) / (4 * (2 * k - 1)), 1e-12))
        return np.asarray(np.abs(says[:, forget].sum(axis=1) - n_said / 2) / spread)
    means = np.stack([group_means(one, grouped.group) for one in says])  # (seeds, 2k, adversaries)
    spread = np.sqrt(np.maximum(means.var(axis=1) * k * k / (2 * k - 1), 1e-12))
    return np.asarray(np.abs(means[:, forget].sum(axis=1) - means.sum(axis=1) / 2) / spread)


def _drawn(says: Bools, forget: Bools, grouped: Grouped | None) -> ModelTest:
    """The test that fits the draw: of points, or of groups, of which ``forget`` says who is in F."""
    return half_test(says, forget) if grouped is None else groups_test(says, forget[grouped.group], grouped.group)


def group_epsilon(log_p: float, *, level: float = 0.95, delta: float = 0.0, n_models: int = 1) -> float:
    """With confidence `level`, any (ε, δ)-certified removal of all of F has at least this ε: ln((1 − level − δ)/p).

    Of the most visible of several models δ counts once for each: the chance that any of M has p ≤ t/M is at most
    e^ε t + M δ.
    """
    room = 1 - level - n_models * delta
    return max(0.0, math.log(room) - log_p) if room > 1e-12 else 0.0


def point_epsilon(n_right: int, n_asked: int, *, level: float = 0.95) -> float:
    """With confidence `level`, an unlearner that hides each point by ε and δ = 0 has at least this ε.

    For matched pairs alone: exchanging the points of one pair costs 2ε, so the right answers are at most
    Binomial(n, e^{2ε}/(1 + e^{2ε})), of which the exact lower confidence bound is taken.
    """
    right = max(n_right, n_asked - n_right)  # turned round it tells as much, at twice the chance
    rate = float(betaincinv(right, n_asked - right + 1, (1 - level) / 2))
    return 0.5 * math.log(rate / (1 - rate)) if rate > 0.5 else 0.0


# -- exact distributions -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def log_hypergeometric(n: int, n_marked: int, n_drawn: int) -> Floats:
    """ln P(x marked among the drawn), x from the smallest possible to the largest."""
    x = np.arange(max(0, n_drawn + n_marked - n), min(n_marked, n_drawn) + 1)
    return _log_choose(n_marked, x) + _log_choose(n - n_marked, n_drawn - x) - _log_choose(n, n_drawn)


@lru_cache(maxsize=64)
def _log_binomial(n: int) -> Floats:
    return _log_choose(n, np.arange(n + 1)) - n * math.log(2)


def _log_choose(n: int, k: Ints | int) -> Floats:
    result: Floats = gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1)
    return result


def _levels(n: int) -> int:
    """How finely values between 0 and 1 are told in a sum over a choice of so many."""
    return int(min(_FINEST, max(1, _LARGEST_GRID // n)))


def _tails_over_choice(values: Ints, chosen: Bools) -> tuple[float, float]:
    """(ln P(sum ≥), ln P(sum ≤) the sum of the chosen values) of a uniformly random choice of as many."""
    n_chosen, at = int(chosen.sum()), int(values[chosen].sum())
    most = int(values.max())
    if most > 1 and len(values) * n_chosen**2 * most > _LARGEST_TABLE:
        if at * len(values) >= n_chosen * int(values.sum()):
            return _tails_by_waves(values, n_chosen, at)
        below, above = _tails_by_waves(most - values, n_chosen, most * n_chosen - at)  # turned round
        return above, below
    return _tails(at, _log_sums(np.sort(values).tobytes(), n_chosen))  # sorted: the same ranks are met again


def _tails_by_waves(values: Ints, n_chosen: int, at: int) -> tuple[float, float]:
    """The same for a sum that is not below its mean, exact up to the rounding of a computer's numbers.

    Choose each unit by itself with the odds e^{a + λv} of its value v: given that m are chosen in all, a choice of the
    sum t has e^{λt} times its chance among equally likely ones, up to a factor that is known. With the a and λ at which
    m and the sum seen are the means, the chances of both together are large where they are needed, however small the
    tail is, and follow from their characteristic function. It is added up on a grid that is as fine as no more than
    e^−40 of all lies outside what it tells apart (Bernstein's inequality), and without those points of it at which it
    is below that.
    """
    kinds, counts = np.unique(values, return_counts=True)
    intercept, slope = _odds_for(kinds, counts, n_chosen, at)
    chance = expit(intercept + slope * kinds)
    near = _chances_above(kinds, counts, chance, n_chosen, at)
    factor = float(counts @ np.logaddexp(0, intercept + slope * kinds)) - n_chosen * intercept - slope * at
    factor -= float(_log_choose(len(values), n_chosen))
    log_p_above = min(0.0, factor + math.log(float(near @ np.exp(-slope * np.arange(len(near))))))
    below = 1 - math.exp(log_p_above) + math.exp(factor) * float(near[0])
    return log_p_above, min(0.0, math.log(below))


def _odds_for(kinds: Ints, counts: Ints, n_chosen: int, at: int) -> tuple[float, float]:
    """(a, λ ≥ 0) with which n_chosen are chosen on average, with this sum, or nearly: λ is 40 at most."""

    def intercept_for(slope: float) -> float:
        low, high = -slope * float(kinds[-1]) - _UNSEEN, _UNSEEN
        for _ in range(60):
            middle = (low + high) / 2
            few = counts @ expit(middle + slope * kinds) < n_chosen
            low, high = (middle, high) if few else (low, middle)
        return (low + high) / 2

    low, high = 0.0, _UNSEEN
    for _ in range(60):
        middle = (low + high) / 2
        small = (counts * kinds) @ expit(intercept_for(middle) + middle * kinds) < at
        low, high = (middle, high) if small else (low, middle)
    return intercept_for(low), low


def _chances_above(kinds: Ints, counts: Ints, chance: Floats, n_chosen: int, at: int) -> Floats:
    """P(n_chosen are chosen, with the sum at + d), d = 0, 1, …, where each unit is chosen by itself with its chance."""
    spread = counts * chance * (1 - chance)
    order = np.argsort(-spread, kind="stable")  # of what tells most, first: most points of the grid need no more
    kinds, counts, chance, spread = kinds[order], counts[order], chance[order], spread[order]
    centre = round(float(spread @ kinds) / float(spread.sum())) if spread.sum() > 0 else 0
    shifted = kinds - centre
    n_counts, wide = _reach(1, float(spread.sum())), _reach(float(np.abs(shifted).max()), float(spread @ shifted**2))
    step = -(-(2 * wide + 1) // n_counts)
    n_sums = step * n_counts  # the grid's two sides: counts and sums are told apart up to multiples of these
    angle = 2 * np.pi * np.arange(n_sums) / n_sums
    size = 0.5 * np.log(np.maximum(1 - 4 * np.outer(chance * (1 - chance), np.sin(angle / 2) ** 2), 1e-300))
    turn = np.arctan2(np.outer(chance, np.sin(angle)), 1 - np.outer(chance, 1 - np.cos(angle)))
    total = np.zeros(n_sums // 2 + 1, dtype=np.complex128)
    for row in range(n_counts):
        column, log_size = np.arange(len(total)), np.zeros(len(total))
        for kind, shift in enumerate(shifted.tolist()):
            log_size += counts[kind] * size[kind, (step * row + shift * column) % n_sums]
            kept = log_size > -_UNSEEN
            column, log_size = column[kept], log_size[kept]
        phase = -angle[(step * row * n_chosen + (at - centre * n_chosen) * column) % n_sums]
        for kind, shift in enumerate(shifted.tolist()):
            phase += counts[kind] * turn[kind, (step * row + shift * column) % n_sums]
        total[column] += np.exp(log_size + 1j * phase)
    found: Floats = np.fft.irfft(total.conj(), n_sums)[: wide + 1] / n_counts
    return np.maximum(found, 0)


def _reach(largest: float, variance: float) -> int:
    """How far from its mean a sum of independent parts, each at most so large, is with a chance below e^−40."""
    part = largest * _UNSEEN / 3
    return math.ceil(part + math.sqrt(part**2 + 2 * variance * _UNSEEN))


@lru_cache(maxsize=16)
def _log_sums(ascending: bytes, n_chosen: int) -> Floats:
    """ln P(sum = 0, 1, …) of the values of a uniformly random choice; below 1e-308 a chance counts as that."""
    values = np.frombuffer(ascending, dtype=np.int64)
    n, most = len(values), int(values[len(values) - n_chosen :].sum())
    if values.max(initial=0) <= 1:
        n_ones = int(values.sum())
        impossible = np.full(max(0, n_chosen + n_ones - n), -np.inf)
        return np.concatenate([impossible, log_hypergeometric(n, n_ones, n_chosen)])
    table = np.zeros((n_chosen + 1, most + 1))  # chance of (how many are chosen so far, their sum)
    table[0, 0] = 1
    sums = np.concatenate([[0], np.cumsum(values)])
    for seen, value in enumerate(values.tolist()):  # ascending: only what can be reached so far, and can still end
        least, most_so_far, before = max(0, n_chosen - (n - seen)), min(seen, n_chosen), min(seen, n_chosen - 1)
        counts = np.arange(least, most_so_far + 1)
        chance = ((n_chosen - counts) / (n - seen)).clip(0, 1)[:, None]
        reach, joining = (int(sums[seen] - sums[seen - chosen]) + 1 for chosen in (most_so_far, before))
        joined = table[least : before + 1, :joining] * chance[: before + 1 - least]
        table[least : most_so_far + 1, :reach] *= 1 - chance
        table[least + 1 : before + 2, value : value + joining] += joined
    result: Floats = np.log(np.maximum(table[n_chosen], np.finfo(np.float64).tiny))
    return result


def _tails(at: int, log_chances: Floats) -> tuple[float, float]:
    """(ln P(X ≥ at), ln P(X ≤ at)), each at most 0."""
    return _log_of_sum(log_chances[at:]), _log_of_sum(log_chances[: at + 1])


def _log_of_sum(log_chances: Floats) -> float:
    largest = float(log_chances.max())
    return min(0.0, largest + math.log(float(np.exp(log_chances - largest).sum())))


def _checked(says_forget: Bools, in_forget: Bools) -> tuple[Bools, Bools]:
    says, forget = frozen_bools(says_forget, "answers"), frozen_bools(in_forget, "the draw")
    if says.shape != forget.shape or says.ndim != 1:
        raise ValueError(f"{says.shape} answers do not fit a draw of {forget.shape} points")
    if forget.all() or not forget.any():
        raise ValueError("a draw needs points in F and points in T")
    return says, forget
