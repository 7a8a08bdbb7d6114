from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.certified_linear import LOSSES, CertifiedLinear, signed_rows
from forgetgauge.learn.learner import Learner
from forgetgauge.learn.predict import outputs_of
from forgetgauge.streams import Streams


def cloud(n=60, d=5, seed=0, norm=1.0) -> Points:
    """Two classes that overlap, rows of one norm."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    rows = rng.normal(size=(n, d)) + 0.8 * (2 * labels[:, None] - 1)
    rows *= norm / np.linalg.norm(rows, axis=1, keepdims=True)
    return Points.of(torch.tensor(rows, dtype=torch.float32), torch.tensor(labels))


def perturbed(learner, points, streams, w):
    """The objective, spelt out."""
    x, y = points.x.double(), 2 * points.y.double() - 1
    z = y * (x @ w)
    each = torch.logaddexp(torch.zeros_like(z), -z) if learner.loss == "logistic" else (1 - z) ** 2 / 2
    return (each + learner.lam / 2 * w @ w).sum() + learner.perturbation(x.shape[1], streams) @ w


def test_it_keeps_the_promise_of_a_learner():
    assert isinstance(plugins.learners.load("certified-linear")(), Learner)


@pytest.mark.parametrize("loss", LOSSES)
def test_slope_and_curvature_are_the_derivatives_and_the_curvature_changes_no_faster_than_it_says(loss):
    made = LOSSES[loss]
    z = torch.linspace(-8, 8, 4001, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(made.value(z).sum(), z)
    torch.testing.assert_close(made.slope(z), slope)
    (curvature,) = torch.autograd.grad(made.slope(z).sum(), z)
    torch.testing.assert_close(made.curvature(z), curvature)
    z = z.detach()
    fastest = float((made.curvature(z).diff() / z.diff()).abs().max())
    assert fastest <= made.lipschitz
    if loss == "logistic":
        assert fastest == pytest.approx(1 / (6 * 3**0.5), rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(lam=st.floats(1e-3, 1), sigma=st.floats(0, 20), loss=st.sampled_from(sorted(LOSSES)), seed=st.integers(0, 10**6))
@example(lam=0.001, sigma=16.0, loss="logistic", seed=664)  # ‖w‖ = 790: exp(−z) overflows
def test_the_weights_are_at_the_optimum_and_the_residual_says_how_near(lam, sigma, loss, seed):
    learner, points, streams = CertifiedLinear(lam, sigma, loss), cloud(seed=seed), Streams(f"model {seed}")
    model = learner.fit(points, streams)
    w = model.weight.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(perturbed(learner, points, streams, w), w)
    assert float(gradient.norm()) <= 1e-5
    assert float(model.residual) == pytest.approx(float(gradient.norm()), abs=1e-9)


def test_it_agrees_with_scikit_learn_where_there_is_no_perturbation():
    from sklearn.linear_model import LogisticRegression

    points, lam = cloud(), 0.02
    model = CertifiedLinear(lam, sigma=0.0).fit(points, Streams("m"))
    reference = LogisticRegression(C=1 / (lam * len(points)), fit_intercept=False, tol=1e-12, max_iter=10_000)
    reference.fit(points.x.double().numpy(), points.y.numpy())
    np.testing.assert_allclose(model.weight.detach().numpy(), reference.coef_[0], atol=1e-6)


def test_the_softmax_of_the_logits_is_the_sigmoid_and_all_is_float64():
    points = cloud()
    model = CertifiedLinear().fit(points, Streams("m"))
    assert all(tensor.dtype == torch.float64 for tensor in model.state_dict().values())
    shares = torch.softmax(model(points.x), dim=1)[:, 1]
    torch.testing.assert_close(shares, torch.sigmoid(points.x.double() @ model.weight))
    assert outputs_of(model, points).shape == (len(points), 2)


def test_the_same_streams_give_the_same_bits_and_others_another_perturbation():
    learner, points = CertifiedLinear(), cloud()
    first, again, other = (learner.fit(points, Streams(name)) for name in ("a", "a", "b"))
    assert torch.equal(first.weight, again.weight)
    assert not torch.allclose(first.weight, other.weight)
    together = learner.fit_many([points, points], [Streams("a"), Streams("b")])
    assert torch.equal(together[0].weight, first.weight)
    assert torch.equal(together[1].weight, other.weight)


def test_perturbations_have_the_deviation_that_was_asked_for_and_are_not_kept():
    learner = CertifiedLinear(sigma=7.0)
    drawn = learner.perturbation(20_000, Streams("m"))
    assert float(drawn.std()) == pytest.approx(7.0, rel=0.03)
    model = learner.fit(cloud(), Streams("m"))
    assert set(model.state_dict()) == {"weight", "residual"}


def test_images_are_taken_as_rows():
    points = cloud(d=4)
    images = Points.of(points.x.reshape(-1, 1, 2, 2), points.y)
    one, other = (CertifiedLinear().fit(p, Streams("m")).weight for p in (points, images))
    assert torch.equal(one, other)


def test_signed_rows_carry_the_labels():
    points = cloud()
    rows = signed_rows(points)
    assert rows.dtype == torch.float64
    assert torch.equal(rows[points.y == 1].float(), points.x[points.y == 1])
    assert torch.equal(rows[points.y == 0].float(), -points.x[points.y == 0])


def test_rows_longer_than_one_and_more_than_two_classes_are_refused_in_one_line():
    with pytest.raises(UserError, match=r"norm 1 or less, but one has 1\.5; normalise"):
        CertifiedLinear().fit(cloud(norm=1.5), Streams("m"))
    three = Points.of(cloud().x, torch.arange(60) % 3)
    with pytest.raises(UserError, match="two classes apart, but the data have 3"):
        CertifiedLinear().build(three, 0)


@pytest.mark.parametrize("bad", [{"lam": 0.0}, {"lam": -1.0}, {"sigma": -1.0}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="must"):
        CertifiedLinear(**bad)
