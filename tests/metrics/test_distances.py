"""Distances to Retrain against the formula and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax as scipy_log_softmax
from scipy.special import rel_entr, softmax

from forgetgauge.metrics.scores import log_softmax, mean_kl


def logits(seed: int, n: int = 20, classes: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=3, size=(n, classes)).astype(np.float32)


def test_kl_is_the_formula():
    p, q = (softmax(logits(seed).astype(np.float64), axis=1) for seed in (0, 1))
    weight = np.random.default_rng(2).uniform(size=20)
    expected = np.average(rel_entr(p, q).sum(axis=1), weights=weight)
    assert mean_kl(logits(0), logits(1), weight) == pytest.approx(expected, rel=1e-12)


def test_the_direction_is_from_retrain_to_the_method():
    sure, unsure = np.array([[10.0, 0.0]]), np.array([[0.0, 0.0]])
    assert mean_kl(sure, unsure, [1.0]) == pytest.approx(np.log(2), abs=1e-3)
    assert mean_kl(unsure, sure, [1.0]) > 4


def test_kl_to_itself_is_0_and_a_shift_of_all_logits_changes_nothing():
    assert mean_kl(logits(0), logits(0), np.ones(20)) == 0
    assert mean_kl(logits(0), logits(0).astype(np.float64) + 5, np.ones(20)) == pytest.approx(0, abs=1e-12)


def test_large_logits_do_not_overflow():
    huge = np.array([[1e4, -1e4], [3e4, 0.0]])
    np.testing.assert_allclose(log_softmax(huge), scipy_log_softmax(huge, axis=1))
    assert mean_kl(huge, -huge, np.ones(2)) == pytest.approx(25000)


def test_points_without_weight_do_not_count():
    weight = np.array([1.0] * 10 + [0.0] * 10)
    assert mean_kl(logits(0), logits(1), weight) == pytest.approx(mean_kl(logits(0)[:10], logits(1)[:10], np.ones(10)))


@pytest.mark.parametrize(
    ("first", "second", "weight", "words"),
    [
        (logits(0), logits(1)[:5], np.ones(20), "same points"),
        (logits(0), logits(1), np.ones(3), "same points"),
        (logits(0), logits(1), np.zeros(20), "no mass"),
        (logits(0) * np.nan, logits(1), np.ones(20), "finite"),
    ],
)
def test_what_makes_no_sense_is_refused(first, second, weight, words):
    with pytest.raises(ValueError, match=words):
        mean_kl(first, second, weight)
