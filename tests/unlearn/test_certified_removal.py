from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.certified_linear import CertifiedLinear, signed_rows
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.streams import Streams
from forgetgauge.unlearn import certified_removal
from forgetgauge.unlearn.certified_removal import CertifiedRemoval, removal_budget, walk, worst_bound
from forgetgauge.unlearn.unlearner import Context, Unlearner
from tests.learn.test_certified_linear import cloud

ORDERS, BOUNDS = ("one-by-one", "batch"), ("data", "worst")
N_FORGET = 12


class World:
    """A model, and what it is asked to forget."""

    def __init__(self, learner=None, n=90, d=5, n_forget=N_FORGET, seed=0):
        self.learner = learner or CertifiedLinear(lam=0.02, sigma=1.0)
        self.points, self.streams = cloud(n, d, seed), Streams(f"original {seed}")
        order = np.random.default_rng(seed).permutation(n)
        self.forget, self.retain = self.points.subset(order[:n_forget]), self.points.subset(order[n_forget:])
        self.original = self.learner.fit(self.points.subset(order), self.streams)
        self.b = self.learner.perturbation(d, self.streams)

    def context(self):
        return Context(self.learner, Streams("a job"))

    def unlearn(self, unlearner, context=None):
        return unlearner.unlearn(self.original, self.retain, self.forget, context or self.context())

    def walk(self, order="one-by-one", bound="data"):
        rows = signed_rows(self.retain), signed_rows(self.forget)
        return walk(self.original, *rows, self.learner, order=order, bound=bound)

    def residual(self, weight):
        """The true norm of the perturbed objective's gradient on R, which only who knows the perturbation knows."""
        return float(self.learner.gradient(weight, signed_rows(self.retain), self.b).norm())


@pytest.fixture(autouse=True)
def _no_paths_remembered():
    certified_removal._paths.clear()


def test_it_keeps_the_promise_of_an_unlearner():
    assert isinstance(CertifiedRemoval(), Unlearner)


# -- The arithmetic ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "budget"), [(0.8, 1.824), (0.6, 1.368), (0.4, 0.912), (0.3, 0.684)])
def test_the_budgets_are_those_of_the_sheet(epsilon, budget):
    assert removal_budget(epsilon, 1e-4, 10.0) == pytest.approx(budget, abs=5e-4)


def test_the_worst_case_is_the_published_one_unless_the_perturbation_pulled_the_weights_too_far():
    lam, n_left, q = 0.02, 78, 12
    published = 4 * 0.25 * q**2 / (lam**2 * n_left)
    assert worst_bound(0.25, lam, n_left, q, weight_norm=0.9 / lam) == pytest.approx(published)
    assert worst_bound(0.25, lam, n_left, q, weight_norm=3 / lam) == pytest.approx(4 * published)


# -- The steps ---------------------------------------------------------------------------------------------------


def ridge_optimum(rows, lam, b):
    """argmin Σ [(1 − z)²/2 + (λ/2)‖w‖²] + bᵀw in closed form."""
    hessian = rows.T @ rows + len(rows) * lam * torch.eye(rows.shape[1], dtype=torch.float64)
    return torch.linalg.solve(hessian, rows.T.sum(1) - b)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_with_a_quadratic_loss_the_step_is_exact(order, bound):
    world = World(CertifiedLinear(lam=0.02, sigma=3.0, loss="squared"))
    world.original.weight.data = ridge_optimum(signed_rows(world.points), 0.02, world.b)
    world.original.residual.zero_()
    path = world.walk(order, bound)
    retrained = ridge_optimum(signed_rows(world.retain), 0.02, world.b)  # with the same perturbation
    torch.testing.assert_close(path.weight, retrained, rtol=0, atol=1e-10)
    assert path.bounds[-1] <= 1e-10


@settings(max_examples=60, deadline=None)
@given(
    lam=st.floats(1e-3, 0.5),
    sigma=st.floats(0, 20),
    seed=st.integers(0, 10**6),
    order=st.sampled_from(ORDERS),
    bound=st.sampled_from(BOUNDS),
    d=st.integers(1, 9),
)
def test_the_true_residual_never_exceeds_the_bound(lam, sigma, seed, order, bound, d):
    world = World(CertifiedLinear(lam, sigma), n=40, d=d, seed=seed)
    path = world.walk(order, bound)
    assert world.residual(path.weight) <= path.bounds[-1] * (1 + 1e-9) + 1e-12
    assert (np.diff(path.bounds) >= 0).all()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), sigma=st.floats(0, 5))
def test_the_data_bound_is_no_larger_than_the_worst_case(seed, sigma):
    world = World(CertifiedLinear(0.02, sigma), seed=seed)
    for order in ORDERS:
        assert world.walk(order, "data").bounds[-1] <= world.walk(order, "worst").bounds[-1]


def test_each_step_is_newtons_step_whatever_is_remembered_between_steps(monkeypatch):
    world, lam = World(), 0.02
    w, rows = world.original.weight.detach(), signed_rows(world.points)
    for gone in range(1, N_FORGET + 1):
        left = rows[np.concatenate([world.forget.index[gone:], world.retain.index])]
        row = rows[world.forget.index[gone - 1]]
        share = torch.sigmoid(left @ w)
        hessian = (left * (share * (1 - share))[:, None]).T @ left + len(left) * lam * torch.eye(5).double()
        delta = (torch.sigmoid(row @ w) - 1) * row + lam * w
        w = w + torch.linalg.solve(hessian, delta)
    for refresh in (1, 5, 1000):
        monkeypatch.setattr(certified_removal, "REFRESH", refresh)
        torch.testing.assert_close(world.walk().weight, w, rtol=1e-10, atol=1e-10)


def test_an_old_spectral_norm_only_loosens_the_bound(monkeypatch):
    world = World()
    fresh = []
    for refresh in (1, 1000):
        monkeypatch.setattr(certified_removal, "REFRESH", refresh)
        fresh.append(world.walk().bounds)
    assert (fresh[0] <= fresh[1] * (1 + 1e-9)).all()
    assert fresh[1][-1] <= 1.1 * fresh[0][-1]


def test_the_steps_take_the_model_nearly_all_the_way_to_the_retrained_one():
    world = World(CertifiedLinear(0.02, 10.0))
    gone = world.residual(world.original.weight.detach())
    assert world.residual(world.walk().weight) < 0.01 * gone


# -- The unlearner -----------------------------------------------------------------------------------------------


def generous(**changes):
    return CertifiedRemoval(**{"epsilon": 1e6, **changes})


@pytest.mark.parametrize("order", ORDERS)
def test_within_the_budget_the_end_of_the_path_is_given_and_nothing_is_retrained(order):
    world, context = World(), World().context()
    model = world.unlearn(generous(order=order), context)
    path = world.walk(order)
    assert torch.equal(model.weight, path.weight)
    assert float(model.residual) == path.bounds[-1]
    assert context.facts["retrainings"] == 0
    assert context.facts["residual_bound"] == path.bounds[-1]
    assert context.facts["steps_within_budget"] == (N_FORGET if order == "one-by-one" else 1)
    assert context.n_gradients == (sum(range(79, 91)) if order == "one-by-one" else 90)


def test_beyond_the_budget_it_is_the_learner_on_the_retain_set_under_the_jobs_own_streams():
    world, context = World(), World().context()
    model = world.unlearn(CertifiedRemoval(epsilon=1e-6), context)
    assert torch.equal(model.weight, world.learner.fit(world.retain, Streams("a job")).weight)
    assert context.facts["retrainings"] == 1
    assert context.facts["steps_within_budget"] == 0


def test_the_budget_decides_to_the_last_step():
    world = World()
    bounds = world.walk().bounds
    unit = removal_budget(1.0, 1e-4, world.learner.sigma)
    for share, retrainings, within in ((1.001, 0, N_FORGET), (0.999, 1, N_FORGET - 1)):
        context = world.context()
        world.unlearn(CertifiedRemoval(epsilon=share * bounds[-1] / unit), context)
        assert (context.facts["retrainings"], context.facts["steps_within_budget"]) == (retrainings, within)
        assert context.facts["budget"] == pytest.approx(share * bounds[-1])


def test_what_training_left_of_the_gradient_is_spent_from_the_budget():
    world = World()
    before = world.walk().bounds
    world.original.residual.fill_(0.5)
    np.testing.assert_allclose(world.walk().bounds, before + 0.5, atol=1e-6)


def test_a_second_request_goes_on_where_the_first_ended():
    world = World()
    whole = world.walk()
    first, second = (world.points.subset(part) for part in np.split(world.forget.index, 2))
    rest = world.points.subset(np.concatenate([second.index, world.retain.index]))
    between = generous().unlearn(world.original, rest, first, world.context())
    model = generous().unlearn(between, world.retain, second, world.context())
    torch.testing.assert_close(model.weight.detach(), whole.weight, rtol=0, atol=1e-9)
    assert float(model.residual) == pytest.approx(whole.bounds[-1], rel=0.05)


def test_nothing_to_forget_is_the_identity():
    world, context = World(), World().context()
    model = generous().unlearn(world.original, world.retain, world.forget.subset(np.array([], dtype=int)), context)
    assert torch.equal(model.weight, world.original.weight)
    assert context.facts["residual_bound"] == float(world.original.residual)


def test_a_path_is_walked_once_for_all_epsilons_and_the_order_the_bound_and_the_sets_tell_paths_apart(monkeypatch):
    walks = []
    monkeypatch.setattr(certified_removal, "walk", lambda *a, **k: walks.append(k) or walk(*a, **k))
    world = World()
    alone = [copy.deepcopy(world.unlearn(CertifiedRemoval(epsilon=e)).weight) for e in (1e6, 1e-6)]
    assert len(walks) == 1
    certified_removal._paths.clear()
    for epsilon, expected in zip((1e-6, 1e6), reversed(alone), strict=True):
        assert torch.equal(world.unlearn(CertifiedRemoval(epsilon=epsilon)).weight, expected)
    assert len(walks) == 2
    world.unlearn(generous(order="batch"))
    world.unlearn(generous(bound="worst"))
    generous().unlearn(world.original, world.retain, world.forget.subset(world.forget.index[:3]), world.context())
    World(seed=1).unlearn(generous())
    assert len(walks) == 6


def test_only_so_many_paths_are_remembered(monkeypatch):
    monkeypatch.setattr(certified_removal, "N_PATHS", 2)
    for seed in range(4):
        World(seed=seed).unlearn(generous())
    assert len(certified_removal._paths) == 2


def test_model_and_data_are_left_untouched_and_the_result_can_be_trained_further():
    world = World()
    before, inputs = copy.deepcopy(world.original.state_dict()), world.points.whole_inputs.clone()
    for unlearner in (generous(), CertifiedRemoval(epsilon=1e-6)):
        model = world.unlearn(unlearner)
        assert not model.training
        assert model.weight.requires_grad
        assert model.weight.is_leaf
        model.weight.data.zero_()  # must reach neither the original nor what is remembered
    assert all(torch.equal(tensor, before[name]) for name, tensor in world.original.state_dict().items())
    assert torch.equal(world.points.whole_inputs, inputs)
    assert torch.equal(world.unlearn(generous()).weight, world.walk().weight)


def test_points_outside_both_sets_do_not_matter():
    world = World()
    retain = world.retain.subset(world.retain.index[:-5])
    inputs = world.points.whole_inputs.clone()
    inputs[torch.from_numpy(world.retain.index[-5:])] = 0.01
    moved = Points(inputs, world.points.whole_labels, retain.index)
    models = [generous().unlearn(world.original, part, world.forget, world.context()) for part in (retain, moved)]
    assert torch.equal(models[0].weight, models[1].weight)


def test_models_of_other_learners_are_refused_in_one_line():
    world = World()
    context = Context(Minibatch(), Streams("a job"))
    with pytest.raises(UserError, match="models of the learner 'certified-linear', not of Minibatch"):
        world.unlearn(CertifiedRemoval(), context)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}, {"epsilon": math.nan}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="must"):
        CertifiedRemoval(**bad)
