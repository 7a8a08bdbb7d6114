"""Estimates over pairs, steps beyond intervals, agreement of rankings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from forgetgauge.metrics.checks import SweepSteps, is_grounded, mean_tau, steps_of
from forgetgauge.metrics.scores import over_pairs


def test_the_interval_is_students_over_pairs():
    values = [0.2, 0.5, 0.4, 0.9, 1.5, 0.1]
    found = over_pairs(values, 0.9)
    low, high = stats.t.interval(0.9, 5, np.mean(values), stats.sem(values))
    assert found.value == pytest.approx(np.mean(values))
    assert found.interval == pytest.approx((low, high), rel=1e-8)


def test_an_interval_ends_where_the_score_cannot_be():
    assert over_pairs([1.0, 0.9, 1.0, 0.9, 1.0], least=0, most=1).interval[1] == 1


def test_below_five_pairs_there_is_no_interval():
    assert over_pairs([0.1, 0.2, 0.3, 0.4]).interval is None
    assert over_pairs([1.0] * 6).interval is None  # a spread of 0 would be certainty
    assert over_pairs([0.1]).value == 0.1
    with pytest.raises(ValueError, match="at least one"):
        over_pairs([])


def test_tau_is_scipys_averaged_over_every_two_values():
    scores = np.random.default_rng(0).integers(0, 5, size=(4, 8)).astype(float)  # with ties
    expected = np.mean([stats.kendalltau(one, other).statistic for one, other in combinations(scores, 2)])
    assert mean_tau(scores) == pytest.approx(expected)


def test_tau_of_values_that_rank_alike_is_1_and_of_opposites_minus_1():
    assert mean_tau([[1, 2, 3], [10, 20, 30]]) == 1
    assert mean_tau([[1, 2, 3], [3, 2, 1]]) == -1
    assert mean_tau([[1, 1, 1], [3, 2, 1]]) == 0
    assert mean_tau([[1, 2, 3]]) is None
    assert mean_tau([[1], [2]]) is None


TABLES = {  # the paper's at ε = 50, 150, 600, ∞: None, NegGrad, Retr-final, Ft-final, Fisher, SalUn, SSD, Retrain
    "Q": [
        (0.972, 0.960, 0.932, 0.587), (0.980, 0.975, 0.953, 0.628), (0.972, 0.964, 0.939, 0.576),
        (0.973, 0.963, 0.939, 0.574), (0.973, 0.967, 0.942, 0.709), (0.979, 0.972, 0.945, 0.689),
        (0.996, 0.988, 0.981, 0.888), (0.998, 0.996, 0.997, 0.993),
    ],
    "IC": [
        (0.749, 0.720, 0.717, 0.005), (0.925, 0.953, 0.946, 0.180), (0.931, 0.958, 0.893, 0.033),
        (0.930, 0.957, 0.893, 0.346), (0.743, 0.720, 0.702, 0.344), (0.866, 0.887, 0.841, 0.081),
        (0.976, 1.000, 0.990, 0.174), (0.962, 0.972, 0.976, 0.975),
    ],
    "MIA": [
        (0.451, 0.433, 0.454, 0.380), (0.476, 0.482, 0.466, 0.299), (0.485, 0.485, 0.472, 0.248),
        (0.485, 0.485, 0.472, 0.247), (0.475, 0.484, 0.463, 0.325), (0.488, 0.491, 0.477, 0.268),
        (0.480, 0.480, 0.468, 0.244), (0.479, 0.491, 0.492, 0.488),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("table", "tau", "out_of_order"), [("Q", 0.78, 1), ("IC", 0.56, 6), ("MIA", 0.26, 5)])
def test_in_the_papers_own_tables_q_is_more_consistent_and_more_monotone_than_its_rivals(table, tau, out_of_order):
    rows = TABLES[table]
    assert mean_tau(np.array(rows).T) == pytest.approx(tau, abs=0.005)
    assert sum(steps_of([[(value, None) for value in row]]).rises > 0 for row in rows) == out_of_order


def test_steps_are_counted_and_those_beyond_intervals_apart():
    falling = [(0.9, (0.85, 0.95)), (0.7, (0.65, 0.75)), (0.68, (0.6, 0.76))]
    rising = [(0.1, (0.0, 0.2)), (0.5, (0.4, 0.6)), (0.5, (0.4, 0.6))]
    assert steps_of([falling, rising]) == SweepSteps(rises=1, falls=2, sure_rises=1, sure_falls=1, total=4)


def test_without_intervals_no_step_is_sure():
    assert steps_of([[(0.1, None), (0.9, None)]]) == SweepSteps(1, 0, 0, 0, 1)


def test_grounded_is_an_interval_that_holds_the_ideal():
    assert is_grounded((0.4, 0.5), 0.5)
    assert not is_grounded((0.4, 0.49), 0.5)
