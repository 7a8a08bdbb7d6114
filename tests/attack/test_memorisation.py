"""Which points are memorised most, by models on random parts of the data."""

import numpy as np
import pytest

from forgetgauge.attack.adversary import Panel, Role
from forgetgauge.attack.reference import hardest, memorisation


def panel(logits: np.ndarray, role: np.ndarray) -> Panel:
    """Of two classes, the label always 1: (models, points) logits of it."""
    outputs = np.stack([np.zeros_like(logits), logits], axis=2).astype(np.float32)
    return Panel(outputs, np.ones(logits.shape[1], dtype=np.int64), role.astype(np.int8))


def test_the_score_is_the_mean_probability_of_the_label_of_those_who_saw_it_minus_that_of_the_others():
    rng = np.random.default_rng(0)
    logits, role = rng.normal(size=(8, 5)), np.array([[i in (j, j + 1, j + 3) for j in range(5)] for i in range(8)])
    probability = 1 / (1 + np.exp(-logits.astype(np.float32).astype(np.float64)))
    expected = [probability[role[:, j], j].mean() - probability[~role[:, j], j].mean() for j in range(5)]
    np.testing.assert_allclose(memorisation(panel(logits, np.where(role, Role.IN, Role.OUT))), expected, atol=1e-7)


def test_points_whose_label_must_be_memorised_score_highest():
    """A twentieth of the points has a label that nobody guesses, but those who saw it know it."""
    rng = np.random.default_rng(1)
    odd, role = np.arange(200) % 20 == 0, rng.random((16, 200)) < 0.5
    logits = np.where(odd & ~role, -3.0, 3.0) + rng.normal(size=role.shape)
    scores = memorisation(panel(logits, np.where(role, Role.IN, Role.OUT)))
    np.testing.assert_array_equal(hardest(scores, 10), odd)


def test_groups_are_as_hard_as_their_points_on_average():
    scores, groups = np.array([9.0, 0.0, 0.0, 4.0, 4.0, 1.0]), np.array([7, 7, 7, 2, 2, 5])
    np.testing.assert_array_equal(hardest(scores, 1, groups), [False, False, False, True, True, False])
    np.testing.assert_array_equal(hardest(scores, 2, groups), [True, True, True, True, True, False])


@pytest.mark.parametrize("n", [0, 3, 6])
def test_ties_do_not_change_how_many_there_are(n):
    assert hardest(np.zeros(6), n).sum() == n
