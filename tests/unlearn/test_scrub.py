import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forgetgauge.streams import Streams
from forgetgauge.unlearn.fine_tune import FineTune
from forgetgauge.unlearn.scrub import Scrub

from .world import N_FORGET, N_RETAIN, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]


def divergence(p, q):
    return (p * (p / q).log()).sum(1).mean()


def posterior(model, x, temperature=1.0):
    return (model(x) / temperature).softmax(1)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"epochs": 0}, {"epochs": 0, "batch_norm": "train"}])
def test_no_rate_or_no_epochs_is_the_identity(norm, nothing):
    world = make_world(norm)
    assert not changed(world.unlearn(Scrub(**nothing)), world.original)


@pytest.mark.parametrize("mode", ["frozen", "train"])
def test_it_is_the_published_loop(mode):
    world, streams = make_world("batch"), Streams("a job")
    how = {"lr": 0.02, "weight_decay": 0.01, "epochs": 4, "batch_size": 19, "forget_batch_size": 7}
    model = world.unlearn(
        Scrub(gamma=0.7, alpha=0.2, temperature=3.0, msteps=2, decay_epochs=(1, 3, 9), batch_norm=mode, **how)
    )
    teacher, student = copy.deepcopy(world.original).eval(), copy.deepcopy(world.original).train(mode == "train")
    optimiser = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9, weight_decay=0.01)
    forget_order, retain_order = streams.generator("forget-order"), streams.generator("order")

    def step(points, at, lr):
        x, y = points.x[at], points.y[at]
        logits, taught = student(x), posterior(teacher, x, 3.0).detach()
        distance = 9 * divergence(taught, (logits / 3).softmax(1))
        loss = -distance if points is world.forget else 0.7 * F.cross_entropy(logits, y) + 0.2 * distance
        optimiser.param_groups[0]["lr"] = lr
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    for epoch, lr in enumerate([0.02, 0.002, 0.002, 0.0002]):
        for at in np.split(forget_order.permutation(N_FORGET), [7]) if epoch < 2 else []:
            step(world.forget, at, lr)
        for at in np.split(retain_order.permutation(N_RETAIN), [19]):
            step(world.retain, at, lr)
    for tensor, expected in zip(model.state_dict().values(), student.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_without_ascent_and_without_the_teacher_it_is_fine_tuning(norm):
    world, how = make_world(norm), {"lr": 0.01, "epochs": 3, "batch_size": 16, "weight_decay": 5e-4}
    assert not changed(world.unlearn(Scrub(gamma=1.0, alpha=0.0, msteps=0, **how)), world.unlearn(FineTune(**how)))


def test_a_student_that_only_follows_its_teacher_stays_where_it_is():
    world = make_world("batch")
    model = world.unlearn(Scrub(gamma=0.0, alpha=1.0, msteps=0, lr=0.01, weight_decay=0.0, epochs=5))
    for p, q in zip(model.parameters(), world.original.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-5)


def test_the_first_ascent_begins_where_the_distance_has_no_gradient():
    world = make_world("batch")
    model = world.unlearn(Scrub(gamma=0.0, alpha=0.0, msteps=1, lr=0.01, weight_decay=0.0, epochs=1))
    for p, q in zip(model.parameters(), world.original.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-5)


def test_the_ascent_drives_the_forget_set_away_from_the_teacher():
    world, how = make_world("batch"), {"lr": 0.02, "epochs": 5, "batch_size": 16}
    said = posterior(world.original, world.forget.x)
    near, far = (
        divergence(said, posterior(world.unlearn(Scrub(msteps=msteps, **how)), world.forget.x)).item()
        for msteps in (0, 5)
    )
    assert far > near


def test_a_heavier_teacher_keeps_the_retain_set_nearer():
    world, how = make_world("batch"), {"lr": 0.02, "epochs": 5, "msteps": 0, "batch_size": 16}
    said = posterior(world.original, world.retain.x)
    near, far = (
        divergence(said, posterior(world.unlearn(Scrub(alpha=alpha, **how)), world.retain.x)).item()
        for alpha in (1.0, 0.0)
    )
    assert near < far


def test_the_teacher_speaks_in_eval_mode_whatever_mode_the_model_came_in():
    world = make_world("batch")
    first = world.unlearn(Scrub())
    assert not changed(world.unlearn(Scrub(), model=world.original.train()), first)


@pytest.mark.parametrize(("mode", "moves_statistics"), [("frozen", False), ("train", True)])
def test_running_statistics_move_in_train_mode_only(mode, moves_statistics):
    world = make_world("batch")
    moved = changed(world.unlearn(Scrub(lr=0.01, batch_norm=mode)), world.original)
    assert moved == parameters(world.original) | (buffers(world.original) if moves_statistics else set())


@pytest.mark.parametrize(("msteps", "ascents"), [(0, 0), (2, 2), (9, 3)])
def test_its_cost_counts_descents_and_ascents(msteps, ascents):
    world, context = make_world(), make_world().context()
    method = Scrub(msteps=msteps, epochs=3, batch_size=16, forget_batch_size=5)
    method.unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == 3 * N_RETAIN + ascents * N_FORGET


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"lr": -1.0}, "lr"),
        ({"forget_batch_size": 0}, "batch_size"),
        ({"gamma": -1.0}, "gamma"),
        ({"alpha": -1.0}, "alpha"),
        ({"msteps": -1}, "msteps"),
        ({"temperature": 0.0}, "temperature must be greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        Scrub(**bad)
