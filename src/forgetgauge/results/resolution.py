"""How small an advantage would have been seen, with a power of 80 %: by the tests of one model, and in a game."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

from scipy.special import gammaln, ndtri

from forgetgauge.game.intervals import MIN_PAIRS
from forgetgauge.game.one_model import N_ANSWERS, PAIRS, RANKS, TOP
from forgetgauge.results.assessed import USUAL
from forgetgauge.results.record import GameResult, MethodResult, role_of
from forgetgauge.results.silence import drawn_in, least_seen

COARSE = 0.5
"""A resolution above this says nothing: three quarters of all answers could be right without being seen."""
NEARLY_SILENT = 0.5
"""Of Retrain's noise floor; methods whose attackers answer as freely have nine tenths of it or more."""
POWER_80 = 0.8416
"""Standard errors above the noise floor at which four of five runs lie above it."""

Kind = tuple[str, float]
"""A test by its kind, and how much its ties leave of it (`ModelTest.told`)."""


# -- of one model ------------------------------------------------------------------------------------------------------


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


# -- in a game ---------------------------------------------------------------------------------------------------------


def resolution_on(game: GameResult, name: str) -> float | None:
    """The advantage that would have been seen with a power of 80 %: the noise floor at the level of the game, and 0.84
    standard errors more. What few answers show is less sure than that (`_by_its_own_answers`, `least_seen`).

    Where not even relabelling gives an advantage, since every attacker answers alike on both sides, none would be;
    where attackers call everybody unseen, and that is an answer, it is what would surely have broken their silence.
    Attackers who answer nearly alike see no more than those of Retrain's models, though chance gives them less; one
    retrained model that serves both sides says nothing about chance.
    """
    method = game.methods[name]
    if method.noise_floor is None or method.adversary is None:
        return None
    chance = _chance(method)
    if chance == 0:
        return _floor_of(game, name, 1.0)
    retrained = [one for one in game.methods if role_of(game, one) == "retrain" and not game.spec.get("share_retrain")]
    usual = max((_floor_of(game, one, 0.0) for one in retrained), default=0.0)
    floor = usual if chance < NEARLY_SILENT * usual else chance
    seen = floor + POWER_80 * _error(game, method)
    few = [_by_its_own_answers(game, name), least_seen(game, name)] if drawn_in(game, name) else []
    return min(1.0, max([seen, *few]))


def _chance(method: MethodResult) -> float:
    """What relabelling gives at the level of the game."""
    return method.noise_at_level if method.noise_at_level is not None else method.noise_floor or 0.0


def _error(game: GameResult, method: MethodResult) -> float:
    """The standard error of the best adversary's advantage: over pairs, and where these are few that of points too."""
    best = method.by_adversary.get(method.adversary or "")
    if best is None:
        return 0.0
    n_pairs, (low, high) = len(best.by_pair), best.interval
    over_pairs = stdev(best.by_pair) / math.sqrt(n_pairs) if n_pairs > 1 else 0.0
    if n_pairs >= MIN_PAIRS:
        return over_pairs
    if game.spec.get("interval") == "bounded":  # which knows nothing of points: chance does
        return max(over_pairs, _chance(method) / _deviations(game, len(method.by_adversary)))
    return max(over_pairs, (high - low) / 2 / _deviations(game, 1))


def _deviations(game: GameResult, n_adversaries: int) -> float:
    """How many standard errors from 0 chance puts the best of so many, on either side, at the level of the game."""
    return float(ndtri(1 - (1 - confidence_of(game)) / 2 / max(1, n_adversaries)))


def _by_its_own_answers(game: GameResult, name: str) -> float:
    """The advantage that one adversary alone shows with a power of 80 %, the answers that make it counted.

    What few answers make is beyond the noise floor of before, but not beyond what relabelling makes of these answers.
    Of n points chance tells K apart, √K/n being the noise floor in standard errors; D more that are told right make it
    √(K + hD)/n, h = 1 where few are told apart and 0 where half are. D = (1.96 + 0.84) √(K + hD) is seen.
    """
    method, n_drawn = game.methods[name], drawn_in(game, name)
    told = (n_drawn * _chance(method) / _deviations(game, len(method.by_adversary))) ** 2
    power = (_deviations(game, 1) + POWER_80) ** 2
    growth = power * math.sqrt(max(0.0, 1 - 2 * told / n_drawn))
    return (growth + math.sqrt(growth**2 + 4 * power * told)) / 2 / n_drawn


def _floor_of(game: GameResult, name: str, without: float) -> float:
    """The noise floor; where there is none, what would have broken a silence that counts, or else ``without``."""
    method = game.methods[name]
    return _chance(method) or (least_seen(game, name) if method.silence_counts else without)


def confidence_of(game: GameResult) -> float:
    """Its confidence level."""
    return float(game.spec.get("level", USUAL))
