import dataclasses

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.learn.learner import Learner
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.sisa import Shards, Sisa, shard_of
from forgetgauge.streams import Streams

from .own_models import Dropout

NORMS = ["batch", "group", "none"]


def sisa(norm="batch", n_shards=3) -> Sisa:
    return Sisa(n_shards=n_shards, model_params={"width": 4, "norm": norm}, epochs=2, batch_size=16)


def differ(one, other):
    a, b = one.state_dict(), other.state_dict()
    assert a.keys() == b.keys()
    return any(not torch.equal(a[name], b[name]) for name in a)


def assert_close(one, other):
    for tensor, expected in zip(one.state_dict().values(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-4, atol=2e-5)


# -- Who is in which shard ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_shards", [2, 5, 20])
def test_shards_are_of_even_size_wherever_the_points_lie(n_shards):
    for index in (np.arange(10_000), np.arange(50_000, 60_000), 7 * np.arange(10_000)):
        counts = np.bincount(shard_of(index, n_shards), minlength=n_shards)
        assert len(counts) == n_shards
        assert chisquare(counts).pvalue > 1e-4


def test_neighbours_are_as_often_together_as_chance_has_it():
    shard = shard_of(np.arange(10_001), 5)
    assert np.mean(shard[1:] == shard[:-1]) == pytest.approx(0.2, abs=0.02)


def test_a_points_shard_depends_on_its_index_alone(images):
    learner, index = sisa(), np.random.default_rng(3).permutation(90)[:40]
    other = Points(torch.zeros_like(images.whole_inputs), images.whole_labels.flip(0), index)
    for part, same in zip(learner.shards_of(images.subset(index)), learner.shards_of(other), strict=True):
        assert np.array_equal(part.index, same.index)
    alone = [int(shard_of(np.array([i]), 3)[0]) for i in index]
    assert np.array_equal(shard_of(index, 3), alone)


def test_the_shards_are_a_partition(images):
    index = np.random.default_rng(4).permutation(90)[:50]
    parts = [part.index for part in sisa().shards_of(images.subset(index))]
    assert sorted(np.concatenate(parts)) == sorted(index)


def test_no_points_have_no_shards():
    assert shard_of(np.array([], dtype=np.int64), 3).shape == (0,)


# -- The model ---------------------------------------------------------------------------------------------------


def test_it_says_the_log_of_the_mean_posterior(images):
    model = sisa().fit(images, Streams("one"))
    with torch.no_grad():
        each = [shard(images.x).double().softmax(1).numpy() for shard in model.shards]
        said = model(images.x).double().numpy()
    np.testing.assert_allclose(np.exp(said), np.mean(each, axis=0), atol=1e-6)
    np.testing.assert_allclose(np.exp(said).sum(axis=1), 1, atol=1e-6)


def test_shards_that_are_certain_of_different_classes_say_finite_things():
    class Certain(torch.nn.Module):
        def __init__(self, label):
            super().__init__()
            self.label = label

        def forward(self, x):
            return 1e4 * torch.nn.functional.one_hot(torch.full((len(x),), self.label), 3).float()

    said = Shards([Certain(0), Certain(1)])(torch.zeros(2, 1))
    assert torch.isfinite(said).all()
    torch.testing.assert_close(said[:, :2], torch.full((2, 2), 0.5).log())


def test_untrained_models_differ_from_shard_to_shard_and_depend_on_the_seed_alone(images):
    first, again, other = (sisa().build(images, seed) for seed in (1, 1, 2))
    assert not differ(first, again)
    assert differ(first, other)
    assert differ(first.shards[0], first.shards[1])


# -- Fitting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_every_shard_is_the_recipe_on_its_points_with_a_stream_of_its_own(images, norm):
    learner, streams = sisa(norm), Streams("one")
    model = learner.fit(images, streams)
    assert not any(module.training for module in model.modules())
    for number, (shard, part) in enumerate(zip(model.shards, learner.shards_of(images), strict=True)):
        assert_close(shard, learner.recipe.fit(part, streams.child(f"shard {number}")))


@pytest.mark.parametrize("norm", NORMS)
def test_models_fitted_together_are_those_fitted_alone(images, norm):
    learner, rng = sisa(norm), np.random.default_rng(5)
    sets = [images.subset(rng.permutation(90)[:50]) for _ in range(4)]
    streams = [Streams(f"member {i}") for i in range(4)]
    for model, points, its in zip(learner.fit_many(sets, streams), sets, streams, strict=True):
        assert_close(model, learner.fit(points, its))


def test_a_point_matters_to_its_own_shard_alone(images):
    learner, streams = sisa(), Streams("one")
    without, gone = np.delete(np.arange(90), 17), int(shard_of(np.array([17]), 3)[0])
    whole, less = learner.fit(images, streams), learner.fit(images.subset(without), streams)
    assert differ(whole.shards[gone], less.shards[gone])
    for number in {0, 1, 2} - {gone}:
        assert_close(whole.shards[number], less.shards[number])


def test_an_empty_shard_keeps_its_untrained_model(images):
    learner, streams = sisa(), Streams("one")
    points = images.subset(images.index[shard_of(images.index, 3) != 1])
    model = learner.fit(points, streams)
    untrained = learner.recipe.build(images, streams.child("shard 1").seed("init"))
    assert not differ(model.shards[1], untrained)
    assert not model.shards[1].training


def test_fitting_draws_from_its_streams_and_not_from_torchs(vectors):
    learner = Sisa(n_shards=3, model=plugins.models.bind(Dropout), epochs=2, batch_size=16)
    torch.manual_seed(1)
    first = learner.fit(vectors, Streams("one"))
    torch.manual_seed(2)
    before = torch.get_rng_state()
    assert not differ(learner.fit(vectors, Streams("one")), first)
    assert torch.equal(torch.get_rng_state(), before)
    assert differ(learner.fit(vectors, Streams("two")), first)


def test_the_weights_can_be_poured_into_an_untrained_model(images):
    learner = sisa()
    model, mould = learner.fit(images, Streams("one")), learner.build(images, 0)
    mould.load_state_dict(model.state_dict())
    assert torch.equal(mould.eval()(images.x), model(images.x))


# -- Settings ----------------------------------------------------------------------------------------------------


def test_it_is_a_learner_with_the_settings_of_minibatch():
    assert isinstance(Sisa(), Learner)
    assert Sisa().recipe == Minibatch()
    names = {field.name for field in dataclasses.fields(Minibatch)}
    assert {field.name for field in dataclasses.fields(Sisa)} == names | {"n_shards"}
    assert plugins.learners.load("sisa") is Sisa


def test_its_cost_is_that_of_one_model_on_all_points():
    assert Sisa(epochs=7).n_gradients(90) == 7 * 90


@pytest.mark.parametrize(
    ("bad", "why"), [({"n_shards": 0}, "n_shards"), ({"epochs": 0}, "epochs"), ({"lr": 0.0}, "lr must be greater")]
)
def test_settings_that_make_no_sense_are_refused(bad, why):
    with pytest.raises(ValueError, match=why):
        Sisa(**bad)
