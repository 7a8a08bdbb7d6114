"""Two lists of outputs as one model's: against the definition, point by point."""

from __future__ import annotations

import numpy as np
import pytest

from forgetgauge.game.likeness import FAR_CLOSER, NEIGHBOURS, ROUNDING, is_one_model, nearly_same


def by_definition(first, second):
    """Every point by itself: near, and far closer than the nearest tenth of all outputs on either side."""
    pooled = np.sort(np.concatenate([first, second]))
    n_neighbours = max(1, int(NEIGHBOURS * len(pooled)))
    same = []
    for one, other in zip(first, second, strict=True):
        low, high = sorted([one, other])
        below, above = pooled[pooled < low][::-1], pooled[pooled > high]
        reach = [
            abs(side[n_neighbours - 1] - end)
            for side, end in ((below, low), (above, high))
            if len(side) >= n_neighbours
        ]
        near = high - low <= ROUNDING * pooled.std()
        same.append(low == high or (near and high - low <= FAR_CLOSER * min(reach)))
    return np.array(same)


@pytest.mark.parametrize("noise", [0.0, 1e-5, 3e-4, 1e-3, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_outputs_are_the_same_where_they_are_near_and_far_closer_than_others(noise, ties):
    rng = np.random.default_rng(5)
    first = rng.normal(size=400)
    first[200:] *= 1e-4  # a crowd around 0, where near is not enough
    second = first + noise * rng.normal(size=400)
    if ties:
        first, second = first.round(4), second.round(4)
        second[::7] = first[::7]
    expected = by_definition(first, second)
    np.testing.assert_array_equal(nearly_same(first, second), expected)
    np.testing.assert_array_equal(nearly_same(second, first), expected)
    if noise == 3e-4:
        assert 0.1 < expected.mean() < 0.9  # both sorts are met


def test_outputs_of_several_columns_are_the_same_where_every_column_is():
    rng = np.random.default_rng(6)
    first = rng.normal(size=(50, 3))
    second = first.copy()
    for column, rows in enumerate(([0, 1], [1, 2], [7])):
        second[rows, column] += 1
    expected = np.all([by_definition(a, b) for a, b in zip(first.T, second.T, strict=True)], axis=0)
    assert np.flatnonzero(~expected).tolist() == [0, 1, 2, 7]
    np.testing.assert_array_equal(nearly_same(first, second), expected)
    with pytest.raises(ValueError, match=r"zip|shape"):
        nearly_same(first, second[:, :2])


def test_rounding_of_a_point_far_from_all_others_is_seen_only_up_to_a_thousandth_of_the_spread():
    first = np.concatenate([[0.0], np.linspace(100, 200, 20), np.linspace(-200, -100, 20)])
    for share, same in ((0.5e-3, True), (2e-3, False)):
        second = first.copy()
        second[0] = share * first.std()
        assert nearly_same(first, second).tolist() == [same] + [True] * 40


@pytest.mark.parametrize("sign", [1, -1])
def test_a_neighbourhood_reaches_to_the_last_of_its_outputs(sign):
    """Of 30 outputs it has three: on one side two at 10 and one at 1000, on the other all far away."""
    others = np.concatenate([[10.0], 1000.0 * np.arange(1, 8), -1e6 * np.arange(1, 7)])
    for apart, same in ((9.0, True), (11.0, False)):  # a hundredth of 1000
        first, second = (sign * np.concatenate([[own], others]) for own in (0.0, -apart))
        assert nearly_same(first, second).tolist() == [same] + [True] * 14


def test_nine_of_ten_points_make_one_model():
    first = np.arange(20.0)
    for n_changed, one in ((0, True), (2, True), (3, False), (20, False)):
        second = first.copy()
        second[:n_changed] += 0.5
        assert is_one_model(first, second) == one
