import numpy as np
import pytest
from scipy import stats

from forgetgauge.game.adaptive import pairs_needed, stein_intervals, stein_quality_interval
from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.bounds import least_epsilon
from forgetgauge.game.comparison import compare, compare_all
from forgetgauge.game.intervals import (
    MIN_PAIRS,
    Interval,
    advantage_floor,
    bounded_interval,
    lower_bounds,
    pair_interval,
    signed_interval,
    simultaneous_intervals,
    welch_interval,
)
from forgetgauge.game.one_model import group_epsilon, point_epsilon
from forgetgauge.game.quality import bounded_quality_interval, supremum_interval

from .supremum_simulation import outcomes_of


def outcome(rng, k=30, n_adversaries=1, weight=None):
    weight = np.ones(2 * k) if weight is None else weight
    return PairOutcome(rng.uniform(-1, 1, (2 * k, n_adversaries)), np.repeat([True, False], k), weight)


def constant(value, k=4):
    return PairOutcome(np.full((2 * k, 1), value), np.repeat([True, False], k), np.ones(2 * k))


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_interval_over_pairs_is_scipys_t_interval(level):
    values = np.array([0.11, 0.02, -0.05, 0.07, 0.13, 0.04])
    expected = stats.t.interval(level, 5, values.mean(), stats.sem(values))
    interval = pair_interval(values, level)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-9)
    assert (interval.level, interval.basis) == (level, "over pairs")


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_one_pair_gives_half_of_scipys_welch_interval(level):
    one = outcome(np.random.default_rng(0))
    forget, unseen = one.differences[one.in_forget, 0], one.differences[~one.in_forget, 0]
    expected = stats.ttest_ind(forget, unseen, equal_var=False).confidence_interval(level)
    interval = welch_interval([one], 0, level)
    assert (2 * interval.low, 2 * interval.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert interval.basis == "given these models"


def test_pairs_combine_like_independent_strata():
    rng = np.random.default_rng(1)
    outcomes = [outcome(rng, k=k) for k in (5, 9, 40)]
    variances, degrees = [], []
    for one in outcomes:
        for side in (one.in_forget, ~one.in_forget):
            values = one.differences[side, 0]
            variances.append(np.var(values, ddof=1) / len(values) / 4 / 9)
            degrees.append(len(values) - 1)
    se, df = (
        np.sqrt(sum(variances)),
        sum(variances) ** 2 / sum(v**2 / d for v, d in zip(variances, degrees, strict=True)),
    )
    centre = np.mean([one.advantage[0] for one in outcomes])
    interval = welch_interval(outcomes, 0)
    assert (interval.low, interval.high) == pytest.approx(stats.t.interval(0.95, df, centre, se), rel=1e-9)


def test_the_scale_of_the_weights_does_not_move_welch():
    rng = np.random.default_rng(2)
    weight = rng.lognormal(size=60)
    one = outcome(rng, weight=weight)
    scaled = PairOutcome(one.differences, one.in_forget, 1e6 * weight)
    first, second = welch_interval([one], 0), welch_interval([scaled], 0)
    assert (first.low, first.high) == pytest.approx((second.low, second.high), rel=1e-9)


def test_points_without_weight_are_as_if_they_were_not_there():
    rng = np.random.default_rng(3)
    one = outcome(rng, k=10)
    weight = np.tile([1.0] * 6 + [0.0] * 4, 2)
    thinned = PairOutcome(one.differences, one.in_forget, weight)
    without = PairOutcome(one.differences[weight > 0], one.in_forget[weight > 0], np.ones(12))
    first, second = welch_interval([thinned], 0), welch_interval([without], 0)
    assert (first.low, first.high) == pytest.approx((second.low, second.high), rel=1e-9)


def test_the_weighted_variance_is_unbiased_for_independent_points():
    rng, weight = np.random.default_rng(4), np.array([5.0, 1.0, 1.0, 0.5])
    half_widths, centres = [], []
    t = stats.t.ppf(0.6, 2 * (7.5**2 / (weight**2).sum() - 1))
    for _ in range(1500):
        values = rng.uniform(-0.5, 0.5, (8, 1))
        one = PairOutcome(values, np.repeat([True, False], 4), np.tile(weight, 2))
        interval = welch_interval([one], 0, 0.2)
        half_widths.append((interval.high - interval.low) / 2)
        centres.append(one.advantage[0])
    # Satterthwaite's df vary from draw to draw and are below the sum of both sets', so the quantile bounds from below.
    assert np.mean(np.square(half_widths)) >= t**2 * np.var(centres) * 0.95
    assert np.mean(np.square(half_widths)) <= 1.35 * t**2 * np.var(centres)


def test_few_pairs_are_judged_given_their_models_and_many_over_pairs():
    rng = np.random.default_rng(5)
    outcomes = [outcome(rng) for _ in range(MIN_PAIRS)]
    assert signed_interval(outcomes[:-1], 0) == welch_interval(outcomes[:-1], 0)
    over_pairs = signed_interval(outcomes, 0)
    assert over_pairs == pair_interval(np.array([one.advantage[0] for one in outcomes]))
    assert over_pairs.basis == "over pairs"


@pytest.mark.parametrize("n_pairs", [2, 6])
def test_simultaneous_intervals_share_the_error_by_bonferroni(n_pairs):
    rng = np.random.default_rng(6)
    outcomes = [outcome(rng, n_adversaries=4) for _ in range(n_pairs)]
    intervals = simultaneous_intervals(outcomes, 0.9)
    assert intervals == [signed_interval(outcomes, a, 1 - 0.1 / 4) for a in range(4)]
    for a, wide in enumerate(intervals):
        narrow = signed_interval(outcomes, a, 0.9)
        assert wide.low <= narrow.low <= narrow.high <= wide.high


def test_no_spread_gives_students_t_no_width():
    by_pair = pair_interval(np.zeros(5))
    assert (by_pair.low, by_pair.high) == (0.0, 0.0)


def test_a_single_point_on_each_side_says_nothing():
    whole = welch_interval([constant(0.5, k=1), constant(0.5)], 0)
    assert (whole.low, whole.high) == (-1.0, 1.0)
    one_heavy = PairOutcome(np.zeros((4, 1)), np.array([True, True, False, False]), np.array([1.0, 0.0, 1.0, 1.0]))
    assert welch_interval([one_heavy], 0).low == -1.0


def test_a_weight_so_heavy_that_it_is_alone_says_nothing_either():
    lone = PairOutcome(np.zeros((4, 1)), np.array([True, True, False, False]), np.array([1.0, 1e-200, 1.0, 1.0]))
    assert welch_interval([lone], 0).high == 1.0


def test_intervals_stay_within_possible_advantages():
    interval = pair_interval(np.array([0.9, 1.0, -0.9]))
    assert interval.low == -1.0
    assert interval.high == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pair_interval(np.array([0.1])), "at least two pairs"),
        (lambda: pair_interval(np.zeros((2, 2))), "at least two pairs"),
        (lambda: pair_interval(np.array([0.1, np.nan])), "finite"),
        (lambda: pair_interval(np.zeros(3), 1.0), "strictly between 0 and 1, not at 1.0"),
        (lambda: welch_interval([], 0), "at least one pair"),
        (lambda: signed_interval([], 0), "at least one pair"),
        (lambda: simultaneous_intervals([]), "at least one pair"),
        (lambda: Interval(0.2, 0.1, 0.95, "over pairs"), "end before it starts"),
        (lambda: Interval(float("nan"), 0.1, 0.95, "over pairs"), "end before it starts"),
    ],
)
def test_intervals_without_ground_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pairs_measured_with_different_adversaries_are_refused():
    rng = np.random.default_rng(7)
    with pytest.raises(ValueError, match="same adversaries"):
        simultaneous_intervals([outcome(rng), outcome(rng, n_adversaries=2)])


def coinciding(n_pairs=5):
    """Pairs whose decisions differ, while their advantages are all 1/8."""
    rows = [np.roll([1.0, 0, 0, 0], i).tolist() + [0.0] * 4 for i in range(n_pairs)]
    return [PairOutcome(np.array(row)[:, None], np.repeat([True, False], 4), np.ones(8)) for row in rows]


def test_pairs_that_agree_have_the_distribution_free_interval():
    found = signed_interval(coinciding(), 0)
    assert found == bounded_interval(np.full(5, 0.125))
    assert (found.low < 0.125 < found.high, found.basis) == (True, "over pairs")


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_where_pairs_agree_more_points_say_nothing_about_new_pairs(value):
    few, many = (signed_interval(outcomes_of(np.full((5, 1), value), k), 0) for k in (2, 200))
    assert (few.low, few.high) == pytest.approx((many.low, many.high))
    # five pairs alike leave a share of 1 − 0.025^(1/5) = 52 % of pairs that were not seen, and these may be at ∓1
    unseen = 1 - 0.025 ** (1 / 5)
    assert few.low <= (1 - unseen) * value - unseen
    assert few.high >= min(1, (1 - unseen) * value + unseen)


def test_that_five_pairs_showed_nothing_does_not_make_a_sixth_certain():
    found = signed_interval([constant(0.0)] * 5, 0)
    assert found.low == -found.high < -0.5


def test_the_bounded_interval_can_be_asked_for_and_is_over_pairs_at_any_number():
    values = np.array([0.1, 0.2, 0.15])
    assert signed_interval(outcomes_of(values[:, None]), 0, 0.9, "bounded") == bounded_interval(values, 0.9)
    wide = bounded_interval(values)
    assert wide.low < 0.1 < 0.2 < wide.high
    with pytest.raises(ValueError, match="at least one pair"):
        bounded_interval(np.array([]))


@pytest.mark.parametrize("k", [2, 3])
def test_two_points_of_a_set_are_enough_for_welch(k):
    pair = outcome(np.random.default_rng(k), k)
    d = pair.differences[:, 0]
    expected = stats.ttest_ind(d[:k], d[k:], equal_var=False).confidence_interval(0.6)
    found = welch_interval([pair], 0, 0.6)
    assert (found.low, found.high) == pytest.approx((expected.low / 2, expected.high / 2))


def test_two_pairs_are_enough_for_students_t():
    found = pair_interval(np.array([0.1, 0.3]), 0.5)
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.5, 1, 0.2, stats.sem([0.1, 0.3])))


@pytest.mark.parametrize("value", [1.0, 0.4, 0.0, -1.0, -0.9])
def test_where_all_points_move_alike_as_many_as_none_was_seen_of_may_not(value):
    """A share p of points that move otherwise is not met among n with the chance (1 − p)^n: 2.5 % at the end."""
    in_forget, weight = np.arange(10) < 5, np.array([1.0] * 4 + [0.0] + [1.0] * 5)
    pair = PairOutcome(np.where(in_forget, value, -value)[:, None], in_forget, weight)
    for n_pairs in (1, 3):
        found = welch_interval([pair] * n_pairs, 0)
        missed = 1 - 0.025 ** (1 / (9 * n_pairs))
        assert (found.low, found.high) == pytest.approx((max(-1, value - missed), min(1, value + missed)))


@pytest.mark.parametrize(("n_pairs", "k", "truth"), [(1, 5, 0.05), (1, 24, 0.02), (4, 5, 0.05)])
def test_where_differences_are_rare_a_few_models_hold_the_truth_as_often_as_they_say(n_pairs, k, truth):
    """A share of F moves by 1 and as much of T by −1; mostly no point does, and then the interval has room for some."""
    rng, in_forget, held = np.random.default_rng(8), np.repeat([True, False], k), []
    sign = np.where(in_forget, 1.0, -1.0)
    for _ in range(1000):
        moved = rng.random((n_pairs, 2 * k)) < truth
        outcomes = [PairOutcome((sign * one)[:, None], in_forget, np.ones(2 * k)) for one in moved]
        held.append(welch_interval(outcomes, 0).high >= truth and supremum_interval(outcomes).low <= 1 - truth)
    assert np.mean(held) >= 0.95


def test_every_pair_must_be_measured_with_the_same_adversaries_whatever_their_number():
    rng = np.random.default_rng(0)
    outcomes = [outcome(rng, n_adversaries=n) for n in (1, 2, 2, 2, 2)]
    with pytest.raises(ValueError, match="same adversaries"):
        signed_interval(outcomes, 0)


def test_the_level_is_95_percent_where_no_other_is_asked_for():
    rng = np.random.default_rng(1)
    outcomes = [outcome(rng, n_adversaries=2) for _ in range(6)]
    other = [outcome(rng, n_adversaries=2) for _ in range(6)]
    by_pair = np.array([o.advantage for o in outcomes])
    for asked, *arguments in (
        (pair_interval, by_pair[:, 0]),
        (welch_interval, outcomes, 0),
        (bounded_interval, by_pair[:, 0]),
        (signed_interval, outcomes, 0),
        (simultaneous_intervals, outcomes),
        (advantage_floor, by_pair),
        (supremum_interval, outcomes),
        (bounded_quality_interval, by_pair),
        (compare, outcomes, other),
        (lambda *given, **level: compare_all({"a": given[0], "b": given[1]}, **level), outcomes, other),
        (stein_intervals, by_pair, 5),
        (stein_quality_interval, by_pair, 5),
        (pairs_needed, by_pair, 0.01),
        (least_epsilon, 0.3, -9.0),
        (group_epsilon, -9.0),
        (point_epsilon, 9, 10),
    ):
        assert asked(*arguments) == asked(*arguments, level=0.95), asked
    assert least_epsilon(0.3, -9.0) == least_epsilon(0.3, -9.0, n_models=1, delta=1e-5)
    assert group_epsilon(-9.0) == group_epsilon(-9.0, n_models=1, delta=0.0)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, float("nan")])
def test_a_level_that_is_none_is_refused_by_its_name(level):
    rng = np.random.default_rng(2)
    outcomes = [outcome(rng, n_adversaries=2) for _ in range(6)]
    by_pair = np.array([o.advantage for o in outcomes])
    for asked, *arguments in (
        (pair_interval, by_pair[:, 0]),
        (welch_interval, outcomes, 0),
        (welch_interval, outcomes_of(np.array([[0.4]]), 3), 0),
        (bounded_interval, by_pair[:, 0]),
        (simultaneous_intervals, outcomes),
        (supremum_interval, outcomes),
        (bounded_quality_interval, by_pair),
        (pairs_needed, by_pair, 0.1),
        (stein_intervals, by_pair, 5),
        (lambda level: Interval(0.0, 0.0, level, "over pairs"),),
    ):
        with pytest.raises(ValueError, match=f"confidence level lies strictly between 0 and 1, not at {level}"):
            asked(*arguments, level=level)
    with pytest.raises(ValueError, match="probability of a miss lies strictly between 0 and 1"):
        lower_bounds(by_pair[:, 0], 1 - level)


def test_many_bounds_at_once_are_each_by_itself():
    values = np.random.default_rng(3).uniform(-1, 1, (2, 3, 6, 2))
    each = [[advantage_floor(one, 0.5) for one in row] for row in values]
    np.testing.assert_allclose(advantage_floor(values, 0.5), each)
    bounds = [[lower_bounds(one, 0.1) for one in row] for row in values[..., 0]]
    np.testing.assert_allclose(lower_bounds(values[..., 0], 0.1), bounds)
    assert np.ptp(bounds) > 0.01
