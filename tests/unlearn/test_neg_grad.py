import copy
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forgetgauge.streams import Streams
from forgetgauge.unlearn.neg_grad import NegGrad

from .world import N_FORGET, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]
FULL_BATCH = {"momentum": 0.0, "batch_size": N_FORGET}


def loss_on(model, points):
    with torch.no_grad():
        return F.cross_entropy(model(points.x).double(), points.y).item()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"epochs": 0}])
def test_no_rate_or_no_epochs_is_the_identity(norm, nothing):
    world = make_world(norm)
    assert not changed(world.unlearn(NegGrad(**nothing)), world.original)


@pytest.mark.parametrize("norm", NORMS)
def test_one_full_batch_step_adds_the_gradient_of_the_forget_loss(norm):
    world = make_world(norm)
    model = world.unlearn(NegGrad(lr=0.1, epochs=1, **FULL_BATCH))
    reference = copy.deepcopy(world.original).eval()
    loss = F.cross_entropy(reference(world.forget.x), world.forget.y)
    gradients = torch.autograd.grad(loss, list(reference.parameters()))
    for p, began, gradient in zip(model.parameters(), reference.parameters(), gradients, strict=True):
        torch.testing.assert_close(p, began + 0.1 * gradient, rtol=1e-5, atol=1e-6)


def test_batches_momentum_and_train_mode_are_those_of_the_textbook_ascent():
    world = make_world("batch")
    model = world.unlearn(NegGrad(lr=0.02, momentum=0.9, epochs=2, batch_size=5, batch_norm="train"))
    reference, rng = copy.deepcopy(world.original).train(), Streams("a job").generator("order")
    ascent = torch.optim.SGD(reference.parameters(), lr=0.02, momentum=0.9, maximize=True)
    for _ in range(2):
        order = rng.permutation(13)
        for at in (order[:5], order[5:9], order[9:]):  # 13 points in three batches of almost one size
            ascent.zero_grad()
            F.cross_entropy(reference(world.forget.x[at]), world.forget.y[at]).backward()
            ascent.step()
    for tensor, expected in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_small_full_batch_steps_never_lower_the_forget_loss(norm):
    world = make_world(norm)
    losses = [
        loss_on(world.unlearn(NegGrad(lr=1e-3, epochs=epochs, **FULL_BATCH)), world.forget) for epochs in range(8)
    ]
    assert all(after >= before - 1e-7 for before, after in itertools.pairwise(losses))
    assert losses[-1] > losses[0]


def test_the_retain_set_is_not_looked_at():
    world = make_world()
    other = world.retain.subset(np.arange(3))
    assert not changed(world.unlearn(NegGrad(), retain=other), world.unlearn(NegGrad()))


def test_the_forget_set_matters():
    world = make_world()
    other = world.forget.subset(world.forget.index[:5])
    assert changed(world.unlearn(NegGrad(), forget=other), world.unlearn(NegGrad()))


def test_frozen_batch_norm_keeps_its_running_statistics_and_moves_its_weights():
    world = make_world("batch")
    moved = changed(world.unlearn(NegGrad(lr=0.01)), world.original)
    assert moved == parameters(world.original)


def test_batch_norm_in_train_mode_drifts():
    world = make_world("batch")
    moved = changed(world.unlearn(NegGrad(lr=0.01, batch_norm="train")), world.original)
    assert moved == parameters(world.original) | buffers(world.original)


@pytest.mark.parametrize("norm", ["group", "none"])
def test_without_batch_norm_the_two_modes_are_one(norm):
    world = make_world(norm)
    assert not changed(world.unlearn(NegGrad(batch_norm="train")), world.unlearn(NegGrad(batch_norm="frozen")))


def test_a_full_batch_does_not_depend_on_the_order_stream():
    world = make_world("none")
    one, other = (world.unlearn(NegGrad(lr=0.01, **FULL_BATCH), key=key) for key in ("one", "other"))
    for p, q in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
