"""Kendall's τ between columns and its bootstrap interval, against every resample there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from forgetgauge.game.comparison import kendall_tau
from forgetgauge.suites.rankings import bootstrap_tau, every_two


def column(qualities: dict[str, float], noise: float = 0.0, pairs: int = 6, seed: int = 0) -> dict[str, np.ndarray]:
    """One adversary; advantages of the pairs scatter around 1 − Q, and have it as their mean."""
    rng = np.random.default_rng(seed)
    found = {}
    for method, quality in qualities.items():
        scatter = rng.normal(0, noise, (pairs, 1))
        found[method] = 1 - quality + scatter - scatter.mean()
    return found


RANKED = {"a": 0.2, "b": 0.4, "c": 0.6, "d": 0.8}


def test_columns_without_noise_agree_for_certain_or_not_at_all():
    same = bootstrap_tau([column(RANKED), column(RANKED)], [(0, 1)])
    assert (same.value, same.interval) == (1.0, (1.0, 1.0))
    reverse = bootstrap_tau([column(RANKED), column({m: 1 - q for m, q in RANKED.items()})], [(0, 1)])
    assert (reverse.value, reverse.interval) == (-1.0, (-1.0, -1.0))


def test_tau_is_averaged_over_couples():
    columns = [column(RANKED), column(RANKED), column({m: 1 - q for m, q in RANKED.items()})]
    assert bootstrap_tau(columns, every_two(3)).value == pytest.approx((1 - 1 - 1) / 3)
    assert bootstrap_tau(columns, [(0, 1)]).value == 1.0


def test_the_interval_is_that_of_every_resample():
    """5⁵ resamples of one noisy column against one without noise: the percentiles, exactly."""
    noisy, still = column(RANKED, noise=0.25, pairs=5, seed=3), column(RANKED, pairs=5)
    order = np.array(list(RANKED.values()))
    taus = []
    for drawn in product(range(5), repeat=5):
        qualities = np.array([1 - abs(noisy[m][list(drawn), 0].mean()) for m in RANKED])
        taus.append(kendall_tau(qualities, order))
    values, counts = np.unique(np.round(taus, 9), return_counts=True)
    share = np.cumsum(counts) / counts.sum()
    low, high = values[np.searchsorted(share, 0.025)], values[np.searchsorted(share, 0.975)]
    assert -1 < low < high <= 1
    found = bootstrap_tau([noisy, still], [(0, 1)])
    assert found.interval == pytest.approx((low, high))
    assert found.interval[0] <= found.value <= found.interval[1]


def test_an_adversary_is_chosen_anew_in_every_draw():
    """Two adversaries that cancel over pairs: the largest mean counts, not the mean of the largest."""
    split = {m: np.column_stack([x, -x]) for m, x in zip(RANKED, [np.zeros(6)] * 4, strict=True)}
    split["a"] = np.array([[0.5, 0.1], [-0.5, 0.1]] * 3)
    split["b"] = np.array([[0.2, 0.0]] * 6)
    split["c"] = np.array([[0.3, 0.0]] * 6)
    split["d"] = np.array([[0.4, 0.0]] * 6)
    still = column({"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6})
    assert bootstrap_tau([split, still], [(0, 1)]).value == 1.0


def test_below_five_pairs_there_is_no_interval_and_below_three_methods_no_ranking():
    assert bootstrap_tau([column(RANKED, pairs=4), column(RANKED)], [(0, 1)]).interval is None
    assert bootstrap_tau([column({"a": 0.1, "b": 0.2})] * 2, [(0, 1)]) is None
    assert bootstrap_tau([column(RANKED)], every_two(1)) is None


def test_methods_that_missed_a_pair_of_a_column_are_not_ranked():
    short = column(RANKED)
    short["b"] = short["b"][:4]
    assert bootstrap_tau([short, column(RANKED)], [(0, 1)]).methods == ("a", "c", "d")


def test_equal_methods_seldom_change_places():
    """Of 4,000 games like these none was called otherwise; 20 are looked at here."""
    rng = np.random.default_rng(1)
    columns = [[{m: 0.5 + 0.02 * rng.standard_normal((6, 4)) for m in "abcdef"} for _ in range(4)] for _ in range(20)]
    found = [bootstrap_tau(game, every_two(4)) for game in columns]
    assert all(tau is not None and not tau.exchanged for tau in found)


def test_methods_that_change_places_are_named():
    def column(gap: float):
        rng = np.random.default_rng(2)
        noise = 0.01 * rng.standard_normal((3, 6, 1))
        return {m: 0.5 + offset + own for m, offset, own in zip("abc", (0.0, gap, 0.3), noise, strict=True)}

    found = bootstrap_tau([column(0.1), column(-0.1)], every_two(2))
    assert found is not None
    assert found.exchanged == (("a", "b"),)
    assert found.kept == (("a", "c"), ("b", "c"))
    close = bootstrap_tau([column(0.1), column(0.001)], every_two(2))
    assert close is not None
    assert (close.exchanged, close.kept) == ((), (("a", "c"), ("b", "c")))
