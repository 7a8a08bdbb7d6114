import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forgetgauge.game import student

DEGREES = [0.5, 0.7, 1, 1.5, 2, 3, 4, 7, 7.3, 15, 29.9, 30, 30.1, 100, 999.5, 1e4, 1e5, 1e6]
PROBABILITIES = [1e-6, 1e-5, 1e-3, 0.025, 0.2, 0.4, 0.49, 0.4999, 0.5, 0.500001, 0.6, 0.9, 0.975, 0.999, 1 - 1e-6]


@pytest.mark.parametrize("df", DEGREES)
def test_quantiles_agree_with_scipy(df):
    ours = np.array([student.quantile(p, df) for p in PROBABILITIES])
    assert ours == pytest.approx(stats.t.ppf(PROBABILITIES, df), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("df", DEGREES)
def test_the_distribution_function_agrees_with_scipy(df):
    points = [-1e4, -30, -5, -2, -0.7, -1e-3, -1e-9, 0, 1e-200, 0.1, 1, 1.96, 4, 12, 100, 1e6]
    ours = np.array([student.cdf(t, df) for t in points])
    assert ours == pytest.approx(stats.t.cdf(points, df), abs=1e-9)


@given(st.floats(0.5, 1e6), st.floats(1e-6, 1 - 1e-6))
def test_quantile_inverts_the_distribution_function(df, p):
    assert student.cdf(student.quantile(p, df), df) == pytest.approx(p, abs=1e-11)
    assert student.quantile(p, df) == pytest.approx(float(stats.t.ppf(p, df)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("t", [-1e9, -3, -1e-8, 1e-12, 1e-8, 1e-3, 0.5, 2, 1e5])
def test_one_degree_of_freedom_is_cauchy_and_two_have_a_closed_form(t):
    assert student.cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-14)
    assert student.cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-14)


def test_the_ends_of_the_line():
    assert student.cdf(math.inf, 3) == 1
    assert student.cdf(-math.inf, 3) == 0
    assert student.cdf(1e200, 3) == 1
    assert student.quantile(0.75, 1) == pytest.approx(1.0, rel=1e-12)  # Cauchy


@pytest.mark.parametrize("df", [0, -1, math.inf, math.nan])
def test_degrees_of_freedom_must_be_a_positive_number(df):
    with pytest.raises(ValueError, match="degrees of freedom"):
        student.cdf(1.0, df)


@pytest.mark.parametrize("p", [0, 1, -0.1, math.nan])
def test_probabilities_must_lie_inside_the_unit_interval(p):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        student.quantile(p, 3)
