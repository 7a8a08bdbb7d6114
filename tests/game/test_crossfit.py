import itertools

import numpy as np
import pytest

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.quality import ENUMERATED, _halves, best_adversary, cross_fit, cross_fit_pairs

from .simulation import make_world, simulate_pairs
from .supremum_simulation import SCENARIOS, crossfit_errors, other_folds, outcomes_of


def by_hand(by_pair):
    """Every half, its adversary and sign chosen on the rest, pair by pair."""
    n, total, count = len(by_pair), 0.0, 0
    for size in {n // 2, n - n // 2}:
        for scored in itertools.combinations(range(n), size):
            rest = by_pair[[p for p in range(n) if p not in scored]].mean(axis=0)
            best = int(np.argmax(np.abs(rest)))
            sign = -1 if rest[best] < 0 else 1
            total += sum(sign * by_pair[p, best] for p in scored)
            count += size
    return total / count


@pytest.mark.parametrize("n_pairs", [2, 5, 6, 7])
def test_all_halvings_agree_with_a_loop_over_them(n_pairs):
    by_pair = np.random.default_rng(n_pairs).uniform(-0.2, 0.3, (n_pairs, 3))
    assert cross_fit_pairs(by_pair).advantage == pytest.approx(by_hand(by_pair), abs=1e-12)


def test_a_clear_winner_is_scored_by_its_plain_mean():
    by_pair = np.random.default_rng(0).normal([0.0, -0.5, 0.1], 0.01, (7, 3))
    fit = cross_fit_pairs(by_pair)
    assert fit.advantage == pytest.approx(-by_pair[:, 1].mean(), abs=1e-12)
    assert fit.choice == pytest.approx([0, -1, 0])
    assert fit.basis == "over pairs"


@pytest.mark.parametrize("n_pairs", [5, 8, ENUMERATED])
def test_the_order_of_pairs_and_of_adversaries_does_not_matter(n_pairs):
    rng = np.random.default_rng(1)
    by_pair = rng.normal(0, 0.05, (n_pairs, 4))
    expected = cross_fit_pairs(by_pair).advantage
    assert cross_fit_pairs(rng.permuted(by_pair, axis=0, out=None)).advantage != pytest.approx(expected)
    assert cross_fit_pairs(by_pair[rng.permutation(n_pairs)]).advantage == pytest.approx(expected, abs=1e-12)
    assert cross_fit_pairs(by_pair[:, ::-1]).advantage == pytest.approx(expected, abs=1e-12)


def tying(rng, n_pairs=8, k=5, n_adversaries=8):
    """Decisions on few points with unequal weights: many adversaries have the same advantage on a half of the pairs."""
    weight = np.tile(rng.integers(1, 4, k) / 7.0, 2)
    labels = np.repeat([True, False], k)
    return [
        PairOutcome(rng.integers(-1, 2, (2 * k, n_adversaries)).astype(float), labels, weight) for _ in range(n_pairs)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_ties_are_not_decided_by_rounding(seed):
    rng = np.random.default_rng(seed)
    outcomes = tying(rng)
    one, best = cross_fit(outcomes), best_adversary(np.mean([o.advantage for o in outcomes], axis=0))
    order = rng.permutation(len(outcomes))
    shuffled = []
    for outcome in (outcomes[i] for i in order):
        points = rng.permutation(2 * outcome.k)
        scaled = outcome.weight[points] * rng.uniform(0.1, 10)
        shuffled.append(PairOutcome(outcome.differences[points], outcome.in_forget[points], scaled))
    assert cross_fit(shuffled).advantage == pytest.approx(one.advantage, abs=1e-12)
    assert cross_fit(shuffled).choice == pytest.approx(one.choice, abs=1e-12)
    assert best_adversary(np.mean([o.advantage for o in shuffled], axis=0)) == best
    backwards = [PairOutcome(o.differences[:, ::-1], o.in_forget, o.weight) for o in outcomes]
    assert cross_fit(backwards).advantage == pytest.approx(one.advantage, abs=1e-12)
    exchanged = [PairOutcome(o.differences, ~o.in_forget, o.weight) for o in outcomes]
    assert cross_fit(exchanged).advantage == pytest.approx(one.advantage, abs=1e-12)


@pytest.mark.parametrize("n_pairs", [ENUMERATED + 1, 16, 30])
def test_beyond_enumeration_every_pair_still_counts_alike(n_pairs):
    by_pair = np.random.default_rng(2).normal(0.5, 0.05, (n_pairs, 1))
    assert cross_fit_pairs(by_pair).advantage == pytest.approx(by_pair.mean(), abs=1e-12)


def test_flipping_every_sign_changes_nothing_but_the_choice():
    by_pair = np.random.default_rng(4).normal(0.02, 0.05, (6, 4))
    one, other = cross_fit_pairs(by_pair), cross_fit_pairs(-by_pair)
    assert one.advantage == pytest.approx(other.advantage, abs=1e-15)
    assert one.choice == pytest.approx(-other.choice)


def test_five_pairs_are_halved_and_four_are_not():
    outcomes = simulate_pairs(make_world(0.6, (0.0, 0.5)), 5, 1, np.random.default_rng(5))
    assert cross_fit(outcomes).basis == "over pairs"
    assert cross_fit(outcomes).advantage == cross_fit_pairs(np.array([o.advantage for o in outcomes])).advantage
    assert cross_fit(outcomes[:4]).basis == "over points"


def test_a_clear_winner_over_points_is_scored_by_its_plain_mean():
    rng, k = np.random.default_rng(6), 16
    moved = np.repeat([1.0, -1.0], k)[:, None] * [0.1, -0.6] + rng.uniform(-0.05, 0.05, (2 * k, 2))
    one = PairOutcome(moved, np.repeat([True, False], k), np.ones(2 * k))
    fit = cross_fit([one, one])
    assert fit.advantage == pytest.approx(-one.advantage[1], abs=1e-12)
    assert (fit.basis, list(fit.choice)) == ("over points", pytest.approx([0, -1]))


def test_points_without_weight_are_in_no_half():
    rng, k = np.random.default_rng(7), 9
    values, labels = rng.uniform(-1, 1, (2 * k, 3)), np.repeat([True, False], k)
    weight = np.where(np.arange(2 * k) % 3 == 0, 0.0, rng.uniform(1, 2, 2 * k))
    kept = weight > 0
    expected = cross_fit([PairOutcome(values[kept], labels[kept], weight[kept])])
    assert cross_fit([PairOutcome(values, labels, weight)]).advantage == pytest.approx(expected.advantage, abs=1e-12)


def test_a_single_point_cannot_be_halved_and_says_so():
    fit = cross_fit(outcomes_of(np.array([[0.1, -0.3]])))
    assert (fit.advantage, fit.basis) == (pytest.approx(0.3), "plug-in")


@pytest.mark.parametrize("by_pair", [np.zeros((1, 2)), np.zeros(4)])
def test_one_pair_is_refused(by_pair):
    with pytest.raises(ValueError, match="at least two pairs"):
        cross_fit_pairs(by_pair)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "correlation"), SCENARIOS)
@pytest.mark.parametrize("n_pairs", [5, 8])
def test_the_estimate_is_unbiased_for_the_adversary_it_chose(name, correlation, n_pairs):
    """E[estimate − true signed advantage of the adversaries chosen by the halves, in the chosen orientation] = 0."""
    errors, _ = crossfit_errors(name, correlation, n_pairs, repetitions=1500)
    assert abs(errors.mean()) <= 3.5 * errors.std() / np.sqrt(len(errors))


@pytest.mark.slow
@pytest.mark.parametrize("folds", ["one halving", "leave one out"])
@pytest.mark.parametrize("n_pairs", [5, 8, 16])
@pytest.mark.parametrize(("name", "correlation"), [("null", 0.0), ("null", 0.7), ("ties", 0.7), ("one dominant", 0.0)])
def test_all_halvings_vary_less_about_their_target_than_other_folds(name, correlation, n_pairs, folds):
    ours, _ = crossfit_errors(name, correlation, n_pairs, repetitions=1000)
    theirs, _ = other_folds(name, correlation, n_pairs, folds, repetitions=1000)
    assert ours.std() < theirs.std()


@pytest.mark.slow
def test_over_points_the_estimate_is_unbiased_given_the_models():
    rng, k, errors = np.random.default_rng(8), 40, []
    truth = np.array([0.05, 0.0, 0.0, -0.05])
    labels = np.repeat([True, False], k)
    for _ in range(1500):
        moved = np.where(labels, 1, -1)[:, None] * truth + rng.uniform(-0.9, 0.9, (2 * k, 4))
        fit = cross_fit([PairOutcome(moved, labels, np.ones(2 * k))])
        errors.append(fit.advantage - fit.choice @ truth)
    assert abs(np.mean(errors)) <= 3.5 * np.std(errors) / np.sqrt(len(errors))


def points_by_hand(outcomes, n_blocks):
    """Points of every set are dealt in turn; each half of the blocks scores the adversary that the other half chose."""

    def advantage(outcome, blocks):
        means = []
        for side in outcome.sides:
            rows = np.flatnonzero(side & (outcome.weight > 0))
            own = [row for place, row in enumerate(rows) if place % n_blocks in blocks]
            means.append(np.average(outcome.differences[own], axis=0, weights=outcome.weight[own]))
        return (means[0] - means[1]) / 2

    total, count = 0.0, 0
    for size in {n_blocks // 2, n_blocks - n_blocks // 2}:
        for scored in itertools.combinations(range(n_blocks), size):
            rest = [block for block in range(n_blocks) if block not in scored]
            chosen = np.mean([advantage(o, rest) for o in outcomes], axis=0)
            best = int(np.argmax(np.abs(chosen)))
            total += size * np.sign(chosen[best]) * np.mean([advantage(o, scored) for o in outcomes], axis=0)[best]
            count += size
    return total / count


@pytest.mark.parametrize(("k", "n_pairs"), [(2, 1), (3, 2), (6, 1), (9, 3), (10, 4)])
def test_over_points_all_halvings_agree_with_a_loop_over_them(k, n_pairs):
    rng = np.random.default_rng(k)
    in_forget = np.arange(2 * k) < k
    outcomes = [
        PairOutcome(rng.uniform(-1, 1, (2 * k, 3)), in_forget, rng.uniform(0.5, 2, 2 * k)) for _ in range(n_pairs)
    ]
    found = cross_fit(outcomes)
    assert found.basis == "over points"
    assert found.advantage == pytest.approx(points_by_hand(outcomes, min(k, 8)), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_scale_of_weights_is_nothing_to_it(scale):
    rng = np.random.default_rng(1)
    d, in_forget, weight = rng.uniform(-1, 1, (12, 3)), np.arange(12) < 6, rng.uniform(0.5, 2, 12)
    plain, scaled = (cross_fit([PairOutcome(d, in_forget, own)]).advantage for own in (weight, scale * weight))
    assert scaled == pytest.approx(plain)


def test_adversaries_that_are_one_share_the_choice():
    by_pair = np.random.default_rng(2).uniform(-0.2, 0.3, (6, 2))
    alone, twice = cross_fit_pairs(by_pair), cross_fit_pairs(by_pair[:, [0, 1, 1, 1]])
    assert twice.advantage == pytest.approx(alone.advantage)
    assert twice.choice == pytest.approx(alone.choice[[0, 1, 1, 1]] / [1, 3, 3, 3])


@pytest.mark.parametrize("n", [13, 16, 67])
def test_beyond_enumeration_halves_are_spaced_evenly_at_up_to_32_spacings(n):
    halves = {frozenset(np.flatnonzero(row).tolist()) for row in _halves(n)}
    spacings = [s for s in range(1, n) if np.gcd(s, n) == 1 and 2 * s <= n][:32]
    expected = {frozenset((start + s * i) % n for i in range(n // 2)) for s in spacings for start in range(n)}
    if n % 2:
        expected |= {frozenset(range(n)) - half for half in expected}
    assert halves == expected
    assert len(_halves(n)) == len(halves)  # none counts twice
    with pytest.raises(ValueError, match="read-only"):
        _halves(n)[0, 0] = True  # it is kept for the next who asks


def test_where_nothing_was_measured_nobody_is_chosen():
    for found in (cross_fit_pairs(np.zeros((6, 3))), cross_fit([PairOutcome(np.zeros((4, 3)), LABELS, np.ones(4))])):
        assert found.advantage == 0
        assert found.choice.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="at least one pair"):
        cross_fit([])
    with pytest.raises(ValueError, match="same adversaries"):
        cross_fit([PairOutcome(np.zeros((4, n)), LABELS, np.ones(4)) for n in (1, 2)])


LABELS = np.arange(4) < 2
