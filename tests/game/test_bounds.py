import math
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forgetgauge.game import bounds
from forgetgauge.game.splits import Split

from .enumeration import enumerate_splits, one_point, supremum, swap_supremum, total_variation, whole_set

epsilons, deltas = st.floats(0, 30), st.floats(0, 0.49)


@pytest.mark.parametrize(
    ("advantage", "tight"),
    [(0.1, 0.105), (0.413, 0.533), (0.5, 0.693), (0.9, 2.303)],
)
def test_known_lower_bounds_on_epsilon(advantage, tight):
    assert bounds.tight_epsilon_floor(advantage, 0) == pytest.approx(tight, abs=5e-4)


def test_known_bounds_on_the_advantage():
    assert bounds.tight_bound(1, 0) == pytest.approx(0.6321, abs=5e-5)
    assert bounds.paper_bound(1, 0) == pytest.approx(0.9242, abs=5e-5)
    assert bounds.paper_bound(1, 0) == pytest.approx(2 * math.tanh(0.5))
    assert bounds.tight_epsilon_floor(1, 0) == math.inf


def test_the_papers_bound_is_vacuous_from_ln_3_and_the_tight_one_never():
    assert bounds.paper_bound(1.2, 0) > 1
    assert bounds.paper_bound(math.log(3), 0) == pytest.approx(1)
    assert 0 < 1 - bounds.tight_bound(10, 0) == pytest.approx(math.exp(-10))
    assert bounds.paper_bound(1e6, 0) == 2  # no overflow


@given(epsilons, deltas)
def test_the_tight_bound_is_tighter_everywhere_and_both_are_formulas_of_the_docstring(epsilon, delta):
    assert bounds.tight_bound(epsilon, delta) <= bounds.paper_bound(epsilon, delta) + 1e-12
    assert bounds.paper_bound(epsilon, delta) == pytest.approx(2 * (1 - (2 - 2 * delta) / (math.exp(epsilon) + 1)))
    floor = (1 - 2 * delta) * math.exp(-epsilon)
    assert 1 - bounds.tight_bound(epsilon, delta) == pytest.approx(floor, abs=1e-12)


@given(st.floats(0.01, 0.99), deltas)
def test_inverting_a_bound_gives_back_the_advantage(advantage, delta):
    tight = bounds.tight_epsilon_floor(advantage, delta)
    if tight > 0:
        assert bounds.tight_bound(tight, delta) == pytest.approx(advantage)
    else:
        assert bounds.tight_bound(0, delta) >= advantage - 1e-12


def test_a_large_delta_explains_everything():
    assert bounds.tight_bound(0, 0.7) == 1
    assert bounds.tight_epsilon_floor(1, 0.5) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.paper_bound(-1, 0), "epsilon must not be negative, but it is -1"),
        (lambda: bounds.tight_bound(math.nan, 0), "epsilon"),
        (lambda: bounds.tight_bound(1, 1.5), "delta must lie"),
        (lambda: bounds.tight_epsilon_floor(1.5, 0), "lies in"),
        (lambda: bounds.tight_epsilon_floor(-0.5, 0), "lies in"),
        (lambda: bounds.tight_epsilon_floor(0.5, -1), "delta must lie"),
    ],
)
def test_arguments_out_of_range_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Mechanisms small enough to list every event.


def random_law(rng: np.random.Generator, n_models: int, *, near=None) -> dict[int, Fraction]:
    """A random distribution over models; ``near`` another one when given, so that ε is not always huge."""
    counts = rng.integers(1, 30, n_models)
    law = {model: Fraction(int(count), int(counts.sum())) for model, count in enumerate(counts)}
    return law if near is None else {model: (law[model] + 3 * near[model]) / 4 for model in law}


def least_delta(epsilon: float, law, retrain) -> float:
    """The least δ for which this law is (ε, δ)-close to Retrain, over all events W, both ways."""
    models = sorted(law)
    events = chain.from_iterable(combinations(models, size) for size in range(len(models) + 1))
    gaps = []
    for event in events:
        p, r = (float(sum((m[model] for model in event), Fraction(0))) for m in (law, retrain))
        gaps += [p - math.exp(epsilon) * r, r - math.exp(epsilon) * p]
    return min(1.0, max(gaps))


def retained(split: Split) -> tuple[int, ...]:
    return tuple(split.retain.tolist())


def forgotten(split: Split) -> tuple[int, ...]:
    return tuple(split.forget.tolist())


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize(("n", "alpha"), [(4, Fraction(1, 3)), (5, Fraction(2, 3))])
def test_both_bounds_hold_on_random_mechanisms(n, alpha, seed):
    rng = np.random.default_rng(seed)
    splits = list(enumerate_splits(n, alpha))
    retrains = {key: random_law(rng, 4) for key in {retained(s): None for s in splits}}
    near = bool(seed % 2)
    unlearned = {
        (retained(s), forgotten(s)): random_law(rng, 4, near=retrains[retained(s)] if near else None) for s in splits
    }

    def law(split: Split) -> dict[int, Fraction]:
        return unlearned[retained(split), forgotten(split)]

    weight = None if seed % 3 else rng.integers(1, 9, n).tolist()
    exact = [supremum(splits, law, sees, weight) for sees in (one_point, whole_set)]
    exact += [swap_supremum(split, law) for split in splits]
    for epsilon in (0.0, 0.1, 0.3, 0.7, 1.0, 2.0, 4.0):
        delta = max(least_delta(epsilon, law(split), retrains[retained(split)]) for split in splits)
        for bound in (bounds.tight_bound, bounds.paper_bound):
            assert max(exact) <= bound(epsilon, delta) + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, math.log(3), 3.0])
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
def test_the_one_bit_example_attains_the_tight_bound(epsilon, delta):
    """The model is one bit, uniform under Retrain; unlearning leans it towards the side of F as far as it may."""
    lean = Fraction(1 - math.exp(-epsilon) * (0.5 - delta))
    split = Split(np.array([0]), np.array([1]), np.array([2]))
    retrain = {0: Fraction(1, 2), 1: Fraction(1, 2)}

    def law(side: Split) -> dict[int, Fraction]:
        return {0: lean, 1: 1 - lean} if side == split else {0: 1 - lean, 1: lean}

    for side in (split, split.swapped()):
        assert least_delta(epsilon, law(side), retrain) <= delta + 1e-12
    assert float(swap_supremum(split, law)) == pytest.approx(bounds.tight_bound(epsilon, delta), abs=1e-12)
    assert float(supremum([split, split.swapped()], law, one_point)) == pytest.approx(
        bounds.tight_bound(epsilon, delta)
    )
    assert total_variation(retrain, retrain) == 0


def test_a_delta_of_one_promises_nothing_and_more_is_none():
    assert (bounds.tight_bound(0.5, 1.0), bounds.tight_epsilon_floor(1.0, 1.0)) == (1, 0)
    assert bounds.paper_bound(0.5, 1.0) == 2
    for call in (bounds.tight_bound, bounds.paper_bound, bounds.tight_epsilon_floor):
        for delta in (-0.1, 1.1):
            with pytest.raises(ValueError, match="delta must lie in"):
                call(0.5, delta)
