import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetgauge.game.intervals import Interval
from forgetgauge.game.quality import best_adversary, quality_interval, quality_plugin


def signed(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "over pairs")


def test_quality_is_one_minus_the_largest_size_whatever_its_sign():
    assert quality_plugin(np.array([0.1, -0.4, 0.2])) == pytest.approx(0.6)
    assert best_adversary(np.array([0.1, -0.4, 0.2])) == 1
    assert best_adversary(np.array([0.3, -0.3])) == 0
    assert quality_plugin(np.zeros(3)) == 1.0


@pytest.mark.parametrize("advantages", [[], [[0.1]], [1.5], [np.nan]])
def test_advantages_that_make_no_sense_are_refused(advantages):
    with pytest.raises(ValueError, match="advantages"):
        quality_plugin(np.array(advantages))


@pytest.mark.parametrize(
    ("intervals", "low", "high"),
    [
        ([signed(0.1, 0.3)], 0.7, 0.9),
        ([signed(-0.3, -0.1)], 0.7, 0.9),
        ([signed(-0.2, 0.1)], 0.8, 1.0),
        ([signed(-0.2, 0.1), signed(0.05, 0.15)], 0.8, 0.95),
        ([signed(-1, 1)], 0.0, 1.0),
        ([signed(0.0, 0.0)], 1.0, 1.0),
    ],
)
def test_the_interval_for_quality_by_hand(intervals, low, high):
    interval = quality_interval(intervals, 0.95)
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.basis == "over pairs"


ends = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted)


@given(st.lists(st.tuples(ends, st.floats(0, 1)), min_size=1, max_size=6))
def test_whenever_all_signed_intervals_hold_so_does_that_for_quality(cases):
    truths = np.array([low + share * (high - low) for (low, high), share in cases]).clip(-1, 1)
    interval = quality_interval([signed(low, high) for (low, high), _ in cases], 0.95)
    assert interval.low - 1e-12 <= quality_plugin(truths) <= interval.high + 1e-12


def test_no_interval_no_quality():
    with pytest.raises(ValueError, match="at least one adversary"):
        quality_interval([], 0.95)
