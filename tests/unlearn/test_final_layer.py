import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import nn

from forgetgauge import plugins
from forgetgauge.models.head import features_of, head_of
from forgetgauge.streams import Streams
from forgetgauge.unlearn.final_layer import FineTuneFinal, RetrainFinal

from .world import N_RETAIN, buffers, changed, make_world

NORMS = ["batch", "group", "none"]
BOTH = pytest.mark.parametrize("kind", [FineTuneFinal, RetrainFinal])
HEAD = {"head.weight", "head.bias"}
DECAY = 0.02


@BOTH
@pytest.mark.parametrize("norm", NORMS)
def test_the_frozen_body_is_left_to_the_bit(kind, norm):
    world = make_world(norm)
    assert changed(world.unlearn(kind(epochs=3)), world.original) == HEAD


@BOTH
@pytest.mark.parametrize("norm", NORMS)
def test_the_published_mode_moves_batch_norms_statistics_and_nothing_else_of_the_body(kind, norm):
    world = make_world(norm)
    moved = changed(world.unlearn(kind(epochs=3, batch_norm="train")), world.original)
    assert moved == HEAD | buffers(world.original)


@BOTH
@pytest.mark.parametrize("norm", ["group", "none"])
def test_without_batch_norm_the_two_modes_are_one(kind, norm):
    world = make_world(norm)
    cached, whole = (world.unlearn(kind(epochs=3, batch_norm=mode)) for mode in ("frozen", "train"))
    for tensor, expected in zip(cached.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["frozen", "train"])
@pytest.mark.parametrize("norm", NORMS)
def test_fine_tuning_for_no_epochs_is_the_identity(norm, mode):
    world = make_world(norm)
    assert not changed(world.unlearn(FineTuneFinal(epochs=0, batch_norm=mode)), world.original)


def test_a_head_begun_anew_has_kaimings_spread_and_no_bias():
    world = make_world()
    heads = [head_of(world.unlearn(RetrainFinal(epochs=0), key=str(i))) for i in range(40)]
    weights = torch.stack([head.weight.detach() for head in heads])
    n, variance = weights.numel(), 2 / heads[0].in_features
    assert all(torch.equal(head.bias, torch.zeros_like(head.bias)) for head in heads)
    assert weights.mean().item() == pytest.approx(0, abs=5 * math.sqrt(variance / n))
    assert weights.var().item() == pytest.approx(variance, rel=5 * math.sqrt(2 / n))
    assert len(weights[:, 0, 0].unique()) == 40


def test_retraining_does_not_depend_on_the_old_heads_values():
    world = make_world()
    first, broken = world.unlearn(RetrainFinal(epochs=3)), copy.deepcopy(world.original)
    with torch.no_grad():
        broken.head.weight.fill_(torch.nan)
        broken.head.bias.fill_(1e9)
    assert not changed(world.unlearn(RetrainFinal(epochs=3), model=broken), first)


def test_fine_tuning_does_depend_on_the_old_head():
    world = make_world()
    first, other = world.unlearn(FineTuneFinal(epochs=3)), copy.deepcopy(world.original)
    with torch.no_grad():
        other.head.bias += 1
    assert changed(world.unlearn(FineTuneFinal(epochs=3), model=other), first) == HEAD


@BOTH
def test_the_forget_set_is_not_looked_at(kind):
    world = make_world()
    assert not changed(world.unlearn(kind(epochs=3), forget=world.points.subset([0])), world.unlearn(kind(epochs=3)))


@pytest.mark.parametrize("mode", ["frozen", "train"])
def test_fine_tuning_is_the_textbook_loop_on_the_head_alone(mode):
    world = make_world("batch")
    model = world.unlearn(FineTuneFinal(lr=0.05, epochs=2, batch_size=16, weight_decay=0.01, batch_norm=mode))
    reference, rng = copy.deepcopy(world.original).train(mode == "train"), Streams("a job").generator("order")
    optimiser = torch.optim.SGD(reference.head.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=6)
    for _ in range(2):
        order = rng.permutation(N_RETAIN)
        for at in (order[:13], order[13:25], order[25:]):  # 37 = 13 + 12 + 12
            optimiser.zero_grad()
            F.cross_entropy(reference(world.retain.x[at]), world.retain.y[at]).backward()
            optimiser.step()
            scheduler.step()
    for tensor, expected in zip(model.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=1e-5)


def best_head(world):
    """The head that minimises L_R + wd/2 (‖W‖² + ‖b‖²), by scikit-learn: a column of ones makes the bias decay too."""
    features = features_of(world.original.eval(), world.retain.x).double().numpy()
    columns = np.hstack([features, np.ones((len(features), 1))])
    fitted = LogisticRegression(C=1 / (N_RETAIN * DECAY), fit_intercept=False, tol=1e-10, max_iter=10_000)
    solution = fitted.fit(columns, world.retain.y.numpy()).coef_
    return solution[:, :-1], solution[:, -1]


@pytest.mark.parametrize("norm", NORMS)
def test_with_decay_and_time_both_converge_to_the_head_of_logistic_regression(norm):
    world = make_world(norm)
    weight, bias = best_head(world)
    how = {"lr": 0.2, "momentum": 0.9, "weight_decay": DECAY, "epochs": 800, "batch_size": N_RETAIN}
    for kind in (FineTuneFinal, RetrainFinal):
        head = head_of(world.unlearn(kind(**how)))
        np.testing.assert_allclose(head.weight.detach().numpy(), weight, atol=2e-3)
        np.testing.assert_allclose(head.bias.detach().numpy(), bias, atol=2e-3)


def test_a_head_without_a_bias_is_no_trouble():
    def biasless(input_shape, n_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, n_classes, bias=False))

    world = make_world(model=plugins.models.bind(biasless))
    for kind in (FineTuneFinal, RetrainFinal):
        assert changed(world.unlearn(kind(epochs=2)), world.original) == {"3.weight"}
