"""How small an advantage the tests of one model would have seen, with a power of 80 %."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import gammaln, ndtri

from forgetgauge.game.one_model import N_ANSWERS, PAIRS, RANKS, TOP
from forgetgauge.results.verdict import COARSE, POWER_80

Kind = tuple[str, float]
"""A test by its kind, and how much its ties leave of it (`ModelTest.told`)."""


def resolution_of(tests: Sequence[Kind], n_units: float, level: float) -> float:
    """The advantage that each of these tests sees with a power of 80 % among so many of them, at most 1; infinity where
    the units are so few that one of them sees nothing, even if every answer is right.

    The one that sees least decides, so that it is true of every adversary; tests of the largest scores alone, whose
    advantage cannot be large, are not asked, nor are those that ties make blunt, if there are others.
    """
    asked = [test for test in tests if test[0] != TOP] or [(RANKS, 1.0)]
    sharp = [test for test in asked if not is_blunt(test, len(tests), n_units, level)]
    return max(_seen_by(test, len(tests), n_units, level) for test in sharp or asked)


def is_blunt(test: Kind, n_tests: int, n_units: float, level: float) -> bool:
    """Whether it sees too little for a verdict, but for its ties would see enough."""
    by, _ = test
    alone, without_ties = (_seen_by(one, n_tests, n_units, level) for one in (test, (by, 1.0)))
    return by != TOP and alone > COARSE >= without_ties


def _seen_by(test: Kind, n_tests: int, n_units: float, level: float) -> float:
    """By the normal law with the variance of its kind; and since a number of right answers must be whole, half an
    answer more."""
    by, told = test
    n_told = told * n_units
    if _least_log_p(by, n_told) > math.log((1 - level) / n_tests) + 1e-12:
        return math.inf
    threshold = -ndtri((1 - level) / (2 * n_tests))
    seen = (threshold + POWER_80) / math.sqrt(N_ANSWERS[by] * n_told) + (0 if by == RANKS else 1 / n_told)
    return float(min(1.0, seen))


def _least_log_p(by: str, n_told: float) -> float:
    """ln of the two-sided p where every answer is right: one of all choices of F, or of all tosses of the pairs' coins,
    and its opposite."""
    if by == PAIRS:
        return (1 - n_told) * math.log(2)
    return float(math.log(2) + 2 * gammaln(n_told + 1) - gammaln(2 * n_told + 1))
