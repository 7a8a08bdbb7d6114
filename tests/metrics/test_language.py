"""What is quoted of language models, each against a second way to it: scipy, scikit-learn, enumeration."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

from forgetgauge.metrics.language import ks_p_value, privleak


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 7), (5, 5), (12, 9), (40, 40), (73, 31), (150, 150)])
@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
def test_the_p_value_is_scipys_exact_one(m, n, shift):
    rng = np.random.default_rng(m * n)
    first, second = rng.normal(size=m), rng.normal(size=n) + shift
    expected = ks_2samp(first, second, method="exact")
    assert ks_p_value(first, second) == pytest.approx(expected.pvalue, rel=1e-8)


def test_a_tiny_p_value_keeps_its_digits():
    """Samples that do not overlap: two of all C(2n, n) orders are as far apart."""
    n = 200
    assert ks_p_value(np.arange(n), np.arange(n) + 1000.0) == pytest.approx(2 / math.comb(2 * n, n), rel=1e-9)


def test_ties_are_taken_as_scipy_takes_them():
    first, second = [1, 1, 2, 2, 3, 3, 3], [1, 2, 2, 2, 3, 4]
    assert ks_p_value(first, second) == pytest.approx(ks_2samp(first, second, method="exact").pvalue, rel=1e-9)


def test_the_p_value_is_the_share_of_all_orders_that_are_as_far_apart():
    values = np.arange(8)

    def distance(chosen):
        rest = np.setdiff1d(values, chosen)
        return max(abs((np.array(chosen) <= t).mean() - (rest <= t).mean()) for t in values)

    every = list(combinations(range(8), 3))
    first = (0, 1, 4)
    expected = np.mean([distance(chosen) >= distance(first) - 1e-12 for chosen in every])
    assert ks_p_value(first, np.setdiff1d(values, first)) == pytest.approx(expected)


def test_two_models_that_say_the_same_of_all_records_have_a_p_value_of_one():
    losses = np.random.default_rng(0).exponential(size=50)
    assert ks_p_value(losses, losses) == 1.0


def test_the_test_is_blind_to_changes_that_leave_the_distribution_as_it_is():
    """Half of the records are remembered better, half worse: every record gives itself away, and p says 1."""
    losses = np.linspace(1, 2, 100)
    assert ks_p_value(losses, losses[::-1]) == 1.0


@pytest.mark.parametrize("sample", [[], [[1.0]], [np.nan]])
def test_a_sample_is_a_list_of_finite_numbers(sample):
    with pytest.raises(ValueError, match="sample"):
        ks_p_value(sample, [1.0])


def test_privleak_is_the_relative_difference_of_the_aucs_of_non_membership():
    """As MUSE has it: AUC with the hold-out set as the positive class, which under-unlearned models make small."""
    rng = np.random.default_rng(3)
    holdout = np.repeat([False, True], 50)
    loss, loss_of_retrain = rng.normal(size=100) + holdout, rng.normal(size=100)
    own, usual = (roc_auc_score(~holdout, -one) for one in (loss, loss_of_retrain))
    published = roc_auc_score(~holdout, loss), roc_auc_score(~holdout, loss_of_retrain)
    assert privleak(own, usual) == pytest.approx((published[0] - published[1]) / published[1])
    assert privleak(own, usual) < 0


def test_privleak_is_minus_one_where_f_is_known_for_certain_and_zero_for_retrain():
    assert privleak(1.0, 0.5) == -1
    assert privleak(0.47, 0.47) == 0
    assert math.isnan(privleak(0.5, 1.0))
    with pytest.raises(ValueError, match="AUC"):
        privleak(1.2, 0.5)
