import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.comparison import Comparison, compare, compare_all, kendall_tau, rank_stability
from forgetgauge.game.intervals import Interval, bounded_interval, welch_contrasts, welch_interval
from forgetgauge.game.quality import supremum_interval

from .simulation import make_world, simulate_pairs
from .supremum_simulation import COUPLES, comparison_report, draw_pairs, outcomes_of


def methods(n_pairs, truths, seed=0):
    """Methods that share most of the noise of a pair."""
    rng = np.random.default_rng(seed)
    shared = draw_pairs(np.zeros(2), 0.0, (n_pairs,), rng)
    return [outcomes_of(np.array(t) + shared + rng.normal(0, 0.002, shared.shape)) for t in truths]


def test_one_adversary_of_known_sign_gives_the_paired_t_interval_at_a_third_of_the_level():
    rng = np.random.default_rng(1)
    shared = rng.normal(0, 0.05, (8, 1))
    first, second = (value + shared + rng.normal(0, 0.01, (8, 1)) for value in (0.3, 0.5))
    found = compare(outcomes_of(first), outcomes_of(second), 0.94)
    expected = stats.t.interval(0.98, 7, (second - first).mean(), stats.sem(second - first))  # 0.06 / (2J + 1)
    assert (found.interval.low, found.interval.high) == pytest.approx([end.item() for end in expected])
    assert found.difference == pytest.approx((second - first).mean())
    assert found.interval.basis == "over pairs"


def test_pairing_finds_a_difference_that_the_methods_own_intervals_hide():
    better, worse = methods(8, ([0.10, 0.0], [0.13, 0.0]))
    found = compare(better, worse)
    assert found.first_is_better
    assert not found.second_is_better
    own = supremum_interval(better)
    assert found.interval.high - found.interval.low < (own.high - own.low) / 2


def test_exchanging_the_methods_mirrors_the_interval():
    one, other = methods(6, ([0.1, -0.2], [0.15, 0.0]))
    found, mirrored = compare(one, other), compare(other, one)
    assert (found.interval.low, found.interval.high) == pytest.approx((-mirrored.interval.high, -mirrored.interval.low))
    assert found.first_is_better == mirrored.second_is_better


@pytest.mark.parametrize("n_pairs", [1, 3, 7])
def test_a_method_is_never_better_than_itself(n_pairs):
    outcomes = simulate_pairs(make_world(0.7, (0.0, 0.4)), n_pairs, 1, np.random.default_rng(2))
    found = compare(outcomes, outcomes)
    assert found.difference == 0
    assert found.interval.low <= 0 <= found.interval.high


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_pairs", [2, 6])
def test_the_difference_of_the_plug_ins_lies_inside(n_pairs, seed):
    rng, labels = np.random.default_rng(seed), np.repeat([True, False], 20)
    one, other = (
        [PairOutcome(rng.uniform(-1, 1, (40, 3)), labels, np.ones(40)) for _ in range(n_pairs)] for _ in range(2)
    )
    found = compare(one, other)
    assert found.interval.low <= found.difference <= found.interval.high
    assert found.interval.basis == ("over pairs" if n_pairs == 6 else "given these models")


def test_with_few_pairs_points_tell_a_clear_difference():
    rng = np.random.default_rng(3)
    labels = np.repeat([True, False], 50)
    moved = np.where(labels, 0.5, -0.5)[:, None] + rng.uniform(-0.1, 0.1, (100, 2))
    still = rng.uniform(-0.1, 0.1, (100, 2))
    leaky, clean = (PairOutcome(values, labels, np.ones(100)) for values in (moved, still))
    assert compare([clean], [leaky]).first_is_better
    assert compare([leaky], [clean]).second_is_better


@pytest.mark.parametrize("kind", ["random", "weighted", "alike", "opposite", "lone", "constant"])
def test_the_contrasts_are_welchs_intervals_of_each_contrast_alone(kind):
    """Each θ_b − c measured as an adversary of its own, halved so that it lies in [−1, 1]."""
    rng = np.random.default_rng(5)
    first, second = [], []
    for k in (1, 6) if kind == "lone" else (9, 6):
        labels = rng.permutation(np.repeat([True, False], k))
        weight = rng.uniform(0.1, 9, 2 * k) if kind == "weighted" else np.ones(2 * k)
        one, other = (rng.integers(-2, 3, (2 * k, 2)) / 2 for _ in range(2))
        other = {"alike": one, "opposite": -one, "constant": np.full((2 * k, 2), 0.5)}.get(kind, other)
        one = np.where(labels, 1.0, -0.5)[:, None] + np.zeros((1, 2)) if kind == "constant" else one
        first.append(PairOutcome(one, labels, weight))
        second.append(PairOutcome(other, labels, weight))
    low, high = welch_contrasts(first, second, 0.9)
    for b in range(2):
        for c in range(5):
            alone = [
                PairOutcome(
                    (w.differences[:, [b]] - [o.differences[:, [c % 2]], -o.differences[:, [c % 2]], 0.0][c // 2]) / 2,
                    w.in_forget,
                    w.weight,
                )
                for w, o in zip(first, second, strict=True)
            ]
            expected = welch_interval(alone, 0, 0.9)
            assert (low[b, c] / 2, high[b, c] / 2) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_all_methods_together_are_compared_at_a_stricter_level():
    named = dict(zip("abc", methods(8, ([0.1, 0.0], [0.2, 0.0], [0.3, 0.0])), strict=True))
    together, alone = compare_all(named, 0.94), compare_all(named, 0.94, simultaneous=False)
    assert list(together) == [("a", "b"), ("a", "c"), ("b", "c")]
    for couple, found in together.items():
        assert found == compare(named[couple[0]], named[couple[1]], 1 - 0.06 / 3)
        assert found.interval.low < alone[couple].interval.low
    assert compare_all({"a": named["a"]}) == {}


def test_what_was_not_measured_alike_is_not_compared():
    one, other = methods(5, ([0.1, 0.0], [0.2, 0.0]))
    with pytest.raises(ValueError, match="5 and 4"):
        compare(one, other[:4])
    with pytest.raises(ValueError, match="same adversaries"):
        compare(one, outcomes_of(np.zeros((5, 3))))
    flipped = [PairOutcome(o.differences, ~o.in_forget, o.weight) for o in other]
    with pytest.raises(ValueError, match="forgotten points"):
        compare(one, flipped)


@given(st.integers(2, 8).flatmap(lambda n: st.tuples(*[st.lists(st.integers(-2, 2), min_size=n, max_size=n)] * 2)))
def test_kendalls_tau_is_scipys_with_and_without_ties(rankings):
    first, second = (np.array(values, dtype=float) for values in rankings)
    expected = stats.kendalltau(first, second).statistic
    assert kendall_tau(first, second) == pytest.approx(expected, nan_ok=True, abs=1e-12)


def test_what_differs_by_rounding_alone_is_tied():
    """Fisher and SalUn at η = 0.1 of Table 1: the same answers, added up in another order."""
    ours = np.array([0.12041116005873721, 0.12041116005873718, 0.5])
    assert kendall_tau(np.array([0.751, 0.476, 0.975]), ours) == pytest.approx(np.sqrt(2 / 3))


def test_rankings_of_different_things_are_refused():
    with pytest.raises(ValueError, match="same things"):
        kendall_tau(np.zeros(2), np.zeros(3))


def test_stability_is_one_when_every_pair_ranks_alike():
    by_pair = np.array([0.1, 0.2, 0.4])[:, None, None] + np.zeros((3, 5, 2))
    assert rank_stability(by_pair) == pytest.approx(1)


def test_stability_is_the_mean_of_scipys_tau_of_the_pairs():
    by_pair = np.random.default_rng(4).uniform(-0.3, 0.3, (5, 6, 3))
    overall = 1 - np.abs(by_pair.mean(axis=1)).max(axis=1)
    taus = [stats.kendalltau(overall, 1 - np.abs(by_pair[:, p]).max(axis=1)).statistic for p in range(6)]
    assert rank_stability(by_pair) == pytest.approx(np.mean(taus))


def test_a_pair_that_ties_all_methods_shows_no_agreement():
    by_pair = np.array([[[0.1], [0.2]], [[0.3], [0.2]]])  # the second pair ties them
    assert rank_stability(by_pair) == pytest.approx(0.5)
    assert math.isnan(kendall_tau(np.array([1.0, 2.0]), np.array([1.0, 1.0])))


@pytest.mark.parametrize("shape", [(1, 3, 2), (2, 3), (2, 0, 1)])
def test_nothing_to_rank_is_refused(shape):
    with pytest.raises(ValueError, match="methods"):
        rank_stability(np.zeros(shape))


@pytest.mark.slow
@pytest.mark.parametrize("couple", COUPLES)
def test_the_interval_of_the_difference_holds_and_better_is_rarely_wrong(couple):
    report = comparison_report(couple, 8, repetitions=600)
    assert report.coverage >= 0.94
    assert report.second_better <= 0.025 + 0.01  # the second method is never truly better here
    if "null against" not in couple:
        assert report.first_better <= 0.025 + 0.01


@pytest.mark.parametrize("k", [4, 40])
def test_where_pairs_agree_a_difference_is_as_uncertain_as_five_pairs_are(k):
    """However many points the pairs have: neither method is said to be better."""
    alike, still = outcomes_of(np.full((5, 1), 0.125), k), outcomes_of(np.zeros((5, 1)), k)
    for first, second, difference in ((alike, alike, 0.0), (still, alike, 0.125)):
        found = compare(first, second)
        assert found.difference == pytest.approx(difference)
        assert found.interval.low < -0.4 < 0.4 < found.interval.high
        assert not found.first_is_better
        assert not found.second_is_better


def test_twenty_pairs_that_agree_tell_everything_from_nothing():
    assert compare(outcomes_of(np.zeros((20, 1))), outcomes_of(np.ones((20, 1)))).first_is_better


def test_rankings_do_not_hang_on_rounding():
    by_pair = np.random.default_rng(0).integers(-3, 4, (3, 6, 2)) / 7
    by_pair[1] = by_pair[0]  # two methods alike
    nudged = by_pair + np.random.default_rng(1).uniform(-1, 1, by_pair.shape) * 1e-15
    assert rank_stability(nudged) == pytest.approx(rank_stability(by_pair), abs=1e-12)


def ends_by_definition(worse, better, each):
    """An upper bound of max|worse| − max|better|: θ_b − c for every b of either sign, every c of either sign, and 0."""
    bounds = []
    for b in range(worse[0].n_adversaries):
        for sign in (1, -1):
            ends = []
            for a in range(better[0].n_adversaries):
                ends += [upper_end(worse, better, sign, b, other, a, each) for other in (1, -1)]
            bounds.append(min(*ends, upper_end(worse, better, sign, b, 0, 0, each)))
    return max(bounds)


def upper_end(worse, better, sign, b, other, a, each):
    couples = list(zip(worse, better, strict=True))
    values = np.array([sign * w.advantage[b] - other * o.advantage[a] for w, o in couples])
    if len(couples) < 5:
        halved = [
            PairOutcome((sign * w.differences[:, [b]] - other * o.differences[:, [a]]) / 2, w.in_forget, w.weight)
            for w, o in couples
        ]
        return 2 * welch_interval(halved, 0, each).high
    if np.ptp(values) < 1e-12:
        return 2 * bounded_interval(values / 2, each).high
    return stats.t.interval(each, len(values) - 1, values.mean(), stats.sem(values))[1]


@pytest.mark.parametrize("n_adversaries", [1, 2, 3])
@pytest.mark.parametrize("n_pairs", [2, 4, 5, 9])
@pytest.mark.parametrize("alike", [0, 1, -1])
def test_the_interval_is_the_one_of_the_definition(n_pairs, n_adversaries, alike):
    rng = np.random.default_rng(n_pairs)
    in_forget, weight = np.arange(12) < 6, np.ones(12)
    shape = (12, n_adversaries)
    one, other = (
        [PairOutcome(rng.choice([-0.1, 0.0, 0.2], shape), in_forget, weight) for _ in range(n_pairs)] for _ in range(2)
    )
    if alike:  # some contrasts are the same on every pair
        one = [PairOutcome(alike * one[0].differences, in_forget, weight)] * n_pairs
        other[0:] = [PairOutcome(o.differences * (0, 1, 1)[:n_adversaries], in_forget, weight) for o in other]
    found = compare(one, other, 0.9)
    each = 1 - 0.1 / (2 * n_adversaries + 1)
    expected = (-ends_by_definition(one, other, each), ends_by_definition(other, one, each))
    assert (found.interval.low, found.interval.high) == pytest.approx(np.clip(expected, -1, 1))


def test_a_level_that_is_none_and_no_pairs_at_all_are_refused():
    one, other = methods(2, ([0.1, 0.0], [0.2, 0.0]))
    for level in (0.0, 1.0, 1.5):
        for call in (
            lambda level=level: compare(one, other, level),
            lambda level=level: compare_all({"a": one, "b": other, "c": one}, level),
            lambda level=level: compare_all({}, level),
        ):
            with pytest.raises(ValueError, match=f"not at {level}"):
                call()
    with pytest.raises(ValueError, match="at least one pair"):
        compare([], [])


def test_an_interval_that_ends_at_zero_tells_no_difference():
    for low, high in ((-0.5, 0.0), (0.0, 0.5)):
        found = Comparison(0.0, Interval(low, high, 0.95, "over pairs"))
        assert not found.first_is_better
        assert not found.second_is_better


def test_a_difference_of_qualities_lies_between_minus_one_and_one_and_two_methods_need_no_adjustment():
    one, other = (outcomes_of(np.array([row] * 2).reshape(-1, 1), 2) for row in ([1.0, -1.0, 1.0], [0.5, 1.0, -1.0]))
    found = compare(one, other, 0.999)
    assert (found.interval.low, found.interval.high) == (-1, 1)
    assert compare_all({"a": one, "b": other}, 0.6) == {("a", "b"): compare(one, other, 0.6)}
