"""Members that share their inputs but not their labels: each is the model alone, by every engine."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.sisa import Sisa
from forgetgauge.learn.stacked.engines import Engine, choose_engine
from forgetgauge.learn.stacked.members import check_alike, check_points, own_labels, reason_against
from forgetgauge.models.small_cnn import SmallCNN
from forgetgauge.streams import Streams
from tests.learn.own_models import BatchNormed, Dropout
from tests.learn.test_minibatch import assert_close, same_bits, small_cnn

from .test_engines import said_to_be_on_a_gpu

STREAMS = [Streams(f"member {k}") for k in range(3)]


def taught_otherwise(points: Points, n_classes: int, size: int = 37) -> list[Points]:
    """Three overlapping sets; each member's labels are one class further than the last's."""
    rng = np.random.default_rng(0)
    return [
        replace(points, whole_labels=(points.whole_labels + k) % n_classes).subset(rng.permutation(len(points))[:size])
        for k in range(3)
    ]


def assert_each_is_the_model_alone(learner, sets, fitted):
    for points, streams, model in zip(sets, STREAMS, fitted, strict=True):
        assert_close(model, learner.fit(points, streams))
    true_labels = replace(sets[1], whole_labels=sets[0].whole_labels)
    assert not same_bits(fitted[1], learner.fit(true_labels, STREAMS[1]))


# -- What they share, and what they do not -----------------------------------------------------------------------


def test_a_row_of_positions_is_read_from_its_members_own_labels(vectors):
    sets = taught_otherwise(vectors, 3)
    at = torch.tensor([[0, 5, 5], [1, 2, 3], [59, 0, 7]])
    expected = torch.stack([p.whole_labels[row] for p, row in zip(sets, at, strict=True)])
    assert torch.equal(own_labels(sets)(at), expected)
    assert torch.equal(own_labels([vectors] * 3)(at), vectors.whole_labels[at])


def test_shared_labels_are_not_copied(vectors, monkeypatch):
    monkeypatch.setattr(torch, "stack", None)
    own_labels([vectors.subset(np.arange(k, 9)) for k in range(3)])(torch.zeros(3, 2, dtype=torch.int64))


def test_labels_may_differ_but_not_inputs_or_the_number_of_classes(vectors):
    assert reason_against(check_points, [vectors]) is None
    assert reason_against(check_points, taught_otherwise(vectors, 3)) is None
    copied = replace(vectors, whole_inputs=vectors.whole_inputs.clone())
    assert reason_against(check_points, [vectors, copied]) == "the points are of different data sets"
    fewer = replace(vectors, whole_labels=vectors.whole_labels.clamp(max=1))
    assert reason_against(check_points, [vectors, fewer]) == "the points have different numbers of classes"


# -- Engine by engine --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_vmapped(images, norm):
    learner, sets = small_cnn(norm), taught_otherwise(images, 4)
    assert learner.engine(sets).name == "vmap"
    assert_each_is_the_model_alone(learner, sets, learner.fit_many(sets, STREAMS))


@pytest.mark.parametrize("augment", ["none", "flip-crop"])
def test_as_a_traced_stack(images, augment):
    """In plain torch; members of two sizes."""
    learner, sets = small_cnn(augment=augment), taught_otherwise(images, 4)
    sets[1] = sets[1].subset(sets[1].index[:30])
    there = [said_to_be_on_a_gpu(points) for points in sets]
    assert choose_engine(learner.build(images, 0).train(), there) == Engine("traced")
    assert_each_is_the_model_alone(learner, sets, learner._fit_traced(sets, STREAMS))


def test_in_streams(images, monkeypatch):
    learner, sets = small_cnn(), taught_otherwise(images, 4)
    monkeypatch.setattr(Minibatch, "engine", lambda self, points: Engine("streams"))
    monkeypatch.setattr(
        "forgetgauge.learn.minibatch.on_streams", lambda fit, points, streams: list(map(fit, points, streams))
    )
    assert_each_is_the_model_alone(learner, sets, learner.fit_many(sets, STREAMS))


@pytest.mark.parametrize(("model", "engine"), [(Dropout, "solo"), (BatchNormed, "vmap")])
def test_own_models(vectors, model, engine):
    learner = Minibatch(model=plugins.models.bind(model), epochs=2, batch_size=25)
    sets = taught_otherwise(vectors, 3)
    assert learner.engine(sets).name == engine
    assert_each_is_the_model_alone(learner, sets, learner.fit_many(sets, STREAMS))


def test_in_shards(images):
    learner = Sisa(n_shards=2, model_params={"width": 4}, epochs=2, batch_size=16)
    sets = taught_otherwise(images, 4, size=60)
    assert_each_is_the_model_alone(learner, sets, learner.fit_many(sets, STREAMS))


def test_other_numbers_of_classes_are_other_architectures_and_trained_alone(vectors):
    fewer = replace(vectors, whole_labels=vectors.whole_labels.clamp(max=1))
    engine = choose_engine(torch.nn.Linear(6, 3), [vectors, fewer])
    assert engine == Engine("solo", "the points have different numbers of classes")


def test_norms_with_the_same_parameters_are_not_alike():
    batch, group = (SmallCNN((1, 8, 8), 10, norm=norm) for norm in ("batch", "group"))
    assert [p.shape for p in batch.parameters()] == [p.shape for p in group.parameters()]
    assert reason_against(check_alike, [batch, group]) == "the models are of different architectures"
    check_alike([batch, SmallCNN((1, 8, 8), 10, norm="batch")])
