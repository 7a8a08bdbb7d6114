"""BaVarIA against scipy, against the integral that it stands for, and against simulated models."""

import numpy as np
import pytest
from scipy import stats

from forgetgauge.attack.adversary import Panel, Role, TargetContext
from forgetgauge.attack.bavaria import BAVARIA, Predictive, predictive
from forgetgauge.attack.lira import ONLINE

from .worlds import N_CLASSES, auc, draw_world


def test_the_density_is_scipy_s_student_t():
    rng = np.random.default_rng(0)
    freedom, location, scale = rng.uniform(2, 60, 50), rng.normal(0, 3, 50), rng.uniform(0.01, 5, 50)
    value = rng.normal(0, 10, 50)
    found = Predictive(location, scale, freedom).log_density(value, np.arange(50))
    np.testing.assert_allclose(found, stats.t.logpdf(value, freedom, location, scale), rtol=1e-10)


def panel_of_normals(n_models: int, n_points: int, seed: int, shape: float = 3.0):
    """Values of models at points that have a mean and a variance of their own, the latter inverse gamma."""
    rng = np.random.default_rng(seed)
    variance = stats.invgamma.rvs(shape, scale=shape - 1, size=n_points, random_state=rng)
    mean = rng.normal(0, 2, n_points)
    return mean + np.sqrt(variance) * rng.standard_normal((n_models, n_points)), np.zeros(n_points)


def test_the_predictive_distribution_is_the_integral_over_what_is_not_known():
    """∫∫ N(φ; μ, σ²) p(μ, σ² | values) dμ dσ², summed over a grid from prior and likelihood, at one point."""
    values, expected = panel_of_normals(3, 400, seed=1)
    used = np.ones_like(values, dtype=bool)
    fitted = predictive(values, used, expected)
    own, n = values[:, 0], 3
    # the prior that was learned, read off the posterior: α = α₀ + n/2, m = (κ₀ m₀ + n φ̄)/(κ₀ + n)
    shape = fitted.freedom[0] / 2 - n / 2
    weight = n * own.mean() / fitted.location[0] - n
    within = np.var(values, axis=0, ddof=1).mean()

    mean, log_variance = np.meshgrid(np.linspace(-8, 8, 641), np.linspace(-12, 12, 481))
    variance = np.exp(log_variance)
    prior = stats.invgamma.logpdf(variance, shape, scale=within * (shape - 1)) + log_variance
    prior += stats.norm.logpdf(mean, expected[0], np.sqrt(variance / weight))

    def integral(*further: float) -> float:
        seen = [*own, *further]
        return float(np.exp(prior + sum(stats.norm.logpdf(one, mean, np.sqrt(variance)) for one in seen)).sum())

    for value in (-1.0, 0.7, 4.0):
        by_hand = np.log(integral(value) / integral())
        assert fitted.log_density(np.array([value]), np.array([0]))[0] == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("shape", [3.0, 6.0])
def test_the_prior_of_the_variances_is_found_again(shape):
    """α₀ from 20,000 points with eight models each; the moment of an inverse gamma of shape 3 has heavy tails."""
    values, expected = panel_of_normals(8, 20_000, seed=2, shape=shape)
    fitted = predictive(values, np.ones_like(values, dtype=bool), expected)
    assert fitted.freedom[0] / 2 - 4 == pytest.approx(shape, rel=0.25)


def test_points_of_one_variance_are_given_one():
    rng = np.random.default_rng(3)
    values = rng.normal(0, 2, 2000) + 0.5 * rng.standard_normal((6, 2000))
    fitted = predictive(values, np.ones_like(values, dtype=bool), np.zeros(2000))
    assert fitted.freedom.min() > 60  # all but normal
    assert np.ptp(fitted.scale) < 0.2 * fitted.scale.mean()


def test_what_is_predicted_holds_as_often_as_it_says():
    """Of one more model at each point, the predictive distribution function is uniform (Kolmogorov–Smirnov)."""
    for n_models in (2, 4, 16):
        values, expected = panel_of_normals(n_models + 1, 4000, seed=n_models)
        fitted = predictive(values[:-1], np.ones((n_models, 4000), dtype=bool), expected)
        level = stats.t.cdf(values[-1], fitted.freedom, fitted.location, fitted.scale)
        assert stats.kstest(level, "uniform").statistic < 0.035


def test_a_point_without_models_of_a_side_is_judged_by_the_prior_alone():
    world = draw_world(30)
    role = world.references.role.copy()
    role[:, 5] = Role.OUT
    references = Panel(world.references.outputs, world.references.labels, role)
    attack = BAVARIA.fit(world.shadows, TargetContext(N_CLASSES, references=references))
    assert attack.seen.freedom[5] == attack.seen.freedom.min()
    assert np.isfinite(attack.score(world.target)).all()


def test_with_few_reference_models_it_beats_lira_where_variances_differ():
    """The ratio that knows how little it knows: four models, points whose variances differ (40 simulated games)."""
    gains = []
    for game in range(40):
        rng = np.random.default_rng(100 + game)
        n, spread = 400, np.exp(rng.normal(0, 1, 400))
        usual, gain = rng.normal(0, 2, n), 1.5
        role = rng.permuted(np.tile([Role.IN, Role.IN, Role.OUT, Role.OUT], (n, 1)), axis=1).T.astype(np.int8)
        member = rng.random(n) < 0.5

        def shown(saw: np.ndarray, rng=rng, usual=usual, spread=spread, n=n, gain=gain) -> np.ndarray:
            phi = usual + gain * saw + spread * rng.standard_normal(n)
            return np.stack([phi, np.zeros(n)], axis=1).astype(np.float32)  # of two classes, φ is the logit

        labels = np.zeros(n, dtype=np.int64)
        references = Panel(np.stack([shown(one == Role.IN) for one in role]), labels, role)
        target = Panel(shown(member)[None], labels, np.zeros((1, n), dtype=np.int8)).model(0)
        seen = type(target)(target.outputs, labels, np.arange(n))
        context = TargetContext(2, references=references)
        scores = [one.fit(references, context).score(seen) for one in (BAVARIA, ONLINE)]
        gains.append(auc(scores[0], member) - auc(scores[1], member))
    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(len(gains))


def test_references_of_one_side_only_are_refused():
    world = draw_world(31)
    one_side = Panel(world.references.outputs, world.references.labels, np.zeros_like(world.references.role))
    with pytest.raises(ValueError, match="models that saw points and models that did not"):
        BAVARIA.fit(world.shadows, TargetContext(N_CLASSES, references=one_side))
