import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forgetgauge.streams import Streams
from forgetgauge.unlearn.fine_tune import FineTune
from forgetgauge.unlearn.neg_grad import NegGrad
from forgetgauge.unlearn.neg_grad_plus import NegGradPlus

from .world import N_FORGET, N_RETAIN, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]
FULL_BATCH = {"lr": 0.1, "momentum": 0.0, "epochs": 1, "batch_size": N_RETAIN}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"epochs": 0}, {"epochs": 0, "batch_norm": "train"}])
def test_no_rate_or_no_epochs_is_the_identity(norm, nothing):
    world = make_world(norm)
    assert not changed(world.unlearn(NegGradPlus(**nothing)), world.original)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("beta", [0.0, 0.6, 1.0])
def test_one_full_batch_step_weighs_the_two_gradients(norm, beta):
    world = make_world(norm)
    model = world.unlearn(NegGradPlus(beta=beta, **FULL_BATCH))
    reference = copy.deepcopy(world.original).eval()
    weights = list(reference.parameters())
    on_retain = torch.autograd.grad(F.cross_entropy(reference(world.retain.x), world.retain.y), weights)
    on_forget = torch.autograd.grad(F.cross_entropy(reference(world.forget.x), world.forget.y), weights)
    for p, began, down, up in zip(model.parameters(), weights, on_retain, on_forget, strict=True):
        torch.testing.assert_close(p, began - 0.1 * (beta * down - (1 - beta) * up), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_with_all_weight_on_the_retain_set_it_is_fine_tuning(norm):
    world, how = make_world(norm), {"epochs": 3, "batch_size": 16, "weight_decay": 0.01}
    assert not changed(world.unlearn(NegGradPlus(beta=1.0, **how)), world.unlearn(FineTune(**how)))


def test_with_no_weight_on_it_and_whole_sets_as_batches_it_is_neg_grad():
    world, how = make_world("none"), {"lr": 0.01, "epochs": 3, "batch_size": 64}
    plus, plain = world.unlearn(NegGradPlus(beta=0.0, **how)), world.unlearn(NegGrad(**how))
    for p, q in zip(plus.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", ["frozen", "train"])
def test_each_batch_of_the_retain_set_meets_the_next_of_the_forget_set(mode):
    world = make_world("batch")
    model = world.unlearn(NegGradPlus(beta=0.8, lr=0.02, epochs=2, batch_size=10, batch_norm=mode))
    reference, streams = copy.deepcopy(world.original).train(mode == "train"), Streams("a job")
    optimiser = torch.optim.SGD(reference.parameters(), lr=0.02, momentum=0.9)
    order = streams.generator("order")
    retain_batches = [b for _ in range(2) for b in np.split(order.permutation(N_RETAIN), [10, 19, 28])]  # 10 + 3 × 9
    order = streams.generator("forget-order")
    forget_batches = [b for _ in range(4) for b in np.split(order.permutation(N_FORGET), [7])]  # 7 + 6, four times
    for kept, lost in zip(retain_batches, forget_batches, strict=True):
        optimiser.zero_grad()
        (0.8 * F.cross_entropy(reference(world.retain.x[kept]), world.retain.y[kept])).backward()
        (-0.2 * F.cross_entropy(reference(world.forget.x[lost]), world.forget.y[lost])).backward()
        optimiser.step()
    for tensor, expected in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-5)


def test_it_raises_the_forget_loss_beyond_what_fine_tuning_leaves():
    world, how = make_world("batch"), {"lr": 0.01, "epochs": 5, "batch_size": 16}
    losses = [
        F.cross_entropy(world.unlearn(method)(world.forget.x), world.forget.y).item()
        for method in (FineTune(**how), NegGradPlus(beta=0.7, **how))
    ]
    assert losses[1] > losses[0]


def test_both_sets_matter():
    world, how = make_world(), NegGradPlus(epochs=1)
    assert changed(world.unlearn(how, forget=world.forget.subset(world.forget.index[:5])), world.unlearn(how))
    assert changed(world.unlearn(how, retain=world.retain.subset(world.retain.index[:5])), world.unlearn(how))


@pytest.mark.parametrize(("mode", "moves_statistics"), [("frozen", False), ("train", True)])
def test_running_statistics_move_in_train_mode_only(mode, moves_statistics):
    world = make_world("batch")
    moved = changed(world.unlearn(NegGradPlus(epochs=1, batch_norm=mode)), world.original)
    assert moved == parameters(world.original) | (buffers(world.original) if moves_statistics else set())


@pytest.mark.parametrize(
    ("batch_size", "of_forget"),
    [(16, 9 * 13), (10, 6 * 13), (64, 3 * 13), (9, 7 * 13 + 7)],  # 9: 15 steps over 7 + 6
    ids=str,
)
def test_its_cost_counts_every_example_of_both_batches(batch_size, of_forget):
    world, context = make_world(), make_world().context()
    NegGradPlus(epochs=3, batch_size=batch_size).unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == 3 * N_RETAIN + of_forget


@pytest.mark.parametrize(
    ("bad", "why"), [({"lr": -1.0}, "must not be negative"), ({"beta": 1.1}, "beta"), ({"beta": -0.1}, "beta")]
)
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        NegGradPlus(**bad)
