"""The order in which an adversary is shown the points of a pair says nothing about who is in F."""

from __future__ import annotations

import numpy as np
import pytest

from forgetgauge.attack.adversary import answers_of
from forgetgauge.attack.signals import CONFIDENCE, Signals
from forgetgauge.plan.draws import draw_showing, draw_swap_pair
from forgetgauge.plan.jobs import DecideJob, Named
from forgetgauge.run.adversary import decide
from forgetgauge.store.objects import Artefact


class Attack:
    """Decides by a function of the signals."""

    def __init__(self, says):
        self.says = says

    def decide(self, signals):
        return self.says(signals)

    def arrays(self):
        return {}


def first_half(signals):
    return np.arange(len(signals)) < len(signals) // 2


def surer_half(signals):
    """Everybody of the half of the list in which the model is surer: finds the side at once where F stands first."""
    first, sure = first_half(signals), CONFIDENCE(signals)
    return first if sure[first].mean() > sure[~first].mean() else ~first


class Adversary:
    needs = frozenset()

    def __init__(self, says):
        self.says = says

    def fit(self, shadows, target):
        return Attack(self.says)

    def load(self, arrays):
        return Attack(self.says)


def advantages(says, n_pairs=200, n=40):
    """Of an adversary against models that are surer of every point of F, pair by pair and side by side."""
    from forgetgauge import plugins

    job = DecideJob(Named(plugins.adversaries.bind(Adversary(says))), "classification")
    found = []
    for pair in range(n_pairs):
        drawn = draw_swap_pair("some data", n, 0, 1.0, 0.5, pair)
        for in_forget in (drawn.in_forget, ~drawn.in_forget):
            labels = np.zeros(len(in_forget), dtype=np.int64)
            logits = np.stack([np.where(in_forget, 3.0, 1.0), np.zeros(len(in_forget))], axis=1).astype(np.float32)
            signals = Artefact({"outputs": logits, "labels": labels, "points": drawn.points}, {})
            said = decide(job, {"fit": Artefact({}, {}), "signals": signals}).arrays["says_forget"]
            found.append(said[in_forget].mean() - said[~in_forget].mean())
    return np.asarray(found)


def test_pointing_at_the_first_half_of_the_points_tells_nothing_on_either_side():
    found = advantages(first_half)
    for side in (found[::2], found[1::2]):  # F stood first on one of them: an advantage of 1
        assert abs(side.mean()) < 4 * side.std() / np.sqrt(len(side))
        assert np.abs(side).max() < 1


def test_the_surer_half_of_the_list_is_no_better_than_a_random_half():
    rng = np.random.default_rng(0)
    random_halves = []
    for _ in range(2000):  # the surer of two halves drawn at random holds more of F by chance
        share = rng.permutation(np.repeat([1.0, -1.0], 13))[:13].sum() / 13
        random_halves.append(abs(share))
    found = advantages(surer_half)
    assert found.mean() < np.mean(random_halves) + 4 * found.std() / np.sqrt(len(found))
    assert found.mean() < 0.3


def test_the_order_depends_on_the_set_of_points_alone():
    pair = draw_swap_pair("some data", 30, 0, 1.0, 0.5, 3)
    swapped = np.concatenate([pair.split.unseen, pair.split.forget])
    shown = pair.points[draw_showing(pair.points)]
    np.testing.assert_array_equal(shown, swapped[draw_showing(swapped)])
    assert sorted(shown) == sorted(pair.points)
    names = np.array([f"id {point}" for point in pair.points])  # of an audit file
    assert sorted(names[draw_showing(names)]) == sorted(names)


def test_answers_stand_beside_the_points_they_are_about():
    rng = np.random.default_rng(1)
    signals = Signals(rng.normal(size=(20, 3)).astype(np.float32), rng.integers(0, 3, 20), np.arange(20) * 7 % 20)
    says, margin = answers_of(Attack(lambda s: CONFIDENCE(s) > 0.4), signals, draw_showing(signals.points))
    np.testing.assert_array_equal(says, CONFIDENCE(signals) > 0.4)
    np.testing.assert_array_equal(margin, np.where(says, 0.5, -0.5))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda s: CONFIDENCE(s), "values of type float64, not booleans"),
        (lambda s: np.ones(3, dtype=bool), r"shape \(3,\), not one boolean for each of 20 points"),
        (lambda s: True, r"shape \(\)"),
        (lambda s: np.full(len(s), 2), "not booleans"),
    ],
)
def test_what_is_no_decision_is_refused(answer, words):
    signals = Signals(np.zeros((20, 3), dtype=np.float32), np.zeros(20, dtype=np.int64))
    with pytest.raises(ValueError, match=words):
        answers_of(Attack(answer), signals, np.arange(20))
