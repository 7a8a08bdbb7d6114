import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forgetgauge.streams import Streams
from forgetgauge.unlearn.fine_tune import FineTune
from forgetgauge.unlearn.l1_sparse import L1Sparse

from .world import N_RETAIN, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]


def size(model):
    return sum(p.abs().sum().item() for p in model.parameters())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"epochs": 0}, {"epochs": 0, "batch_norm": "train"}])
def test_no_rate_or_no_epochs_is_the_identity(norm, nothing):
    world = make_world(norm)
    assert not changed(world.unlearn(L1Sparse(**nothing)), world.original)


@pytest.mark.parametrize("norm", NORMS)
def test_without_a_penalty_it_is_fine_tuning(norm):
    world, how = make_world(norm), {"epochs": 3, "batch_size": 16, "weight_decay": 0.01}
    assert not changed(world.unlearn(L1Sparse(gamma=0.0, **how)), world.unlearn(FineTune(**how)))


def test_its_defaults_are_fine_tunings_but_for_the_penalty():
    settings = {key: value for key, value in vars(L1Sparse()).items() if key != "gamma"}
    assert settings == {key: value for key, value in vars(FineTune()).items() if key != "optimiser"}


@pytest.mark.parametrize("mode", ["frozen", "train"])
def test_each_epochs_step_adds_its_share_of_the_weights_signs(mode):
    world, rate = make_world("batch"), 0.05
    model = world.unlearn(L1Sparse(gamma=0.1, lr=rate, momentum=0.0, epochs=4, batch_size=19, batch_norm=mode))
    reference, rng = copy.deepcopy(world.original).train(mode == "train"), Streams("a job").generator("order")
    for gamma in (0.1, 0.075, 0.05, 0.025):
        for at in np.split(rng.permutation(N_RETAIN), [19]):
            weights = list(reference.parameters())
            loss = F.cross_entropy(reference(world.retain.x[at]), world.retain.y[at])
            gradients = torch.autograd.grad(loss, weights)
            with torch.no_grad():
                for weight, gradient in zip(weights, gradients, strict=True):
                    weight -= rate * (gradient + gamma * weight.sign())
    for tensor, expected in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-5)


def test_a_larger_penalty_leaves_a_smaller_model():
    world = make_world("batch")
    sizes = [size(world.unlearn(L1Sparse(gamma=gamma))) for gamma in (0.0, 5e-4, 5e-3, 5e-2)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4


def test_layers_that_were_frozen_are_neither_penalised_nor_thawed():
    world = make_world("none")
    world.original.body.requires_grad_(False)
    model = world.unlearn(L1Sparse(gamma=0.1))
    assert changed(model, world.original) == {"head.weight", "head.bias"}
    assert [p.requires_grad for p in model.parameters()] == [p.requires_grad for p in world.original.parameters()]


def test_the_forget_set_is_not_looked_at():
    world = make_world()
    assert not changed(world.unlearn(L1Sparse(), forget=world.points.subset([0])), world.unlearn(L1Sparse()))


@pytest.mark.parametrize(("mode", "moves_statistics"), [("frozen", False), ("train", True)])
def test_running_statistics_move_in_train_mode_only(mode, moves_statistics):
    world = make_world("batch")
    moved = changed(world.unlearn(L1Sparse(batch_norm=mode)), world.original)
    assert moved == parameters(world.original) | (buffers(world.original) if moves_statistics else set())


def test_its_cost_is_a_pass_over_the_retain_set_per_epoch():
    world, context = make_world(), make_world().context()
    L1Sparse(epochs=3, batch_size=16).unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == 3 * N_RETAIN


@pytest.mark.parametrize(("bad", "why"), [({"lr": -1.0}, "lr"), ({"gamma": -1e-4}, "gamma must not be negative")])
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        L1Sparse(**bad)
