import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from forgetgauge.game.sensitivity import by_class, checked, restricted, uniform


def test_uniform_gives_every_point_the_same():
    assert uniform(4).tolist() == [0.25] * 4
    with pytest.raises(ValueError, match="at least one point"):
        uniform(0)


def test_class_weights_are_spread_over_points_not_over_classes():
    weights = by_class(np.array([0, 1, 1, 2]), {0: 1.0, 1: 2.0, 2: 0.0, 9: 5.0})
    assert weights == pytest.approx([0.2, 0.4, 0.4, 0.0])


def test_a_class_without_weight_is_named():
    with pytest.raises(ValueError, match=r"no weight for class 3; it names \[0, 1\]"):
        by_class(np.array([0, 3, 1]), {0: 1.0, 1: 1.0})


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1e300)).filter(lambda w: w.max() > 1e-300))
def test_any_scale_becomes_a_distribution(weights):
    law = checked(weights, len(weights))
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert (law >= 0).all()
    assert (law[weights == 0] == 0).all()


@pytest.mark.parametrize(
    ("weights", "n", "message"),
    [
        ([1.0, 2.0], 3, r"each of 3 points, but their shape is \(2,\)"),
        ([[1.0]], 1, "shape"),
        ([1.0, -2.0], 2, "that of point 1 is -2.0"),
        ([0.0, 0.0], 2, "not all be zero"),
        ([1.0, float("nan")], 2, "1 of them are not"),
        ([1.0, float("inf")], 2, "finite"),
        ([], 0, "not all be zero"),
    ],
)
def test_weights_that_are_no_distribution_are_refused(weights, n, message):
    with pytest.raises(ValueError, match=message):
        checked(weights, n)


def test_restriction_renormalises_and_keeps_the_order_of_the_points():
    weights = checked([1, 2, 3, 4], 4)
    assert restricted(weights, np.array([3, 0])) == pytest.approx([0.8, 0.2])


def test_a_set_without_mass_or_without_weights_is_refused():
    with pytest.raises(ValueError, match="the forget set of 2 points no mass"):
        restricted(np.array([1.0, 0.0, 0.0]), np.array([1, 2]), "forget set")
    with pytest.raises(ValueError, match="for 2 points, so none for point 5"):
        restricted(np.ones(2), np.array([0, 5]))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_scale_of_weights_is_nothing_to_a_distribution(scale):
    assert checked(np.array([1.0, 2.0, 5.0]) * scale, 3) == pytest.approx([0.125, 0.25, 0.625])


def test_a_single_point_without_a_weight_and_no_point_at_all_are_refused():
    with pytest.raises(ValueError, match="the set of 0 points no mass"):
        restricted(np.ones(3), np.array([], dtype=np.int64))
    with pytest.raises(ValueError, match="none for point 3"):
        restricted(np.ones(3), np.array([3]))


def test_a_single_negative_weight_is_called_negative():
    with pytest.raises(ValueError, match="must not be negative"):
        checked(np.array([-1.0]), 1)
