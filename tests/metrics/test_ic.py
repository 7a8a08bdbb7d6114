"""The interclass confusion test, by hand on tables of predictions."""

from __future__ import annotations

import numpy as np
import pytest

from forgetgauge.metrics.scores import confused_half, exchanged, ic_score, interclass_error

A, B, OTHER = 3, 5, 7


def test_gamma_counts_the_points_taken_for_the_other_of_the_two_classes():
    true = [A, A, A, A, B, B, B, B]
    predicted = [A, B, B, OTHER, B, B, A, OTHER]  # A→B twice, B→A once, into a third class twice
    assert interclass_error(predicted, true, (A, B)) == 3 / 8
    assert ic_score(predicted, true, (A, B)) == 5 / 8


def test_errors_into_a_third_class_do_not_count():
    true = np.array([A, B] * 10)
    assert ic_score(np.full(20, OTHER), true, (A, B)) == 1


def test_a_model_that_kept_the_confusion_scores_0_and_one_that_never_had_it_1():
    true = np.array([A, B, A, B])
    assert ic_score(exchanged(true, np.full(4, True), (A, B)), true, (A, B)) == 0
    assert ic_score(true, true, (A, B)) == 1


def test_the_order_of_the_classes_does_not_matter():
    rng = np.random.default_rng(0)
    true, predicted = rng.choice([A, B], 50), rng.choice([A, B, OTHER], 50)
    assert ic_score(predicted, true, (A, B)) == ic_score(predicted, true, (B, A))


def test_labels_are_exchanged_on_the_confused_points_alone_and_twice_is_never():
    labels = np.array([A, B, A, B, OTHER])
    confused = np.array([True, True, False, False, False])
    changed = exchanged(labels, confused, (A, B))
    assert changed.tolist() == [B, A, A, B, OTHER]
    assert labels.tolist() == [A, B, A, B, OTHER]
    np.testing.assert_array_equal(exchanged(changed, confused, (A, B)), labels)


def test_half_of_the_members_of_each_class_is_confused_and_nobody_else():
    labels, members = np.arange(200) % 10, np.arange(200) < 150
    confused = confused_half(labels, members, (A, B), np.random.default_rng(1))
    assert not (confused & ~members).any()
    for label in range(10):
        of_class = members & (labels == label)
        assert (confused & (labels == label)).sum() == (of_class.sum() // 2 if label in (A, B) else 0)


def test_every_member_of_a_class_is_confused_equally_often():
    labels = np.array([A] * 6 + [B] * 6)
    rng = np.random.default_rng(2)
    counts = sum(confused_half(labels, np.full(12, True), (A, B), rng).astype(int) for _ in range(2000))
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(500)


@pytest.mark.parametrize(
    ("predicted", "true", "words"),
    [([], [], "at least one"), ([A], [OTHER], "classes"), ([A, B], [A], "same points"), ([0.5], [A], "whole numbers")],
)
def test_what_makes_no_sense_is_refused(predicted, true, words):
    with pytest.raises(ValueError, match=words):
        interclass_error(np.array(predicted, dtype=None if predicted else int), np.array(true, dtype=int), (A, B))


def test_points_of_other_classes_cannot_be_confused():
    with pytest.raises(ValueError, match="only points of the classes"):
        exchanged(np.array([OTHER]), np.array([True]), (A, B))
