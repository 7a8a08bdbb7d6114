import copy

import numpy as np
import pytest
import torch

from forgetgauge.streams import Streams
from forgetgauge.unlearn.bad_teacher import BadTeacher, kl_divergence
from forgetgauge.unlearn.unlearner import Context

from .world import N_FORGET, N_RETAIN, buffers, changed, make_world, parameters

NORMS = ["batch", "group", "none"]


def posterior(model, x):
    return model.eval()(x).detach().double().softmax(1)


def divergence(p, q):
    return (p * (p / q).log()).sum(1).mean().item()


class TaughtByTheOriginal:
    """A learner whose untrained model is the trained one: then both teachers say what the student says."""

    def __init__(self, model):
        self.model = model

    def build(self, points, seed):
        return copy.deepcopy(self.model)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nothing", [{"lr": 0.0}, {"epochs": 0}, {"epochs": 0, "batch_norm": "train"}])
def test_no_rate_or_no_epochs_is_the_identity(norm, nothing):
    world = make_world(norm)
    assert not changed(world.unlearn(BadTeacher(**nothing)), world.original)


def test_the_divergence_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    p, q = (torch.tensor(rng.standard_normal((7, 4))).log_softmax(1) for _ in range(2))
    expected = np.mean(np.sum(np.exp(p.numpy()) * (p - q).numpy(), axis=1))
    assert kl_divergence(p, q).item() == pytest.approx(expected, rel=1e-12)
    assert kl_divergence(p, p).item() == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("norm", NORMS)
def test_a_student_of_itself_has_nothing_to_learn(norm):
    world = make_world(norm)
    context = Context(TaughtByTheOriginal(world.original), Streams("a job"))
    model = BadTeacher(lr=1e-6, epochs=3).unlearn(world.original, world.retain, world.forget, context)
    for p, q in zip(model.parameters(), world.original.parameters(), strict=True):
        torch.testing.assert_close(
            p, q, rtol=0, atol=4e-6
        )  # Adam moves at most its rate a step, even on rounding noise
    assert divergence(posterior(model, world.points.x), posterior(world.original, world.points.x)) < 1e-8


@pytest.mark.parametrize("mode", ["frozen", "train"])
def test_it_is_adam_on_the_divergence_to_the_two_teachers(mode):
    world, streams = make_world("batch"), Streams("a job")
    model = world.unlearn(BadTeacher(lr=0.01, epochs=2, batch_size=12, batch_norm=mode))
    sample = world.points.subset(streams.generator("sample").choice(world.retain.index, 11, replace=False))
    ignorant = world.learner.build(world.points, streams.seed("teacher"))
    x = torch.cat([world.forget.x, sample.x])
    taught = torch.cat([posterior(ignorant, world.forget.x), posterior(world.original, sample.x)]).float()
    reference, rng = copy.deepcopy(world.original).train(mode == "train"), streams.generator("order")
    optimiser = torch.optim.Adam(reference.parameters(), lr=0.01)
    for _ in range(2):
        for at in np.split(rng.permutation(24), 2):
            optimiser.zero_grad()
            said = reference(x[at]).log_softmax(1)
            (taught[at] * (taught[at].log() - said)).sum(1).mean().backward()
            optimiser.step()
    ended, expected, began = (
        torch.cat([tensor.double().flatten() for tensor in m.state_dict().values()])
        for m in (model, reference, world.original)
    )
    # Adam magnifies a gradient that is rounding noise to a whole step, so single weights may stray
    assert (ended - expected).abs().mean() < 1e-2 * (expected - began).abs().mean()


def test_taught_for_long_it_is_ignorant_of_the_forget_set_and_loyal_on_the_retain_set():
    world, how = make_world("batch"), BadTeacher(retain_share=1.0, lr=0.01, epochs=150, batch_size=50)
    model = world.unlearn(how)
    ignorant = world.learner.build(world.points, Streams("a job").seed("teacher"))
    on_forget, on_retain = world.forget.x, world.retain.x
    assert divergence(posterior(ignorant, on_forget), posterior(model, on_forget)) < 0.1 * divergence(
        posterior(ignorant, on_forget), posterior(world.original, on_forget)
    )
    assert divergence(posterior(world.original, on_retain), posterior(model, on_retain)) < 0.05


def test_labels_are_not_used():
    world = make_world()
    labels = world.points.whole_labels[torch.arange(len(world.points)).flip(0)]
    retain, forget = (type(part)(part.whole_inputs, labels, part.index) for part in (world.retain, world.forget))
    assert not changed(world.unlearn(BadTeacher(), retain=retain, forget=forget), world.unlearn(BadTeacher()))


def test_other_streams_have_another_teacher_and_another_sample():
    world = make_world("none")
    whole = BadTeacher(retain_share=0.0, lr=0.01)  # one full batch of F: only the teacher can differ
    assert changed(world.unlearn(whole, key="one"), world.unlearn(whole, key="two"))


@pytest.mark.parametrize(("mode", "moves_statistics"), [("frozen", False), ("train", True)])
def test_running_statistics_move_in_train_mode_only(mode, moves_statistics):
    world = make_world("batch")
    moved = changed(world.unlearn(BadTeacher(lr=0.01, batch_norm=mode)), world.original)
    assert moved == parameters(world.original) | (buffers(world.original) if moves_statistics else set())


@pytest.mark.parametrize(("share", "n_sampled"), [(0.0, 0), (0.3, 11), (1.0, N_RETAIN)])
def test_its_cost_is_the_forget_set_and_the_sample_per_epoch(share, n_sampled):
    world, context = make_world(), make_world().context()
    method = BadTeacher(retain_share=share, epochs=3, batch_size=16)
    method.unlearn(world.original, world.retain, world.forget, context)
    assert context.n_gradients == 3 * (N_FORGET + n_sampled)


@pytest.mark.parametrize(
    ("bad", "why"), [({"lr": -1.0}, "lr"), ({"retain_share": 1.5}, "retain_share"), ({"retain_share": -0.1}, "between")]
)
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        BadTeacher(**bad)
