import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.unlearn.squared_gradients import mean_squares, squared_loss_gradient, trainable
from forgetgauge.unlearn.ssd import SSD, dampening_factor, equal_batches, mean_squared_batch_gradients

from .world import N_FORGET, N_RETAIN, changed, make_world, parameters

NORMS = ["batch", "group", "none"]
ALL = pytest.mark.parametrize("importance", ["per-sample", "equal-batches", "published-batches"])
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


def in_batches(importance, n):
    """Lists of positions, at batch size 5: 13 points are three batches of 5 with two points twice, or 5, 5, 3."""
    if importance == "per-sample":
        return [[i] for i in range(n)]
    if importance == "equal-batches":
        return equal_batches(n, 5).tolist()
    return [list(range(n))[first : first + 5] for first in range(0, n, 5)]


def both(world):
    return world.forget.subset(np.concatenate([world.retain.index, world.forget.index]))


def train_set(world):
    return torch.cat([world.retain.x, world.forget.x]), torch.cat([world.retain.y, world.forget.y])


@pytest.mark.parametrize("norm", NORMS)
def test_per_sample_importances_are_those_of_a_loop_over_points(norm):
    world = make_world(norm)
    x, y = train_set(world)
    found = mean_squares(world.original.eval(), trainable(world.original), x, y, squared_loss_gradient(CLASSIFICATION))
    assert_close(found, by_loop(world.original, x, y, [[i] for i in range(len(x))]))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 4, 13, 50])
def test_batch_importances_are_those_of_a_loop_over_batches(norm, size):
    world = make_world(norm)
    x, y = train_set(world)
    batches = equal_batches(len(x), size)
    found = mean_squared_batch_gradients(world.original.eval(), both(world), batches)
    assert_close(found, by_loop(world.original, x, y, batches.tolist()))


@pytest.mark.parametrize("size", [5, 12, 13, 50, 128])
def test_published_batches_are_those_of_a_loader_over_f_and_of_one_over_r_then_f(size):
    """The published code squares the gradient of each batch of a DataLoader, and divides by their number."""
    world = make_world()
    x, y = train_set(world)
    loaders = [DataLoader(TensorDataset(*part), batch_size=size) for part in ((world.forget.x, world.forget.y), (x, y))]
    importances = []
    for loader in loaders:
        model = copy.deepcopy(world.original).eval()
        total = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
        for inputs, labels in loader:
            model.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            for name, p in model.named_parameters():
                total[name] += p.grad.square() / len(loader)
        importances.append(total)
    dampened = dict(world.unlearn(SSD(alpha=1.1, importance="published-batches", batch_size=size)).named_parameters())
    for name, old in world.original.named_parameters():
        on_forget, on_all = (total[name] for total in importances)
        expected = torch.where(on_forget > 1.1 * on_all, old * (on_all / on_forget).clamp(max=1), old)
        clear = (on_forget - 1.1 * on_all).abs() > 1e-4 * on_all
        torch.testing.assert_close(dampened[name][clear], expected[clear], rtol=1e-3, atol=1e-7)


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


@ALL
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_forgetting_the_whole_training_set_is_the_identity_from_alpha_1_on(norm, alpha, importance):
    world = make_world(norm)
    nothing = world.retain.subset(np.arange(0))
    how = SSD(alpha=alpha, importance=importance, batch_size=5)
    assert not changed(world.unlearn(how, retain=nothing), world.original)


@ALL
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("alpha", [1e12, math.inf])
def test_an_infinite_selection_weight_is_the_identity(norm, alpha, importance):
    world = make_world(norm)
    assert not changed(world.unlearn(SSD(alpha=alpha, importance=importance)), world.original)


def test_per_sample_importances_select_nothing_from_the_ratio_of_the_sets_on():
    world = make_world("none")
    ratio = (N_RETAIN + N_FORGET) / N_FORGET
    assert not changed(world.unlearn(SSD(alpha=ratio * 1.0001, importance="per-sample")), world.original)
    assert changed(world.unlearn(SSD(alpha=ratio * 0.5, importance="per-sample")), world.original)


@pytest.mark.parametrize("size", [4, 20, 128])
def test_by_the_published_batches_the_published_weight_selects_where_per_sample_nothing_can_be(size):
    """|R ∪ F| / |F| is 3.8, far below 10; which weights 10 selects is counted by a loop of autograd."""
    world = make_world("none")
    x, y = train_set(world)
    cut = [[list(range(n))[first : first + size] for first in range(0, n, size)] for n in (N_FORGET, len(x))]
    on_forget = by_loop(world.original, world.forget.x, world.forget.y, cut[0])
    on_all = by_loop(world.original, x, y, cut[1])
    dampened = dict(world.unlearn(SSD(batch_size=size)).named_parameters())
    n_selected = 0
    for name, old in world.original.named_parameters():
        selected = on_forget[name] > 10 * on_all[name]
        clear = (on_forget[name] - 10 * on_all[name]).abs() > 1e-3 * on_forget[name]
        assert ((dampened[name] != old)[clear] == (selected & (old != 0))[clear]).all()
        n_selected += int(selected.sum())
    assert n_selected > 0
    assert not changed(world.unlearn(SSD(importance="per-sample")), world.original)


def test_the_defaults_are_those_of_the_published_code():
    assert SSD() == SSD(alpha=10.0, dampening=1.0, exponent=1.0, importance="published-batches", batch_size=128)


@ALL
@pytest.mark.parametrize("norm", NORMS)
def test_weights_only_shrink_and_keep_their_sign_and_buffers_stay(norm, importance):
    world = make_world(norm)
    dampened = world.unlearn(SSD(importance=importance, **STRONG))
    moved = changed(dampened, world.original)
    assert moved
    assert moved <= parameters(world.original)
    for p, old in zip(dampened.parameters(), world.original.parameters(), strict=True):
        assert (p.abs() <= old.abs()).all()
        assert (p * old >= 0).all()


@ALL
@pytest.mark.parametrize("norm", NORMS)
def test_the_result_is_the_formula_on_importances_by_loop(norm, importance):
    world = make_world(norm)
    how = SSD(alpha=1.1, dampening=0.7, importance=importance, batch_size=5)
    x, y = train_set(world)
    batches = [in_batches(importance, n) for n in (N_FORGET, 50)]
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


@ALL
def test_it_draws_no_random_numbers(importance):
    world = make_world()
    how = SSD(importance=importance, **STRONG)
    assert not changed(world.unlearn(how, key="one"), world.unlearn(how, key="another"))


@ALL
@pytest.mark.parametrize("norm", NORMS)
def test_one_point_is_forgotten_in_batches_of_one(norm, importance):
    world = make_world(norm)
    one = world.forget.subset(world.forget.index[:1])
    dampened, expected = (
        world.unlearn(SSD(alpha=2.0, importance=kind, batch_size=1), forget=one) for kind in (importance, "per-sample")
    )
    assert changed(expected, world.original)
    for p, q in zip(dampened.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-5)


def test_frozen_parameters_stay_and_stay_frozen():
    world = make_world()
    world.original.body.requires_grad_(False)
    for importance in ("per-sample", "equal-batches", "published-batches"):
        dampened = world.unlearn(SSD(importance=importance, **STRONG))
        assert changed(dampened, world.original) <= {"head.weight", "head.bias"}
        flags = [p.requires_grad for p in world.original.parameters()]
        assert [p.requires_grad for p in dampened.parameters()] == flags


def test_its_cost_is_one_pass_over_each_set_and_what_fills_the_last_of_equal_batches():
    world = make_world()
    for how, cost in (
        (SSD(), 63),
        (SSD(importance="equal-batches"), 13 + 52),
        (SSD(importance="equal-batches", batch_size=5), 15 + 50),
        (SSD(importance="published-batches", batch_size=5), 63),
    ):
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
