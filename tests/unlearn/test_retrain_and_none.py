import copy

import pytest
import torch
from torch import nn

from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.streams import Streams
from forgetgauge.unlearn.none import Nothing
from forgetgauge.unlearn.retrain import Retrain
from forgetgauge.unlearn.unlearner import FunctionUnlearner, StackedUnlearner, Unlearner

from .world import changed, make_world, parameters

NORMS = ["batch", "group", "none"]


@pytest.mark.parametrize("norm", NORMS)
def test_none_is_the_identity_to_the_bit_buffers_included(norm):
    world = make_world(norm)
    model = world.unlearn(Nothing())
    assert not changed(model, world.original)
    if norm == "batch":
        assert int(model.body[1].num_batches_tracked) == 2 * 4  # epochs × batches of at most 16 of 50 points


@pytest.mark.parametrize("norm", NORMS)
def test_retrain_is_the_learner_on_the_retain_set_to_the_bit(norm):
    world = make_world(norm)
    assert not changed(world.unlearn(Retrain()), world.learner.fit(world.retain, Streams("a job")))


def test_retrain_does_not_look_at_the_forget_set():
    world = make_world()
    first = world.unlearn(Retrain())
    assert not changed(world.unlearn(Retrain(), forget=world.points.subset([0])), first)
    assert not changed(world.unlearn(Retrain(), forget=world.points.subset([])), first)


def test_retrain_does_not_look_at_the_model():
    world = make_world()
    other = world.learner.build(world.points, seed=77)
    with torch.no_grad():
        for p in other.parameters():
            p.fill_(torch.nan)
    assert not changed(world.unlearn(Retrain(), model=other), world.unlearn(Retrain()))
    assert Retrain.uses_original is False


def test_retrain_depends_on_the_retain_set_and_on_its_stream():
    world = make_world()
    first = world.unlearn(Retrain())
    fewer = world.retain.subset(world.retain.index[1:])
    assert changed(world.unlearn(Retrain(), retain=fewer), first) >= parameters(first)
    assert "head.weight" in changed(world.unlearn(Retrain(), key="another job"), first)


def test_retrain_follows_the_recipe_of_the_context():
    world = make_world()
    context = world.context()
    context.learner = Minibatch(model_params={"width": 4}, epochs=1, batch_size=8)
    model = Retrain().unlearn(world.original, world.retain, world.forget, context)
    assert not changed(model, context.learner.fit(world.retain, Streams("a job")))


def test_a_plain_function_is_an_unlearner_with_its_parameters():
    def shrink(model, retain, forget, context, factor=1.0):
        model = copy.deepcopy(model)
        context.n_gradients += len(forget)
        with torch.no_grad():
            model.head.weight *= factor
        return model

    world, unlearner = make_world(), FunctionUnlearner(shrink, {"factor": 0.5})
    assert isinstance(unlearner, Unlearner)
    assert not isinstance(unlearner, StackedUnlearner)
    model = world.unlearn(unlearner)
    assert isinstance(model, nn.Module)
    assert changed(model, world.original) == {"head.weight"}
    assert torch.equal(model.head.weight, world.original.head.weight / 2)
