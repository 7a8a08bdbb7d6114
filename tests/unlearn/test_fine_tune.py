import copy

import pytest
import torch
import torch.nn.functional as F

from forgetgauge.streams import Streams
from forgetgauge.unlearn.fine_tune import FineTune

from .world import N_RETAIN, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"epochs": 0}, {"epochs": 0, "batch_norm": "train"}])
def test_no_rate_or_no_epochs_is_the_identity(norm, nothing):
    world = make_world(norm)
    assert not changed(world.unlearn(FineTune(**nothing)), world.original)


@pytest.mark.parametrize("norm", NORMS)
def test_one_full_batch_step_subtracts_the_gradient_of_the_retain_loss(norm):
    world = make_world(norm)
    model = world.unlearn(FineTune(lr=0.1, momentum=0.0, epochs=1, batch_size=N_RETAIN))
    reference = copy.deepcopy(world.original).eval()
    loss = F.cross_entropy(reference(world.retain.x), world.retain.y)
    gradients = torch.autograd.grad(loss, list(reference.parameters()))
    for p, began, gradient in zip(model.parameters(), reference.parameters(), gradients, strict=True):
        torch.testing.assert_close(p, began - 0.1 * gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["frozen", "train"])
def test_batches_momentum_and_decay_are_those_of_the_textbook_loop(mode):
    world = make_world("batch")
    model = world.unlearn(FineTune(lr=0.02, epochs=2, batch_size=16, weight_decay=0.01, batch_norm=mode))
    reference, rng = copy.deepcopy(world.original).train(mode == "train"), Streams("a job").generator("order")
    optimiser = torch.optim.SGD(reference.parameters(), lr=0.02, momentum=0.9, weight_decay=0.01)
    for _ in range(2):
        order = rng.permutation(N_RETAIN)
        for at in (order[:13], order[13:25], order[25:]):  # 37 = 13 + 12 + 12
            optimiser.zero_grad()
            F.cross_entropy(reference(world.retain.x[at]), world.retain.y[at]).backward()
            optimiser.step()
    for tensor, expected in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-6)


def test_the_forget_set_is_not_looked_at():
    world = make_world()
    assert not changed(world.unlearn(FineTune(), forget=world.points.subset([0])), world.unlearn(FineTune()))


@pytest.mark.parametrize(("mode", "moves_statistics"), [("frozen", False), ("train", True)])
def test_running_statistics_move_in_train_mode_only(mode, moves_statistics):
    world = make_world("batch")
    moved = changed(world.unlearn(FineTune(epochs=2, batch_norm=mode)), world.original)
    assert moved == parameters(world.original) | (buffers(world.original) if moves_statistics else set())


def test_layers_that_were_frozen_stay_frozen_and_unchanged():
    world = make_world("batch")
    world.original.body.requires_grad_(False)
    model = world.unlearn(FineTune(epochs=2, weight_decay=0.1))
    assert changed(model, world.original) == {"head.weight", "head.bias"}
    assert [p.requires_grad for p in model.parameters()] == [p.requires_grad for p in world.original.parameters()]


def test_its_cost_is_a_pass_over_the_retain_set_per_epoch():
    world, context = make_world(), make_world().context()
    FineTune(epochs=3, batch_size=16).unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == 3 * N_RETAIN


@pytest.mark.parametrize("bad", [{"lr": -1.0}, {"epochs": -1}, {"batch_size": 0}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match="must not be negative"):
        FineTune(**bad)
