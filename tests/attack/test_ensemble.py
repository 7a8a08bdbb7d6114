"""The ensemble against a second fit of the same regression, and what its members may be."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize

from forgetgauge import plugins
from forgetgauge.attack.adversary import Need, Role, TargetContext
from forgetgauge.attack.ensemble import ENSEMBLE, Ensemble

from .worlds import N_CLASSES, auc, draw_world

TWO = Ensemble(of=("confidence", "lira-online"))


def margins_by_hand(world):
    """(n_models · n_points, 2) margins of both members at every reference model, LiRA being fitted to the others."""
    references, rows = world.references, []
    confidence = plugins.adversaries.load("confidence").fit(world.shadows, TargetContext(N_CLASSES))
    for which in range(references.n_models):
        others = [one for one in range(references.n_models) if one != which]
        rest = dataclasses.replace(references, outputs=references.outputs[others], role=references.role[others])
        rest = dataclasses.replace(rest, columns={})
        lira = plugins.adversaries.load("lira-online").fit(world.shadows, TargetContext(N_CLASSES, references=rest))
        seen = dataclasses.replace(references.model(which), points=np.arange(len(references.labels)))
        rows.append(np.stack([confidence.margin(seen), lira.margin(seen)], axis=1))
    return np.concatenate(rows)


def test_it_is_the_balanced_ridge_regression_of_bounded_margins():
    """Against a general optimiser on the same objective, written out: Σ w log(1 + e^−(2y−1)z) + ½‖β‖²."""
    world = draw_world(40)
    attack = TWO.fit(*world.given(TWO))
    margins, member = margins_by_hand(world), (world.references.role == Role.IN).ravel()
    size = np.median(np.abs(margins), axis=0)
    rows = margins / (np.abs(margins) + size)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    weight = np.where(member, 0.5 / member.mean(), 0.5 / (~member).mean())

    def objective(beta: np.ndarray) -> float:
        z = rows @ beta[:2] + beta[2]
        return float((weight * np.logaddexp(0, np.where(member, -z, z))).sum() + 0.5 * (beta[:2] ** 2).sum())

    best = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose([*attack.weight, attack.intercept], best, rtol=1e-3, atol=1e-4)


def test_each_reference_model_is_judged_by_attacks_that_were_not_fitted_to_it():
    """Answers that a reference model gives by chance must not look like what LiRA learned of it."""
    world = draw_world(41, boost=0.0, n_models=3)
    attack = Ensemble(of=("confidence", "lira-online")).fit(*world.given(TWO))
    assert abs(attack.weight[1]) < 0.5  # fitted to itself, LiRA tells half of the members by heart


def test_it_does_at_least_as_well_as_its_members_where_they_see_different_things():
    worlds = [draw_world(300 + which, boost=2.0) for which in range(6)]

    def mean_auc(adversary) -> float:
        return float(np.mean([auc(w.fit(adversary).score(w.seen(adversary)), w.member) for w in worlds]))

    members = [mean_auc(plugins.adversaries.load(name)) for name in ENSEMBLE.of]
    assert mean_auc(ENSEMBLE) > max(members) - 0.01


def test_its_needs_are_those_of_its_members_and_reference_models():
    assert Ensemble(of=("loss", "entropy")).needs == {Need.REFERENCES}
    assert Ensemble(of=("loss", "gradient-norm")).needs == {Need.REFERENCES, Need.GRADIENT_NORM}
    assert Ensemble(of=("loss", "gradient-norm")).access != ENSEMBLE.access
    assert Ensemble(of=("label-only", "loss")).access == ENSEMBLE.access


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (("loss",), "two or more different"),
        (("loss", "loss"), "two or more different"),
        (("loss", "rmia-offline"), "'rmia-offline' cannot be used"),
        (("loss", "u-lira"), "'u-lira' cannot be used"),
        (("loss", "ensemble"), "'ensemble' cannot be used"),
    ],
)
def test_members_that_do_not_fit_are_refused_in_one_line(of, words):
    with pytest.raises(ValueError, match=words) as refused:
        Ensemble(of=of)
    assert "\n" not in str(refused.value)


def test_one_reference_model_cannot_be_left_out():
    world = draw_world(42, n_models=1)
    with pytest.raises(ValueError, match="two or more reference models"):
        TWO.fit(*world.given(TWO))
