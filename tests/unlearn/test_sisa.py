import copy
import dataclasses

import numpy as np
import pytest
import torch

from forgetgauge.errors import UserError
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.sisa import Sisa, shard_of
from forgetgauge.streams import Streams
from forgetgauge.unlearn.sisa import RetrainShards
from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner, Unlearner

from .world import changed, make_world, state

NORMS = ["batch", "group", "none"]
N_SHARDS = 4


def make_sharded(norm="batch", n_shards=N_SHARDS):
    """The tiny world with an original that was trained in shards."""
    world = make_world(norm)
    recipe = {field.name: getattr(world.learner, field.name) for field in dataclasses.fields(Minibatch)}
    learner = Sisa(n_shards=n_shards, **recipe)
    known = world.points.subset(np.concatenate([world.retain.index, world.forget.index]))
    return dataclasses.replace(world, learner=learner, original=learner.fit(known, Streams("original")))


def in_shards(points, shards):
    """The points that lie in some shards."""
    return points.subset(points.index[np.isin(shard_of(points.index, N_SHARDS), shards)])


def assert_close(model, expected):
    for tensor, its in zip(state(model).values(), state(expected).values(), strict=True):
        torch.testing.assert_close(tensor, its, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shard", range(N_SHARDS))
def test_a_shard_that_is_hit_is_fitted_from_scratch_and_the_others_are_left_to_the_bit(norm, shard):
    world = make_sharded(norm)
    model = world.unlearn(RetrainShards(), forget=in_shards(world.forget, [shard]))
    retained = in_shards(world.retain, [shard])
    scratch = world.learner.recipe.fit(retained, Streams("a job").child(f"shard {shard}"))
    assert not changed(model.shards[shard], scratch)
    assert changed(model.shards[shard], world.original.shards[shard])
    for other in set(range(N_SHARDS)) - {shard}:
        assert not changed(model.shards[other], world.original.shards[other])


@pytest.mark.parametrize("norm", NORMS)
def test_with_two_shards_hit_each_is_fitted_from_scratch(norm):
    world = make_sharded(norm)
    model = world.unlearn(RetrainShards(), forget=in_shards(world.forget, [1, 3]))
    for shard in (1, 3):
        streams = Streams("a job").child(f"shard {shard}")
        assert_close(model.shards[shard], world.learner.recipe.fit(in_shards(world.retain, [shard]), streams))
    for shard in (0, 2):
        assert not changed(model.shards[shard], world.original.shards[shard])


@pytest.mark.parametrize("norm", NORMS)
def test_with_all_shards_hit_it_is_the_learner_on_the_retain_set_to_the_bit(norm):
    world = make_sharded(norm)
    assert set(shard_of(world.forget.index, N_SHARDS)) == set(range(N_SHARDS))
    assert not changed(world.unlearn(RetrainShards()), world.learner.fit(world.retain, Streams("a job")))


def test_what_was_forgotten_leaves_no_trace():
    world = make_sharded()
    forget = in_shards(world.forget, [2])
    broken = copy.deepcopy(world.original)
    with torch.no_grad():
        for parameter in broken.shards[2].parameters():
            parameter.fill_(torch.nan)
    assert not changed(
        world.unlearn(RetrainShards(), model=broken, forget=forget), world.unlearn(RetrainShards(), forget=forget)
    )


def test_nothing_to_forget_is_the_identity():
    world = make_sharded()
    context = world.context()
    model = RetrainShards().unlearn(world.original, world.retain, world.forget.subset([]), context)
    assert model is not world.original
    assert not changed(model, world.original)
    assert context.n_gradients == 0


def test_a_shard_that_loses_all_its_points_begins_anew_and_stays_untrained():
    world = make_sharded()
    others = in_shards(world.retain, [0, 1, 3])
    forget = in_shards(world.points.subset(np.concatenate([world.retain.index, world.forget.index])), [2])
    model = world.unlearn(RetrainShards(), retain=others, forget=forget)
    untrained = world.learner.recipe.build(world.points, Streams("a job").child("shard 2").seed("init"))
    assert not changed(model.shards[2], untrained)


@pytest.mark.parametrize("training", [False, True])
def test_the_model_given_is_left_untouched_and_the_result_is_in_eval_mode(training):
    world = make_sharded()
    before = state(world.original.train(training))
    model = world.unlearn(RetrainShards())
    assert all(torch.equal(tensor, before[name]) for name, tensor in world.original.state_dict().items())
    assert all(module.training == training for module in world.original.modules())
    assert not any(module.training for module in model.modules())
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    shared = {t.data_ptr() for t in world.original.state_dict().values()}
    assert not shared & {t.data_ptr() for t in model.state_dict().values()}


def test_its_cost_is_the_training_of_the_shards_that_are_hit():
    world = make_sharded()
    for shards in ([0], [1, 2], [0, 1, 2, 3]):
        context = world.context()
        RetrainShards().unlearn(world.original, world.retain, in_shards(world.forget, shards), context)
        assert context.n_gradients == 2 * len(in_shards(world.retain, shards))


@pytest.mark.parametrize("norm", NORMS)
def test_many_requests_at_once_are_answered_like_each_alone(norm):
    world, unlearner = make_sharded(norm), RetrainShards()
    asked = {"one": world.forget, "two": in_shards(world.forget, [0]), "three": world.forget}
    requests = [Request(world.original, world.retain, forget, world.context(key)) for key, forget in asked.items()]
    for model, (key, forget) in zip(unlearner.unlearn_many(requests), asked.items(), strict=True):
        assert_close(model, world.unlearn(unlearner, forget=forget, key=key))


def test_it_says_whose_models_it_unlearns():
    assert isinstance(RetrainShards(), Unlearner)
    assert isinstance(RetrainShards(), StackedUnlearner)
    assert RetrainShards.learner == "sisa"
    assert not dataclasses.fields(RetrainShards)


def test_models_of_another_learner_are_refused():
    plain, sharded = make_world(), make_sharded()
    with pytest.raises(UserError, match="of the learner 'sisa', not of Minibatch"):
        plain.unlearn(RetrainShards())
    with pytest.raises(UserError, match="made of shards, not a SmallCNN"):
        RetrainShards().unlearn(plain.original, plain.retain, plain.forget, Context(sharded.learner, Streams("a job")))
