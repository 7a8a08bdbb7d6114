"""Adversaries that are asked about whole groups: means of margins, against a threshold from shadow models."""

import numpy as np
import pytest

from forgetgauge.attack.adversary import Panel, Role
from forgetgauge.run.adversary import calibrated_by_group, margins_by_group, means_of_groups


def panel(role: np.ndarray) -> Panel:
    n_models, n = role.shape
    return Panel(np.zeros((n_models, n, 2), dtype=np.float32), np.zeros(n, dtype=np.int64), role)


def test_the_margin_of_a_group_is_the_mean_of_its_points_above_the_threshold():
    group, margin = np.array([4, 2, 4, 2, 9]), np.array([1.0, 2.0, 3.0, 6.0, 5.0])
    np.testing.assert_allclose(means_of_groups(margin, group), [4, 2, 5])
    np.testing.assert_allclose(margins_by_group(margin, group, 3.0), [-1, 1, -1, 1, 2])


def test_the_threshold_best_tells_the_groups_of_shadow_models():
    """Points overlap so much that none can be told; the means of groups of 25 lie apart, around 0.5 and −0.5."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 25)
    role = np.stack([np.where(rng.permutation(40) < 20, Role.IN, Role.OUT)[group] for _ in range(4)]).astype(np.int8)
    margins = rng.normal(size=role.shape) * 2 + np.where(role == Role.IN, 7.5, 6.5)
    calibration = tuple((own[r == Role.IN], own[r == Role.OUT]) for own, r in zip(margins, role, strict=True))
    threshold, by_group = calibrated_by_group(calibration, panel(role), group, rng)
    assert threshold == pytest.approx(7, abs=0.25)
    assert [len(side) for both in by_group for side in both] == [20] * 8
    right = np.mean([(members >= 0).mean() + (others < 0).mean() for members, others in by_group]) / 2
    assert right > 0.85
    np.testing.assert_allclose(
        by_group[0][0], means_of_groups(margins[0][role[0] == 1], group[role[0] == 1]) - threshold
    )


def test_points_that_are_not_to_be_used_are_of_no_group():
    role = np.array([[Role.IN, Role.IN, Role.NEITHER, Role.OUT, Role.OUT]], dtype=np.int8)
    calibration = ((np.array([2.0, 4.0]), np.array([-1.0, -3.0])),)
    threshold, by_group = calibrated_by_group(
        calibration, panel(role), np.array([1, 1, 2, 3, 3]), np.random.default_rng(0)
    )
    assert threshold == 0.5  # midway between the means 3 and −2
    assert [side.tolist() for side in by_group[0]] == [[2.5], [-2.5]]


def test_margins_at_some_points_only_are_taken_by_handfuls():
    rng = np.random.default_rng(1)
    role = np.repeat([[Role.IN, Role.OUT]], 400, axis=1).astype(np.int8)
    known = ((rng.normal(1, 1, 100), rng.normal(-1, 1, 100)),)  # of 400 points each
    threshold, by_group = calibrated_by_group(known, panel(role), np.repeat(np.arange(80), 10), rng)
    assert threshold == pytest.approx(0, abs=0.5)
    assert by_group == ()


def test_a_likelihood_ratio_has_the_threshold_0():
    role = np.array([[Role.IN, Role.OUT]], dtype=np.int8)
    assert calibrated_by_group((), panel(role), np.array([0, 1]), np.random.default_rng(0)) == (0.0, ())
