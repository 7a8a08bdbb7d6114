import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from forgetgauge.game.advantage import swap_advantage
from forgetgauge.game.diagnostics import auc, diagnose, swap_auc


def sample(seed, k=60, *, ties=False, weighted=False):
    rng = np.random.default_rng(seed)
    side = rng.permuted(np.arange(2 * k) < k)
    scores = rng.normal(size=(2, 2 * k)) + 0.5 * side
    if ties:
        scores = np.round(scores)
    return scores[0], scores[1], side, rng.uniform(0, 2, 2 * k) if weighted else np.ones(2 * k)


cases = pytest.mark.parametrize(
    ("seed", "ties", "weighted"), [(0, False, False), (1, True, False), (2, False, True), (3, True, True)]
)


@cases
def test_the_area_under_the_curve_is_scikit_learns(seed, ties, weighted):
    scores, _, side, weight = sample(seed, ties=ties, weighted=weighted)
    assert auc(scores, side, weight) == pytest.approx(roc_auc_score(side, scores, sample_weight=weight))


@pytest.mark.parametrize("ties", [False, True])
def test_the_envelope_of_one_split_is_scipys_kolmogorov_smirnov(ties):
    scores, _, side, weight = sample(4, ties=ties)
    blind = diagnose(scores, np.zeros_like(scores), side, weight)  # the other side gains nothing
    assert 2 * blind.ks_envelope == pytest.approx(stats.ks_2samp(scores[side], scores[~side]).statistic)


@cases
def test_all_diagnostics_are_those_of_every_couple_of_points_and_every_threshold(seed, ties, weighted):
    first, second, side, weight = sample(seed, k=40, ties=ties, weighted=weighted)
    first[0], second[:2], weight[2] = np.inf, -np.inf, 0.0
    sides, cuts = ((first, side), (second, ~side)), np.unique(np.concatenate([first, second]))

    def share_above(scores, members, cut):
        return np.average(scores[members] >= cut, weights=weight[members])

    def area(scores, members):
        wins = (scores[members][:, None] > scores[~members]) + 0.5 * (scores[members][:, None] == scores[~members])
        return np.average(wins, weights=np.outer(weight[members], weight[~members]))

    def gain(cut):
        return sum(share_above(scores, its, cut) - share_above(scores, ~its, cut) for scores, its in sides) / 2

    found = diagnose(first, second, side, weight)
    assert found.auc == pytest.approx(np.mean([area(*each) for each in sides]))
    assert found.ks_envelope == pytest.approx(max(abs(gain(cut)) for cut in cuts))


@cases
def test_the_mean_of_the_sides(seed, ties, weighted):
    first, second, side, weight = sample(seed, ties=ties, weighted=weighted)
    found = diagnose(first, second, side, weight)
    assert found.auc == pytest.approx((auc(first, side, weight) + auc(second, ~side, weight)) / 2)


@cases
def test_no_threshold_has_a_larger_swap_advantage_than_the_envelope(seed, ties, weighted):
    first, second, side, weight = sample(seed, ties=ties, weighted=weighted)
    cuts = np.unique(np.concatenate([first, second]))
    gains = [abs(swap_advantage(first >= cut, second >= cut, side, weight)) for cut in cuts]
    assert diagnose(first, second, side, weight).ks_envelope == pytest.approx(max(gains))


@cases
def test_a_shared_model_gives_exactly_a_half_and_exactly_no_envelope(seed, ties, weighted):
    scores, _, side, weight = sample(seed, ties=ties, weighted=weighted)
    assert swap_auc(scores, scores, side, weight) == 0.5
    assert diagnose(scores, scores, side, weight).ks_envelope == 0.0


def test_two_retrained_models_have_an_envelope_above_zero():
    rng, k = np.random.default_rng(5), 400
    side = np.arange(2 * k) < k
    found = [diagnose(*rng.normal(size=(2, 2 * k)), side, np.ones(2 * k)).ks_envelope for _ in range(300)]
    assert np.mean(found) == pytest.approx(0.869 / np.sqrt(k), rel=0.08)


def test_order_does_not_matter_and_infinite_scores_are_ranked():
    first, second, side, weight = sample(6, weighted=True)
    first[0], first[1], second[2] = np.inf, -np.inf, -np.inf
    order = np.random.default_rng(7).permutation(len(first))
    one = diagnose(first, second, side, weight)
    other = diagnose(first[order], second[order], side[order], weight[order])
    assert vars(one) == pytest.approx(vars(other))
    finite = np.clip(first, -99, 99), np.clip(second, -99, 99)
    assert vars(diagnose(*finite, side, weight)) == pytest.approx(vars(one))


def test_perfect_and_inverted_scores():
    side, weight = np.arange(6) < 3, np.ones(6)
    assert (auc(side * 1.0, side, weight), auc(~side * 1.0, side, weight)) == (1, 0)
    assert diagnose(~side * 1.0, side * 1.0, side, weight).ks_envelope == pytest.approx(1)


def test_nonsense_is_refused():
    scores, _, side, weight = sample(8)
    with pytest.raises(ValueError, match="numbers"):
        auc(np.where(np.arange(len(scores)) == 1, np.nan, scores), side, weight)
    with pytest.raises(ValueError, match="same points"):
        auc(scores[:-1], side, weight)
    with pytest.raises(ValueError, match="no mass"):
        auc(scores, np.zeros_like(side), weight)


def test_labels_and_weights_of_other_points_or_of_one_set_alone_are_refused():
    scores, in_forget = np.arange(4.0), np.array([True, True, False, False])
    for labels, weight, words in (
        (in_forget, np.ones(3), "same points"),
        (in_forget.reshape(2, 2), np.ones((2, 2)), "same points"),
        (np.ones(4, dtype=bool), np.ones(4), "unseen set has no mass"),
        (np.zeros(4, dtype=bool), np.ones(4), "forget set has no mass"),
        (in_forget, np.array([1.0, 1.0, 0.0, 0.0]), "unseen set has no mass"),
    ):
        with pytest.raises(ValueError, match=words):
            auc(scores, labels, weight)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_scale_of_weights_is_nothing_to_a_diagnosis(scale):
    rng = np.random.default_rng(8)
    scores, swapped, weight = rng.normal(size=12), rng.normal(size=12), rng.uniform(0.5, 2, 12)
    in_forget = np.arange(12) < 6
    plain, scaled = (diagnose(scores, swapped, in_forget, own) for own in (weight, scale * weight))
    assert vars(scaled) == pytest.approx(vars(plain))
