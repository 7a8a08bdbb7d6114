"""The ROC that is fair to the swap, against enumeration and by simulation."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_curve

from forgetgauge.game.advantage import swap_advantage
from forgetgauge.game.roc import ScoredPair, rates, swap_roc, tpr_within


def drawn(rng, n_pairs=3, n_seeds=1, k=6, *, ties=False, shift=0.0):
    pairs = []
    for _ in range(n_pairs):
        side = rng.permutation(np.repeat([True, False], k))
        scores = rng.normal(size=(2, n_seeds, 2 * k)) + shift * np.stack([side, ~side])[:, None]
        pairs.append(ScoredPair(np.round(scores) if ties else scores, side, rng.uniform(0.5, 2, size=2 * k)))
    return pairs


@pytest.mark.parametrize(
    ("seed", "ties", "n"), [(0, False, 1), (1, True, 1), (2, False, 2), (3, True, 2), (4, True, 1)]
)
def test_every_point_of_the_curve_is_an_adversary_and_its_height_over_the_diagonal_the_swap_advantage(seed, ties, n):
    """Enumerated: all thresholds one after another, each as an adversary of the game."""
    pairs = drawn(np.random.default_rng(seed), n_pairs=2, n_seeds=n, k=4, ties=ties)
    limits = np.array([0.05, 0.2, 0.6, 1.0])
    thresholds = np.unique(np.concatenate([pair.scores.ravel() for pair in pairs]))[::-1]
    curve = []
    for threshold in (np.inf, *thresholds):
        false, gains = [], []
        for pair in pairs:
            weight = pair.weight
            for first, second in zip(*pair.scores, strict=True):
                said = [each >= threshold for each in (first, second)]
                gains.append(swap_advantage(*said, pair.in_forget, weight))
                unseen = (said[0], ~pair.in_forget), (said[1], pair.in_forget)
                false += [np.average(one[of], weights=weight[of]) for one, of in unseen]
        curve.append((np.mean(false), np.mean(gains)))
    found = swap_roc(pairs, limits)
    wanted = [max(point for point in curve if point[0] <= limit + 1e-9) for limit in limits]
    assert set(np.round(found.fpr, 9)) == {round(false, 9) for false, _ in wanted}
    last = [[gain for false, gain in curve if abs(false - own) < 1e-9] for own in found.fpr]
    assert all(
        any(abs(true - own - gain) < 1e-9 for gain in gains)
        for true, own, gains in zip(found.tpr, found.fpr, last, strict=True)
    )
    for limit in limits:
        best = max(false + gain for false, gain in curve if false <= limit + 1e-9)
        assert tpr_within(pairs, limit) == pytest.approx(best)


@pytest.mark.parametrize("limit", [0.0, 0.001, 0.01, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("ties", [False, True])
def test_the_true_positive_rate_is_read_off_scikit_learns_curve_over_all_models(limit, ties):
    pairs = drawn(np.random.default_rng(11), n_seeds=2, k=50, ties=ties, shift=0.5)
    rows = [
        (own, of, pair.weight / np.where(of, pair.weight[of].sum(), pair.weight[~of].sum()))
        for pair in pairs
        for side, of in zip(pair.scores, (pair.in_forget, ~pair.in_forget), strict=True)
        for own in side
    ]
    scores, member, weight = (np.concatenate(column) for column in zip(*rows, strict=True))
    false_rate, true_rate, _ = roc_curve(member, scores, sample_weight=weight, drop_intermediate=False)
    assert tpr_within(pairs, limit) == pytest.approx(true_rate[false_rate <= limit + 1e-12].max())


@pytest.mark.parametrize("seed", range(6))
def test_one_model_shared_by_both_sides_lies_on_the_diagonal_exactly(seed):
    rng = np.random.default_rng(seed)
    shared = []
    for pair in drawn(rng, ties=bool(seed % 2)):
        shared.append(ScoredPair(np.repeat(pair.scores[:1], 2, axis=0), pair.in_forget, np.ones(len(pair.weight))))
    found = swap_roc(shared, rates(36))
    assert found.tpr == pytest.approx(found.fpr)


def test_a_threshold_for_each_model_by_itself_would_not_be_fair_to_a_shared_one():
    """Why the curve has one threshold: the mean of a curve and its mirror image lies above the diagonal."""
    rng = np.random.default_rng(0)
    k = 2000
    side = np.repeat([True, False], k)
    scores = rng.normal(size=2 * k) + side  # a chance difference between F and T, the model has no part in it
    pair = ScoredPair(np.tile(scores, (2, 1, 1)), side, np.ones(2 * k))
    alone = []
    for unseen in (~side, side):
        threshold = np.sort(scores[unseen])[-20]
        alone.append((scores[~unseen] >= threshold).mean())
    assert np.mean(alone) > 0.015
    assert tpr_within([pair], 0.01) == pytest.approx(0.01)


def test_exchanging_the_sides_changes_nothing_and_neither_does_the_scale():
    pairs = drawn(np.random.default_rng(3), n_seeds=2)
    turned = [ScoredPair(np.exp(pair.scores[::-1]), ~pair.in_forget, 7 * pair.weight) for pair in pairs[::-1]]
    for one, other in ((swap_roc(pairs, rates(72)), swap_roc(turned, rates(72))),):
        assert one.fpr == pytest.approx(other.fpr)
        assert one.tpr == pytest.approx(other.tpr)


def test_infinite_scores_are_ranked_and_nan_is_refused():
    side = np.array([True, True, False, False])
    pair = ScoredPair(np.array([[[np.inf, 1, 0, -np.inf]], [[0, -1, 2, 3]]]), side, np.ones(4))
    assert tpr_within([pair], 0.0) == 1.0
    with pytest.raises(ValueError, match="1 of them are not"):
        tpr_within([ScoredPair(np.array([[[np.nan, 1, 0, 0]], [[0, 1, 2, 3]]]), side, np.ones(4))], 0.1)


def test_where_the_largest_score_is_of_an_unseen_point_and_none_may_be_wrong_nothing_is_found():
    side = np.array([True, True, False, False])
    pair = ScoredPair(np.array([[[1.0, 2, 9, 0]], [[9.0, 1, 2, 3]]]), side, np.ones(4))
    assert tpr_within([pair], 0.0) == 0.0
    assert len(swap_roc([pair], np.array([0.0, 0.1])).fpr) == 1


def test_the_rates_start_at_three_wrong_calls_and_contain_the_customary_ones():
    found = rates(898 * 16)
    assert 3 <= found[0] * 898 * 16 < 3 * 10**0.1
    assert found[-1] == 1
    for rate in (0.001, 0.01, 0.1):
        assert np.isclose(found, rate).any()
    assert rates(7)[0] >= 3 / 7
    assert rates(1).tolist() == [1.0]


def models(rng, n_pairs, k, shift, spread):
    """Easy points are easy for both models of a pair; a model moves all its scores; F moves by the shift."""
    side = np.repeat([True, False], k)
    for _ in range(n_pairs):
        own = rng.normal(size=2 * k) + rng.normal(size=(2, 1, 2 * k))
        scores = own / np.sqrt(2) + spread * rng.normal(size=(2, 1, 1)) + shift * np.stack([side, ~side])[:, None]
        yield ScoredPair(scores, side, np.ones(2 * k))


@pytest.mark.parametrize(("shift", "spread"), [(0.0, 0.7), (1.0, 0.0), (1.0, 0.5)])
def test_the_band_contains_the_true_rate_about_as_often_as_it_says(shift, spread):
    rng, limits = np.random.default_rng(1), np.array([0.01, 0.05, 0.3])
    covered = []
    for _ in range(120):
        found = swap_roc(list(models(rng, 8, 60, shift, spread)), limits)
        true = norm.sf(norm.isf(found.fpr) - shift / np.hypot(1, spread))
        covered.append([low <= rate <= high for (low, high), rate in zip(found.band(), true, strict=True)])
    share = np.mean(covered, axis=0)
    assert (share > 0.87).all()
    assert share.mean() < 0.995


def test_at_the_end_of_the_curve_nothing_is_in_doubt_and_where_all_pairs_agree_much_is():
    side = np.array([True, True, False, False])
    pair = ScoredPair(np.array([[[0.0, 0, 0, 0]], [[0, 0, 0, 0]]]), side, np.ones(4))
    nothing, everything = swap_roc([pair] * 6, np.array([0.5, 1.0])).band()
    assert nothing[0] == 0
    assert nothing[1] > 0.3
    assert everything == pytest.approx((1, 1))


def test_there_is_no_band_below_five_pairs():
    rng = np.random.default_rng(0)
    assert swap_roc(drawn(rng, n_pairs=4), rates(48)).band() is None
    assert swap_roc(drawn(rng, n_pairs=5), rates(60)).band() is not None
