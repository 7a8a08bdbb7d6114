"""Which engine is chosen, and what it says of those it did not choose."""

import contextlib
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.device import capture
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.stacked import engines
from forgetgauge.learn.stacked.engines import Engine, choose_engine, on_streams
from forgetgauge.learn.stacked.members import NotStackable
from forgetgauge.models.small_cnn import SmallCNN
from forgetgauge.streams import Streams
from tests.learn.own_models import AverageOfAllBatches, BatchNormed, BranchesOnData, Dropout, Noise, Plain, Tied

NO_GPU = "the kernels are for a GPU"


def halves(points: Points, n: int = 2) -> list[Points]:
    return [points.subset(np.arange(k, len(points.whole_inputs), n)) for k in range(n)]


class OnGpu(Points):
    """Points that say they are on a GPU: what is chosen is decided before anything is sent there."""

    @property
    def device(self) -> torch.device:
        return torch.device("cuda")


def said_to_be_on_a_gpu(points: Points) -> OnGpu:
    return OnGpu(points.whole_inputs, points.whole_labels, points.index)


# -- On a CPU ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Plain, BatchNormed, Tied])
def test_on_a_cpu_what_can_be_vmapped_is_and_never_by_kernels(vectors, model):
    assert choose_engine(model((6,), 3).train(), halves(vectors)) == Engine("vmap", NO_GPU)


@pytest.mark.parametrize("norm", ["batch", "group", "none"])
def test_the_default_model_is_vmapped_on_a_cpu(images, norm):
    model = SmallCNN((1, 8, 8), 4, width=4, norm=norm).train()
    assert choose_engine(model, halves(images, 3)) == Engine("vmap", NO_GPU)


def test_dropout_is_trained_alone_and_named(vectors):
    assert choose_engine(Dropout((6,), 3).train(), halves(vectors)) == Engine(
        "solo", "dropout draws random numbers of its own"
    )


@pytest.mark.parametrize("model", [Noise, AverageOfAllBatches, BranchesOnData])
def test_what_vmap_refuses_is_trained_alone_for_a_reason_of_one_line(vectors, model):
    engine = choose_engine(model((6,), 3).train(), halves(vectors))
    assert engine.name == "solo"
    assert engine.reason
    assert engine.reason != NO_GPU
    assert "\n" not in engine.reason


def test_a_stack_of_one_is_trained_alone(vectors):
    assert choose_engine(Plain((6,), 3), [vectors]) == Engine("solo", "a stack of one is a model alone")


def test_points_of_different_data_sets_are_trained_alone(vectors):
    copied = Points.of(vectors.whole_inputs.clone(), vectors.whole_labels)
    engine = choose_engine(Plain((6,), 3), [vectors, copied])
    assert engine == Engine("solo", "the points are of different data sets")


def test_choosing_leaves_the_model_as_it_was(images):
    model = SmallCNN((1, 8, 8), 4, width=4).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    choose_engine(model, halves(images))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.training


@pytest.mark.parametrize(("name", "mixes"), [("traced", True), ("vmap", False), ("streams", True), ("solo", True)])
def test_only_vmap_wants_members_of_one_size(name, mixes):
    assert Engine(name).mixes_sizes is mixes


# -- On a GPU, as far as it can be known without one -------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_on_a_gpu_what_can_be_traced_is_trained_by_kernels_even_alone(images, n):
    sets = [said_to_be_on_a_gpu(points) for points in halves(images, n)]
    assert choose_engine(SmallCNN((1, 8, 8), 4, width=4), sets) == Engine("traced")


def test_on_a_gpu_what_cannot_be_traced_is_vmapped_and_says_why(vectors):
    engine = choose_engine(Plain((6,), 3).train(), [said_to_be_on_a_gpu(points) for points in halves(vectors)])
    assert engine.name == "vmap"
    assert "tanh" in engine.reason


def test_on_a_gpu_what_vmap_refuses_runs_in_streams_unless_it_draws_random_numbers(vectors):
    sets = [said_to_be_on_a_gpu(points) for points in halves(vectors)]
    refused = choose_engine(AverageOfAllBatches((6,), 3).train(), sets)
    assert refused.name == "streams"
    assert refused.reason
    assert choose_engine(Dropout((6,), 3).train(), sets) == Engine("solo", "dropout draws random numbers of its own")


def test_the_reasons_are_asked_for_in_order(vectors, monkeypatch):
    """The tracer's refusal is what a vmapped stack reports, vmap's what streams report."""

    def refuse(reason):
        def refused(*_):
            raise NotStackable(reason)

        return refused

    monkeypatch.setattr(engines, "TracedStack", refuse("not traced"))
    sets = [said_to_be_on_a_gpu(points) for points in halves(vectors)]
    assert choose_engine(Plain((6,), 3), sets) == Engine("vmap", "not traced")
    monkeypatch.setattr(engines, "check_vmap", refuse("not vmapped"))
    assert choose_engine(nn.Linear(6, 3), sets) == Engine("streams", "not vmapped")


@pytest.fixture
def _streams_of_a_cpu(monkeypatch):
    """Threads and nothing else."""
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", mock.MagicMock())


@pytest.mark.usefixtures("_streams_of_a_cpu")
def test_a_step_is_tried_out_before_it_is_captured_once(monkeypatch):
    seen = []

    @contextlib.contextmanager
    def recording(graph, pool=None):
        seen.append(pool)
        yield

    monkeypatch.setattr(torch.cuda, "Stream", mock.MagicMock())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", mock.MagicMock())
    monkeypatch.setattr(torch.cuda, "graph", recording)
    capture(lambda: seen.append("step"), torch.device("cpu"), n_trials=2, pool="shared")
    assert seen == ["step", "step", "shared", "step"]


@pytest.mark.usefixtures("_streams_of_a_cpu")
def test_members_in_threads_come_back_in_order(vectors):
    sets = halves(vectors, 5)
    sizes = on_streams(
        lambda points, streams: (len(points), streams.seed("init")), sets, [Streams(str(k)) for k in range(5)]
    )
    assert sizes == [(len(points), Streams(str(k)).seed("init")) for k, points in enumerate(sets)]


@pytest.mark.usefixtures("_streams_of_a_cpu")
def test_members_built_in_threads_begin_with_the_weights_of_models_alone(images):
    recipe, streams = Minibatch(model_params={"width": 16}), [Streams(str(k)) for k in range(64)]

    def build(points, streams):
        return recipe.build(points, streams.seed("init"))

    built = on_streams(build, [images] * 64, streams)
    for model, stream in zip(built, streams, strict=True):
        assert torch.equal(model.head.weight, build(images, stream).head.weight)
