import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from forgetgauge import plugins
from forgetgauge.learn.descent import descend
from forgetgauge.streams import Streams
from forgetgauge.unlearn import salun
from forgetgauge.unlearn.salun import SalUn, forget_gradient, most_salient

from .world import N_FORGET, N_RETAIN, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]
FEW = {"epochs": 2, "batch_size": 16, "lr": 0.05, "weight_decay": 0.01}


def mask_of(world, fraction=0.5, batch_size=16):
    return most_salient(forget_gradient(copy.deepcopy(world.original).eval(), world.forget, batch_size), fraction)


def random_label_tuning(world, how, mask=None):
    """Textbook SGD: F with random labels, then R with true ones; where a mask is given, SGD by hand on its entries."""
    model, streams = copy.deepcopy(world.original).train(), Streams("a job")
    order, labels = streams.generator("order"), streams.generator("labels")
    if how.batch_norm == "frozen":
        model.eval()  # the world's models have no dropout
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    entries = [torch.ones_like(p, dtype=torch.bool) for p in model.parameters()] if mask is None else mask.values()

    def step(x, y):
        gradients = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
        with torch.no_grad():
            for p, gradient, v, keep in zip(model.parameters(), gradients, velocity, entries, strict=True):
                v[keep] = how.momentum * v[keep] + gradient[keep] + how.weight_decay * p[keep]
                p[keep] -= how.lr * v[keep]

    for _ in range(how.epochs):
        at = order.permutation(N_FORGET)  # 13 points are one batch of 16
        step(world.forget.x[at], torch.from_numpy(labels.integers(4, size=N_FORGET)))
        at = order.permutation(N_RETAIN)
        for part in (at[:13], at[13:25], at[25:]):  # 37 = 13 + 12 + 12
            step(world.retain.x[part], world.retain.y[part])
    return model


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 1.0])
def test_the_mask_has_the_floor_of_its_share_of_all_weights(norm, fraction):
    world = make_world(norm)
    n_parameters = sum(p.numel() for p in world.original.parameters())
    mask = mask_of(world, fraction)
    assert sum(int(part.sum()) for part in mask.values()) == int(fraction * n_parameters)
    assert [part.shape for part in mask.values()] == [p.shape for p in world.original.parameters()]


def test_a_share_that_floats_miss_by_a_hair_is_not_rounded_down():
    mask = most_salient({"a": torch.arange(100.0)}, 0.29)  # 0.29 * 100 == 28.999999999999996
    assert mask["a"].sum() == 29


def test_the_mask_ranks_sizes_over_all_tensors_and_not_layer_by_layer():
    gradient = {"a": torch.tensor([[-9.0, 1.0], [3.0, -8.0]]), "b": torch.tensor([2.0, -7.0, 0.0])}
    mask = most_salient(gradient, 0.5)
    assert mask["a"].tolist() == [[True, False], [False, True]]
    assert mask["b"].tolist() == [False, True, False]


def test_of_equal_gradients_the_first_are_kept():
    mask = most_salient({"a": torch.zeros(300), "b": torch.zeros(300)}, 0.5)
    assert mask["a"].all()
    assert not mask["b"].any()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("batch_size", [5, 256])
def test_the_mask_is_that_of_the_full_forget_gradient_in_eval_mode(norm, batch_size):
    world = make_world(norm)
    model = copy.deepcopy(world.original).eval()
    expected = torch.autograd.grad(F.cross_entropy(model(world.forget.x), world.forget.y), list(model.parameters()))
    found = forget_gradient(model, world.forget, batch_size)
    for gradient, mean in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(gradient / N_FORGET, mean, rtol=1e-4, atol=1e-6)
    sizes = torch.cat([g.abs().flatten() for g in expected])
    kept = torch.cat([part.flatten() for part in mask_of(world, batch_size=batch_size).values()])
    assert sizes[kept].min() >= sizes[~kept].max() * (1 - 1e-4) - 1e-7


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("batch_norm", ["train", "frozen"])
def test_masked_weights_stay_to_the_bit_and_the_others_move(norm, batch_norm):
    world = make_world(norm)
    tuned = world.unlearn(SalUn(batch_norm=batch_norm, **FEW))
    moved = unmoved = 0
    for p, old, keep in zip(tuned.parameters(), world.original.parameters(), mask_of(world).values(), strict=True):
        assert torch.equal(p[~keep], old[~keep])
        moved, unmoved = moved + int((p != old)[keep].sum()), unmoved + int((p == old)[keep].sum())
    assert moved > 20 * unmoved


def test_masked_momentum_is_zero_after_every_step(monkeypatch):
    world, seen = make_world(), []
    masks = list(mask_of(world).values())

    def watched(*args, after_step, **how):
        def watch(steps):
            after_step(steps)
            velocities = [steps.state[p]["momentum_buffer"] for p in steps.param_groups[0]["params"]]
            seen.append(all(not v[~keep].any() for v, keep in zip(velocities, masks, strict=True)))
            assert any(v[keep].any() for v, keep in zip(velocities, masks, strict=True))

        descend(*args, after_step=watch, **how)

    monkeypatch.setattr(salun, "descend", watched)
    world.unlearn(SalUn(**FEW))
    assert seen == [True] * 8  # (1 + 3 batches) × 2 epochs


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("batch_norm", ["train", "frozen"])
@pytest.mark.parametrize("momentum", [0.9, 0.0])
def test_with_every_weight_it_is_plain_random_label_tuning(norm, batch_norm, momentum):
    world, how = make_world(norm), SalUn(fraction=1.0, momentum=momentum, batch_norm=batch_norm, **FEW)
    tuned, reference = world.unlearn(how), random_label_tuning(world, how)
    for tensor, expected in zip(tuned.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_with_a_mask_it_is_descent_on_the_masks_entries_alone(norm):
    world, how = make_world(norm), SalUn(**FEW)
    tuned, reference = world.unlearn(how), random_label_tuning(world, how, mask_of(world))
    for tensor, expected in zip(tuned.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_with_no_weight_at_all_only_batch_norms_statistics_move(norm):
    world = make_world(norm)
    assert changed(world.unlearn(SalUn(fraction=0.0, **FEW)), world.original) == buffers(world.original)
    assert not changed(world.unlearn(SalUn(fraction=0.0, batch_norm="frozen", **FEW)), world.original)


@pytest.mark.parametrize("norm", NORMS)
def test_no_epochs_are_the_identity(norm):
    world = make_world(norm)
    assert not changed(world.unlearn(SalUn(epochs=0)), world.original)


def test_without_a_rate_no_weight_moves():
    world = make_world()
    assert changed(world.unlearn(SalUn(lr=0.0, epochs=1)), world.original) == buffers(world.original)


def test_frozen_batch_norm_keeps_its_running_statistics_and_moves_its_weights():
    world = make_world()
    moved = changed(world.unlearn(SalUn(fraction=1.0, batch_norm="frozen", **FEW)), world.original)
    assert moved == parameters(world.original)


def test_labels_and_order_come_from_the_streams():
    world = make_world("none")
    assert changed(world.unlearn(SalUn(**FEW), key="other"), world.unlearn(SalUn(**FEW)))


def test_both_sets_matter():
    world = make_world()
    tuned = world.unlearn(SalUn(**FEW))
    assert changed(world.unlearn(SalUn(**FEW), retain=world.retain.subset(world.retain.index[:9])), tuned)
    assert changed(world.unlearn(SalUn(**FEW), forget=world.forget.subset(world.forget.index[:9])), tuned)


def flat_batch_norm(input_shape, n_classes):
    """A batch of one point would break its batch norm in train mode: one value for each feature."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, n_classes))


@pytest.mark.parametrize("n_retain", [1, 17])
def test_a_batch_of_one_point_uses_batch_norms_running_statistics(n_retain):
    world = make_world(model=plugins.models.bind(flat_batch_norm))
    one, some = world.forget.subset(world.forget.index[:1]), world.retain.subset(world.retain.index[:n_retain])
    moved = changed(world.unlearn(SalUn(**FEW), forget=one, retain=some), world.original)
    assert bool(moved & buffers(world.original)) == (n_retain > 1)


def with_dropout(input_shape, n_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, n_classes))


def test_dropout_stays_on_where_batch_norm_is_frozen_and_off_for_the_mask():
    world = make_world(model=plugins.models.bind(with_dropout))
    seen = []
    world.original[3].register_forward_hook(
        lambda module, _, out: seen.append((module.training, bool((out == 0).any())))
    )
    world.unlearn(SalUn(batch_norm="frozen", **FEW))
    assert seen[0] == (False, False)
    assert seen[1:] == [(True, True)] * 8


def test_frozen_parameters_stay_and_stay_frozen():
    world = make_world()
    world.original.body.requires_grad_(False)
    tuned = world.unlearn(SalUn(fraction=1.0, batch_norm="frozen", **FEW))
    assert changed(tuned, world.original) == {"head.weight", "head.bias"}
    flags = [p.requires_grad for p in world.original.parameters()]
    assert [p.requires_grad for p in tuned.parameters()] == flags


def test_its_cost_is_one_pass_over_f_and_the_epochs():
    world, context = make_world(), make_world().context()
    SalUn(**FEW).unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == N_FORGET + 2 * (N_FORGET + N_RETAIN)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"lr": -1.0}, "must not be negative"),
        ({"batch_size": 0}, "at least 1"),
        ({"fraction": 1.1}, "between 0 and 1"),
        ({"fraction": -0.1}, "between 0 and 1"),
        ({"momentum": -0.1}, "must not be negative"),
        ({"weight_decay": -0.1}, "must not be negative"),
        ({"batch_norm": "eval"}, "neither 'frozen' nor 'train'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        SalUn(**bad)
