import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forgetgauge.unlearn.squared_gradients import mean_squares, squared_loss_gradient, trainable
from forgetgauge.unlearn.ssd import SSD, dampening_factor, equal_batches, mean_squared_batch_gradients

from .world import N_FORGET, N_RETAIN, changed, make_world, parameters

NORMS = ["batch", "group", "none"]
BOTH = pytest.mark.parametrize("per_sample", [True, False])
STRONG = {"alpha": 1.0, "batch_size": 5}


def by_loop(model, x, y, batches):
    """Mean over the batches of (∇ mean loss)², by `backward` alone; batches of one point are the per-sample form."""
    model = copy.deepcopy(model).eval()
    total = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in model.named_parameters()}
    for at in batches:
        model.zero_grad()
        torch.stack([F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]) for i in at]).mean().backward()
        for name, p in model.named_parameters():
            total[name] += p.grad.double() ** 2
    return {name: square / len(batches) for name, square in total.items()}


def assert_close(one, other):
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-3, atol=1e-9, msg=name)


def train_set(world):
    return torch.cat([world.retain.x, world.forget.x]), torch.cat([world.retain.y, world.forget.y])


@pytest.mark.parametrize("norm", NORMS)
def test_per_sample_importances_are_those_of_a_loop_over_points(norm):
    world = make_world(norm)
    x, y = train_set(world)
    found = mean_squares(world.original.eval(), trainable(world.original), x, y, squared_loss_gradient)
    assert_close(found, by_loop(world.original, x, y, [[i] for i in range(len(x))]))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 4, 13, 50])
def test_batch_importances_are_those_of_a_loop_over_batches(norm, size):
    world = make_world(norm)
    x, y = train_set(world)
    batches = equal_batches(len(x), size)
    found = mean_squared_batch_gradients(world.original.eval(), x, y, batches)
    assert_close(found, by_loop(world.original, x, y, batches.tolist()))


@pytest.mark.parametrize("n", [1, 2, 7, 12, 13, 50])
@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_batches_are_full_and_equal_and_leave_no_point_out(n, size):
    size = min(n, size)
    batches = equal_batches(n, size)
    assert batches.shape == (math.ceil(n / size), size)
    assert set(batches.ravel()) == set(range(n))
    assert all(len(set(batch)) == size for batch in batches)
    assert np.bincount(batches.ravel()).max() <= 2


def test_no_batch_of_sorted_data_is_one_class():
    classes = np.repeat(np.arange(4), 30)
    assert all(np.bincount(classes[batch], minlength=4).min() >= 2 for batch in equal_batches(120, 12))


def test_the_hand_example():
    on_all = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 2.0])
    on_forget = torch.tensor([20.0, 10.0, 5.0, 0.0, 3.0, 40.0])
    expected = torch.tensor([0.05, 1.0, 1.0, 1.0, 0.0, 0.05])  # 10 = α · 1 is not above it; 0 / 0 is left alone
    torch.testing.assert_close(dampening_factor(on_forget, on_all, 10.0, 1.0, 1.0), expected)


def test_lambda_the_exponent_and_the_cap_by_hand():
    on_all, on_forget = torch.tensor([1.0, 1.0]), torch.tensor([20.0, 4.0])
    for (alpha, dampening, exponent), expected in {
        (1.0, 2.0, 1.0): [0.1, 0.5],
        (1.0, 10.0, 1.0): [0.5, 1.0],  # λ I_D / I_F = 2.5 is cut at 1
        (1.0, 1.0, 2.0): [0.0025, 0.0625],
        (1.0, 1.0, 0.0): [1.0, 1.0],
        (1.0, 0.0, 1.0): [0.0, 0.0],
    }.items():
        found = dampening_factor(on_forget, on_all, alpha, dampening, exponent)
        torch.testing.assert_close(found, torch.tensor(expected))


@BOTH
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_forgetting_the_whole_training_set_is_the_identity_from_alpha_1_on(norm, alpha, per_sample):
    world = make_world(norm)
    nothing = world.retain.subset(np.arange(0))
    how = SSD(alpha=alpha, per_sample=per_sample, batch_size=5)
    assert not changed(world.unlearn(how, retain=nothing), world.original)


@BOTH
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("alpha", [1e12, math.inf])
def test_an_infinite_selection_weight_is_the_identity(norm, alpha, per_sample):
    world = make_world(norm)
    assert not changed(world.unlearn(SSD(alpha=alpha, per_sample=per_sample)), world.original)


def test_per_sample_importances_select_nothing_from_the_ratio_of_the_sets_on():
    world = make_world("none")
    ratio = (N_RETAIN + N_FORGET) / N_FORGET
    assert not changed(world.unlearn(SSD(alpha=ratio * 1.0001)), world.original)
    assert changed(world.unlearn(SSD(alpha=ratio * 0.5)), world.original)


@BOTH
@pytest.mark.parametrize("norm", NORMS)
def test_weights_only_shrink_and_keep_their_sign_and_buffers_stay(norm, per_sample):
    world = make_world(norm)
    dampened = world.unlearn(SSD(per_sample=per_sample, **STRONG))
    moved = changed(dampened, world.original)
    assert moved
    assert moved <= parameters(world.original)
    for p, old in zip(dampened.parameters(), world.original.parameters(), strict=True):
        assert (p.abs() <= old.abs()).all()
        assert (p * old >= 0).all()


@BOTH
@pytest.mark.parametrize("norm", NORMS)
def test_the_result_is_the_formula_on_importances_by_loop(norm, per_sample):
    world = make_world(norm)
    how = SSD(alpha=1.1, dampening=0.7, per_sample=per_sample, batch_size=5)
    x, y = train_set(world)
    # 13 forget points in three batches of 5 (two points twice), so 50 points in ten of 5
    sizes = [1, 1] if per_sample else [5, 5]
    batches = [equal_batches(n, size).tolist() for n, size in zip((N_FORGET, 50), sizes, strict=True)]
    on_forget = by_loop(world.original, world.forget.x, world.forget.y, batches[0])
    on_all = by_loop(world.original, x, y, batches[1])
    dampened = dict(world.unlearn(how).named_parameters())
    for name, old in world.original.named_parameters():
        for new, began, i_f, i_d in zip(
            *(t.detach().flatten().tolist() for t in (dampened[name], old, on_forget[name], on_all[name])), strict=True
        ):
            if abs(i_f - 1.1 * i_d) < 1e-3 * i_d + 1e-9:
                continue  # too close to call in single precision
            assert new == pytest.approx(began * min(0.7 * i_d / i_f, 1) if i_f > 1.1 * i_d else began, rel=2e-3)


@BOTH
def test_it_draws_no_random_numbers(per_sample):
    world = make_world()
    how = SSD(per_sample=per_sample, **STRONG)
    assert not changed(world.unlearn(how, key="one"), world.unlearn(how, key="another"))


@BOTH
@pytest.mark.parametrize("norm", NORMS)
def test_one_point_is_forgotten_in_batches_of_one(norm, per_sample):
    world = make_world(norm)
    one = world.forget.subset(world.forget.index[:1])
    dampened, expected = (world.unlearn(SSD(alpha=2.0, per_sample=kind), forget=one) for kind in (per_sample, True))
    assert changed(expected, world.original)
    for p, q in zip(dampened.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5)


def test_frozen_parameters_stay_and_stay_frozen():
    world = make_world()
    world.original.body.requires_grad_(False)
    for per_sample in (True, False):
        dampened = world.unlearn(SSD(per_sample=per_sample, **STRONG))
        assert changed(dampened, world.original) <= {"head.weight", "head.bias"}
        flags = [p.requires_grad for p in world.original.parameters()]
        assert [p.requires_grad for p in dampened.parameters()] == flags


def test_its_cost_is_one_pass_over_each_set_and_what_fills_the_last_batches():
    world = make_world()
    for how, cost in ((SSD(), 63), (SSD(per_sample=False), 13 + 52), (SSD(per_sample=False, batch_size=5), 15 + 50)):
        context = world.context()
        how.unlearn(world.original, world.retain, world.forget, context)
        assert context.n_gradients == cost


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"alpha": -1.0}, "must not be negative"),
        ({"alpha": math.nan}, "must not be negative"),
        ({"dampening": -1.0}, "must not be negative"),
        ({"exponent": -1.0}, "must not be negative"),
        ({"batch_size": 0}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        SSD(**bad)
